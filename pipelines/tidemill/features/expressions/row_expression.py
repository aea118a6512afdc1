"""A user's own SQL: one expression over the event's columns, of one row, the same at any time.

It is parsed once, refused unless every part of it is known here, and written again from the parsed
form: what was checked is what runs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import SqlglotError

from tidemill.features.expressions.patterns import fault, patterns
from tidemill.features.expressions.time_texts import TimeTexts
from tidemill.features.suggestions import did_you_mean


class AsWritten(Databricks):
    """Databricks' SQL, each function left as it was called: another of the same kind may round
    otherwise."""

    class Parser(Databricks.Parser):  # type: ignore[misc, valid-type]
        """Knows no function but those with a grammar of their own, such as CAST and TRIM."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}


LONGEST = 4096
# Functions of one row that give the same for the same row, on every run and every machine.
FUNCTIONS = frozenset(
    """abs array_contains ascii bround cast ceil ceiling char_length coalesce concat concat_ws
    contains date_trunc day dayofmonth dayofweek dayofyear decode degrees div element_at endswith
    exp floor format_number from_unixtime greatest hash hex hour if ifnull initcap instr isnan
    isnotnull isnull least left length levenshtein ln locate log log10 log2 lower lpad ltrim md5
    minute mod month nanvl negative nullif nvl nvl2 overlay pmod position positive pow power quarter
    radians regexp_count regexp_extract regexp_instr regexp_like regexp_replace repeat replace
    reverse right rint round rpad rtrim second sha sha1 sha2 shiftleft shiftright sign signum size
    split split_part sqrt startswith substr substring substring_index translate trim trunc try_add
    try_cast try_divide try_multiply try_subtract try_to_number try_to_timestamp typeof unix_micros
    unix_millis unix_seconds upper weekday weekofyear width_bucket xxhash64 year""".split()
)
_PLAIN = (
    exp.Column,
    exp.Identifier,
    exp.Literal,
    exp.Boolean,
    exp.Null,
    exp.Paren,
    exp.Connector,
    exp.Not,
    exp.Predicate,
    exp.Binary,
    exp.Neg,
    exp.BitwiseNot,
    exp.Case,
    exp.If,
    exp.Cast,
    exp.DataType,
    exp.DataTypeParam,
    exp.Interval,
    exp.Var,
    exp.Tuple,
    exp.Bracket,
)
_GRAMMAR = (exp.Connector, exp.Case, exp.If, exp.Cast, exp.RegexpLike)  # functions by their class
_NEVER = (
    exp.Query,
    exp.Star,
    exp.Placeholder,
    exp.Parameter,
    exp.Window,
    exp.AggFunc,
    exp.Lambda,
    exp.Dot,  # a function of a catalog: anybody's
)
# Those of FUNCTIONS that can be true or false.
CONDITIONS = frozenset(
    """array_contains cast coalesce contains decode element_at endswith greatest if ifnull isnan
    isnotnull isnull least nullif nvl nvl2 regexp_like startswith try_cast""".split()
)


def checked(text: str, columns: Collection[str], *, condition: bool = False) -> str:
    """Return the expression as SQL; ValueError says what in it is not taken.

    `columns` are the event's, by their types where known; a `condition` must be one that is true or
    false. A text that Spark would read as a time must name its day, and a regular expression must
    be one that no text keeps busy.
    """
    try:
        tree = _parsed(text)
        for node in tree.walk():
            _check(node, text, columns)
        _check_texts(tree, text, columns)
        if condition and not _is_condition(tree, columns):
            raise ValueError(f"{text!r} is no condition: it must be true or false")
        return tree.sql(dialect=AsWritten, comments=False)
    except RecursionError as error:
        raise ValueError("an expression may not be nested so deeply") from error


def columns_of(text: str) -> set[str]:
    """Return the names of the columns that a checked expression reads."""
    return {node.name for node in _parsed(text).find_all(exp.Column)}


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Return a checked expression with other names for some of its columns."""
    tree = _parsed(text)
    for node in list(tree.find_all(exp.Column)):
        if node.name in names:
            node.set("this", exp.to_identifier(names[node.name]))
    return tree.sql(dialect=AsWritten, comments=False)


def _parsed(text: str) -> exp.Expr:
    if len(text) > LONGEST or not text.isprintable():
        raise ValueError(f"an expression is one line of at most {LONGEST} characters")
    if "${" in text:
        raise ValueError(f"{text!r} holds ${{, in whose place Spark puts what the machine has")
    try:
        trees = sqlglot.parse(text, read=AsWritten)
    except SqlglotError as error:
        reason = str(error).splitlines()[0].split(". Line")[0]
        raise ValueError(f"{text!r} is no SQL expression: {reason}") from error
    if len(trees) != 1 or trees[0] is None or isinstance(trees[0], exp.Command):
        raise ValueError(f"{text!r} is not one SQL expression")
    return trees[0]


def _check(node: exp.Expr, text: str, columns: Collection[str]) -> None:
    if isinstance(node, exp.Column):
        _check_column(node, text, columns)
        return
    if isinstance(node, exp.Concat):  # of the parser's own; a call of concat is left as written
        raise ValueError(f"{text!r} has two texts side by side: write \\' for a quote in a text")
    name = _function(node)
    taken = name in FUNCTIONS if name else isinstance(node, _PLAIN)
    if isinstance(node, _NEVER) or not taken:
        what = name or type(node).__name__.lower()
        near = did_you_mean(what, sorted(FUNCTIONS)) if name else ""
        known = near if near.endswith("?") else ""  # not all hundred of them
        raise ValueError(
            f"{what!r} in {text!r} is not taken{known}: only the event's columns, values, "
            "operators and functions of one row that always give the same"
        )


def _check_texts(tree: exp.Expr, text: str, columns: Collection[str]) -> None:
    types = columns if isinstance(columns, Mapping) else {}
    for literal in TimeTexts(types).found(tree):
        raise ValueError(
            f"{literal} in {text!r} is read as a time and may name no day, which would be that of "
            "the run: write '2026-11-21 12:30' or try_to_timestamp(text, 'yyyy-MM-dd HH:mm')"
        )
    for node in tree.walk():
        for pattern in patterns(node):
            if reason := fault(pattern):
                raise ValueError(
                    f"the pattern {pattern.sql(dialect=AsWritten)} in {text!r} {reason}"
                )


def _check_column(node: exp.Column, text: str, columns: Collection[str]) -> None:
    if len(node.parts) != 1 or node.name not in columns:
        name = ".".join(part.name for part in node.parts)
        raise ValueError(f"unknown column {name!r} in {text!r}{did_you_mean(name, columns)}")


def _function(node: exp.Expr) -> str:
    """Return the name of a function as the SQL that will run has it; empty when it is none."""
    if not isinstance(node, exp.Func) or isinstance(node, _GRAMMAR):
        return ""
    match = re.match(r"\w+(?=\()", node.sql(dialect=AsWritten))
    return match[0].lower() if match else type(node).__name__.lower()


def _is_condition(tree: exp.Expr, columns: Collection[str]) -> bool:
    inner = tree.unnest()
    if isinstance(inner, exp.Cast):
        return inner.is_type("boolean")
    if isinstance(inner, exp.Column):
        return not isinstance(columns, Mapping) or columns[inner.name] == "BOOLEAN"
    kinds = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean, exp.Case, exp.If, exp.Escape)
    return isinstance(inner, kinds) or _function(inner) in CONDITIONS
