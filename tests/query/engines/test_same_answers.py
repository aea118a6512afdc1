"""DuckDB's answers are Spark's, cell by cell; what may not be alike is not DuckDB's to answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import statements
from pyspark.sql import SparkSession

import probe
from tidemill.config.settings import Place
from tidemill.errors import UsageError
from tidemill.lake import catalog
from tidemill.query import questions
from tidemill.query.engines import choice
from tidemill.query.engines.duckdb_engine import DuckDBEngine
from tidemill.query.engines.expression_rules.rule import UntranslatableError
from tidemill.query.json_values import json_of

GENERATED = 200


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return probe.make(tmp_path_factory.mktemp("engines") / "lake")


@pytest.fixture(scope="module")
def by_spark(spark: SparkSession, root: Path) -> Callable[[str], str]:
    def answer(text: str) -> str:
        catalog.register(spark, Place(root))
        return json_of(questions.answer(spark, text))

    return answer


def by_duckdb(root: Path, text: str) -> str:
    names, rows = DuckDBEngine(root, []).answer(text)
    return json_of({"columns": list(names), "rows": rows})


def columns(expressions: list[str]) -> str:
    listed = ", ".join(f"{text} AS c{place}" for place, text in enumerate(expressions))
    return f"SELECT id, {listed} FROM probe ORDER BY id"


@pytest.mark.parametrize("first", range(0, len(statements.ALIKE), 12))
def test_expressions(root: Path, by_spark: Callable[[str], str], first: int) -> None:
    """A dozen at a time, each of them a column; a difference names its own."""
    asked = statements.ALIKE[first : first + 12]
    for text in asked:  # each translates alone, and its values fit
        by_duckdb(root, columns([text]))
    mine, theirs = by_duckdb(root, columns(asked)), by_spark(columns(asked))
    if mine != theirs:
        apart = [t for t in asked if by_duckdb(root, columns([t])) != by_spark(columns([t]))]
        pytest.fail(f"different: {apart}\n{mine}\n{theirs}")


@pytest.mark.parametrize("text", statements.WHOLE)
def test_statements(root: Path, by_spark: Callable[[str], str], text: str) -> None:
    assert by_duckdb(root, text) == by_spark(text)


@pytest.mark.parametrize("tenth", range(10))
def test_generated_statements(root: Path, by_spark: Callable[[str], str], tenth: int) -> None:
    """Random ones, of parts that translate; what DuckDB stops at, Spark answers."""
    asked = statements.generated(GENERATED, seed=20261123)[tenth::10]
    stopped = 0
    for text in asked:
        try:
            mine = by_duckdb(root, text)
        except UntranslatableError as error:
            pytest.fail(f"{text}: {error}")
        except Exception:  # an overflow, say
            stopped += 1
            continue
        assert mine == by_spark(text), text
    assert stopped <= 2


@pytest.mark.parametrize("text", statements.LEFT_TO_SPARK)
def test_what_is_left_to_spark(root: Path, text: str) -> None:
    with pytest.raises(UntranslatableError):
        by_duckdb(root, text)


@pytest.mark.parametrize("text", statements.STOPPED)
def test_what_stops_at_a_value(root: Path, text: str) -> None:
    import duckdb

    with pytest.raises(duckdb.Error):
        by_duckdb(root, text)


def _ask(root: Path, text: str, engine: str, session: Any) -> tuple[dict[str, Any], list[str]]:
    told: list[str] = []
    place = Place(root)
    answer = choice.answer(text, place, [], choice.checked(engine), session, told.append)
    return answer, told


def _no_session() -> SparkSession:
    raise AssertionError("Spark was asked")


def test_auto_needs_no_session(root: Path) -> None:
    answer, told = _ask(root, "SELECT count(*) FROM probe", "auto", _no_session)
    assert answer == {"columns": ["count(1)"], "rows": [[9]]}
    assert told == []


def test_auto_asks_spark_and_says_why(spark: SparkSession, root: Path) -> None:
    def session() -> SparkSession:
        catalog.register(spark, Place(root))
        return spark

    answer, told = _ask(root, "SELECT stddev(id) > 2 AS wide FROM probe", "auto", session)
    assert answer == {"columns": ["wide"], "rows": [[True]]}
    assert told == ["asking Spark, as DuckDB may answer otherwise: stddev"]
    by_value, told = _ask(root, "SELECT upper(word) AS w FROM probe WHERE id = 3", "auto", session)
    assert by_value["rows"] == [["Ä"]]
    assert "beyond ASCII" in told[0]


def test_duckdb_alone_refuses_what_it_may_answer_otherwise(root: Path) -> None:
    with pytest.raises(UsageError, match=r"does not answer this as Spark does: stddev"):
        _ask(root, "SELECT stddev(id) AS s FROM probe", "duckdb", _no_session)


def test_duckdb_reads_folders_alone() -> None:
    place = Place(None, "main", "lake")
    with pytest.raises(UsageError, match="the lake is in a catalog"):
        choice.answer("SELECT 1 AS x", place, [], "duckdb", _no_session, print)


def test_an_unknown_engine() -> None:
    with pytest.raises(UsageError, match="'duck' is no engine; did you mean 'duckdb'"):
        choice.checked("duck")


def test_an_unknown_table_is_said_at_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice.SparkSession, "getActiveSession", staticmethod(lambda: None))
    with pytest.raises(UsageError, match="no table prope; did you mean 'probe'"):
        _ask(root, "SELECT * FROM prope", "auto", _no_session)


def test_a_name_of_the_session_hides_a_table(spark: SparkSession, root: Path) -> None:
    def session() -> SparkSession:
        catalog.register(spark, Place(root))
        return spark

    # Not `range`: the session that makes a frame of Python's rows is the active one from then on.
    spark.createDataFrame([(n,) for n in range(3)], "id INT").createOrReplaceTempView("probe")
    try:
        answer, told = _ask(root, "SELECT count(*) AS n FROM probe", "auto", session)
    finally:
        spark.catalog.dropTempView("probe")
    assert (answer["rows"], told) == ([[3]], [])


def test_each_statement_sees_the_newest_rows(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    engine = DuckDBEngine(probe.make(tmp_path / "lake"), [])
    assert engine.answer("SELECT count(*) AS n FROM probe")[1] == [[9]]
    DeltaTable(str(tmp_path / "lake" / "probe")).delete("id > 5")
    assert engine.answer("SELECT count(*) AS n FROM probe")[1] == [[5]]
