"""Which engine answers a statement: the one that was asked for, else the quicker one that can.

auto      DuckDB where the lake is a folder and the statement translates, else Spark
duckdb    DuckDB, or an error that says what it does not answer
spark     Spark
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Literal, get_args

from pyspark.sql import SparkSession

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Place
from tidemill.errors import UsageError
from tidemill.features.suggestions import did_you_mean
from tidemill.query import questions
from tidemill.query.engines.duckdb_engine import DuckDBEngine
from tidemill.query.engines.expression_rules.rule import UntranslatableError
from tidemill.query.engines.translation import NoSuchTableError

log = logging.getLogger(__name__)

Engine = Literal["auto", "duckdb", "spark"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
Tell = Callable[[str], None]
ASKING_SPARK = "asking Spark, as DuckDB may answer otherwise: {}"


def checked(engine: str) -> Engine:
    """Return the engine by its name; UsageError for another one."""
    for known in ENGINES:
        if engine == known:
            return known
    hint = did_you_mean(engine, ENGINES)
    raise UsageError(
        f"{engine!r} is no engine{hint}", where="--engine", expected=", ".join(ENGINES)
    )


def answer(
    text: str,
    place: Place,
    definitions: Iterable[PipelineDefinition],
    engine: Engine,
    session: Callable[[], SparkSession],
    tell: Tell,
) -> dict[str, Any]:
    """Return `{columns, rows}` of a statement that only reads, values as JSON has them.

    Spark's session is made only where Spark answers; `tell` is then told why, if DuckDB was to.
    UsageError for a statement that does not go with the lake's tables, and for one that DuckDB was
    asked for and does not answer as Spark does.
    """
    if engine == "spark" or (engine == "auto" and place.folder is None):
        return questions.answer(session(), text)
    if place.folder is None:
        raise not_in_a_catalog()
    duckdb_engine = DuckDBEngine(place.folder, definitions)
    try:
        if engine == "auto" and _of_the_session() & {*duckdb_engine.translated(text).reads}:
            return questions.answer(session(), text)
        names, rows = duckdb_engine.answer(text)
    except NoSuchTableError as error:
        if engine == "auto" and SparkSession.getActiveSession() is not None:
            return questions.answer(session(), text)  # it may be a view of the session's
        hint = did_you_mean(str(error), duckdb_engine.names())
        expected = "a table of the lake, as SHOW TABLES lists them"
        raise UsageError(f"no table {error}{hint}", where="query", expected=expected) from error
    except Exception as error:  # DuckDB's and deltalake's, of which each is a reason to ask Spark
        why = reason(error)
        log.info("DuckDB does not answer: %s", error)
        if engine == "duckdb":
            raise not_by_duckdb(why, "query") from error
        tell(ASKING_SPARK.format(why))
        return questions.answer(session(), text)
    return {"columns": list(names), "rows": rows}


def not_in_a_catalog() -> UsageError:
    """Return the error where DuckDB was to read a catalog's tables."""
    message = "reads the files of a folder, and the lake is in a catalog"
    return UsageError(message, where="--engine duckdb", expected="--engine spark")


def not_by_duckdb(why: str, where: str) -> UsageError:
    """Return the error where DuckDB alone was to answer."""
    message = f"DuckDB does not answer this as Spark does: {why}"
    return UsageError(message, where=where, expected="--engine auto or spark")


def _of_the_session() -> set[str]:
    """Return the names that the process's own session has given to rows, which hide tables."""
    if (spark := SparkSession.getActiveSession()) is None:
        return set()
    return {row["tableName"] for row in spark.sql("SHOW TABLES").collect() if row["isTemporary"]}


def reason(error: Exception) -> str:
    """Return in a line why DuckDB does not answer."""
    if isinstance(error, UntranslatableError):
        return str(error)
    return (str(error).splitlines() or [type(error).__name__])[0]
