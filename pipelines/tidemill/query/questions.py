"""Questions in SQL, asked of a lake: one statement that only reads, typed, in a file, or one of
`sql/adhoc`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlglot
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from sqlglot.errors import SqlglotError

from tidemill.errors import UsageError
from tidemill.features.suggestions import did_you_mean
from tidemill.lake import times
from tidemill.lake.parameters import ask
from tidemill.lake.statements import FOLDER
from tidemill.query.json_values import plain

READS = ("SELECT", "WITH", "SHOW", "DESCRIBE", "DESC")
WRITES = ("INSERT", "MERGE", "UPDATE", "DELETE")


def known() -> dict[str, Path]:
    """Return the questions of `sql/adhoc` by name."""
    return {path.stem: path for path in sorted((FOLDER / "adhoc").glob("*.sql"))}


def asked(sql: str | None, file: str | None) -> str:
    """Return the reading statement that is asked: the SQL given, a file's, or a known question's.

    UsageError when both or none is given, there is no such file, or it does more than read.
    """
    if (sql is None) == (file is None):
        choice = "neither SQL nor a file" if sql is None else "SQL and a file"
        raise UsageError(f"found {choice}", where="query", expected="one of SQL and --file")
    return read_only(sql if sql is not None else _text_of(str(file)))


def _text_of(file: str) -> str:
    path = known().get(file, Path(file))
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        message = f"is no question and no file that can be read{did_you_mean(file, known())}"
        raise UsageError(message, where=file, expected="a file of SQL, or a question") from error


def read_only(sql: str) -> str:
    """Return the one reading statement that `sql` is, without a closing semicolon; UsageError
    otherwise.

    A WITH may lead into an INSERT, so words that write are refused outside of parentheses.
    """
    expected = "one SELECT, WITH, SHOW or DESCRIBE"
    try:
        tokens = sqlglot.tokenize(sql, read="databricks")
    except SqlglotError as error:
        raise UsageError(f"is no SQL: {error}", where="query", expected=expected) from error
    while tokens and tokens[-1].token_type.name == "SEMICOLON":
        sql, tokens = sql[: tokens[-1].start], tokens[:-1]
    if any(token.token_type.name == "SEMICOLON" for token in tokens):
        raise UsageError("holds several statements", where="query", expected=expected)
    words = _outer_words(tokens)
    if not words or words[0] not in READS or (words[0] == "WITH" and set(words) & set(WRITES)):
        raise UsageError(
            f"{sql.strip()[:60]!r} does not only read", where="query", expected=expected
        )
    return sql


def _outer_words(tokens: Sequence[Any]) -> list[str]:
    """Return the statement's words that stand in no parentheses, in capitals."""
    depth, words = 0, []
    for token in tokens:
        kind = token.token_type.name
        depth += (kind == "L_PAREN") - (kind == "R_PAREN")
        if depth == 0 and kind not in {"STRING", "IDENTIFIER"}:
            words.append(token.text.upper())
    return words


def frame(spark: SparkSession, question: str, values: Mapping[str, Any]) -> DataFrame:
    """Return what the statement yields, `:name` standing for `values[name]`; UsageError where it
    does not go with the lake's tables. The session knows them by name."""
    with _explained():
        asked_for = ask(spark, question, values)
        asked_for.columns  # noqa: B018  Spark Connect reads the statement only when asked
        return asked_for


def answer(spark: SparkSession, question: str) -> dict[str, Any]:
    """Return `{columns, rows}`; times are ISO text in UTC, without a Z where they are no
    instants."""
    asked_for = frame(spark, question, {})
    with _explained():
        rows = times.collect(asked_for)
    return {
        "columns": asked_for.columns,
        "rows": [plain(row) for row in rows],
    }


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (AnalysisException, ParseException) as error:
        message = str(error).splitlines()[0]
        raise UsageError(message, where="query", expected="SQL on this lake's tables") from error
