"""Statements with values and rows, bound by name: values as Spark does it or put in as literals,
rows as temporary views.

With Delta's extension Spark drops parameter markers (delta 7640). A local session works around it
by a setting (see `session`), which Spark Connect does not look at for queries. There the values
become literals, of the few types that our statements take.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, timezone
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

_NAMED = {"\\": r"\\", "'": r"\'", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
# What ends a literal or a line, and the $ of ${name}: Spark puts settings in for that before it
# reads the statement, also within a literal.
_ESCAPED = re.compile("[\\\\'\x00-\x1f\x7f-\x9f\u2028\u2029]|\\$(?=\\{)")


def ask(
    spark: SparkSession,
    text: str,
    values: Mapping[str, Any],
    frames: Mapping[str, DataFrame] | None = None,
) -> DataFrame:
    """Return what the statement yields with `:name` standing for `values[name]`, and the table
    `name` for `frames[name]`, rows of this session.

    A classic session has these names only while it reads the statement: a view that stays keeps its
    plan, which keeps snapshots of tables, which keep copies of the session, which keep the views of
    the tick before, and so on to the first one (decision 0031). Spark Connect reads a query when
    its rows are asked for; there a name stays until its next rows.
    """
    frames = frames or {}
    for name, rows in frames.items():
        rows.createOrReplaceTempView(name)
    if is_connect(spark):
        return spark.sql(bound(text, values))
    for value in values.values():
        if isinstance(value, datetime):
            _with_zone(value)
    try:
        return spark.sql(text, args=dict(values))
    finally:
        for name in frames:  # the catalog's own function would no longer keep rows that are cached
            spark.sql(f"DROP VIEW IF EXISTS {name}")


def beside_code(number: int, column: str) -> Column:
    """Return a number that changes from batch to batch as a BIGINT column, never null.

    A literal stands in the code that Spark makes for a stage: with another number it is other code,
    which is compiled anew and runs cold. An array stands beside the code, unless Spark knows which
    of its elements is meant; so the place, always the first, is computed of any column of the row.
    """
    only = F.array(F.lit(number).cast("bigint"))
    return F.element_at(only, F.pmod(F.hash(column), F.lit(1)) + 1)


def is_connect(spark: SparkSession) -> bool:
    """Return whether the session is one of Spark Connect, which has no JVM at hand."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def bound(text: str, values: Mapping[str, Any]) -> str:
    """Return the statement with each `:name` of `values` written as a literal."""
    if not values:
        return text
    names = "|".join(re.escape(name) for name in values)
    return re.sub(rf"(?<![:\w]):({names})\b", lambda match: literal(values[match[1]]), text)


def literal(value: Any) -> str:
    """Return the value as a SQL literal; TypeError for a type that no statement takes."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, datetime):
        return f"TIMESTAMP '{_with_zone(value).astimezone(timezone.utc).isoformat()}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return f"ARRAY({', '.join(literal(each) for each in value)})"
    raise TypeError(f"no SQL literal for {type(value).__name__}")


def _with_zone(moment: datetime) -> datetime:
    """Return the datetime; ValueError without a zone, as this machine's says nothing."""
    if moment.utcoffset() is None:
        raise ValueError(f"{moment.isoformat()} has no zone")
    return moment


def quoted(text: str) -> str:
    r"""Return the text as a SQL string literal, on one line.

    Not by sqlglot, whose escapes Spark reads otherwise: `\a`, `\f` and `\v` (up to 30.21) as these
    letters, `\0` before two digits (30.23 to 30.30) as one octal number.
    """
    return "'" + _ESCAPED.sub(lambda match: _escape(match[0]), text) + "'"


def _escape(character: str) -> str:
    return _NAMED.get(character, f"\\u{ord(character):04x}")
