"""The analysts' questions of `sql/adhoc`, each asked of one small lake and read cell by cell.

    20th              11:00                                          21st 10:00   11:00 = as_of
    ──┼─────────────────┼──────────────────────────────────────────────────┼─────────┤
      e01 e02           └───────────────── the day [11:00, 11:00) ─────────┴─ 1 h ───┘

The answers are in `tests/query/adhoc/<question>.txt`. What depends on the time of asking is not in
them (LEFT_OUT).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakes import Lakes, TestLake, at, payload
from texttable import TextTable
from tidemill.config.pipeline_file import load
from tidemill.lake import catalog as lakes
from tidemill.lake.statements import FOLDER, statement
from tidemill.pipeline import batch_log
from tidemill.query import questions
from tidemill.query.engines.duckdb_engine import DuckDBEngine
from tidemill.query.json_values import json_of
from tidemill.query.questions import read_only

ANSWERS = Path(__file__).parent / "adhoc"
QUESTIONS = sorted(path.stem for path in (FOLDER / "adhoc").glob("*.sql"))
LEFT_OUT = {
    "freshness": {"age_seconds"},
    "duplicates_by_day": {"day"},
    "tick_cost": {"merge_seconds", "other_seconds"},
}

# Batch 1 brings e12 again and a late e20 to e22, batch 2 e31 (a day and more late) and e30 twice.
EVENTS = (
    """
    event | profile   | title   | type      | time
    e01   | profile-1 | title-1 | view      | 20T10:00:10
    e02   | profile-2 | title-1 | highlight | 20T10:59:59
    e03   | profile-1 | title-1 | highlight | 20T11:00:00
    e04   | profile-1 | title-1 | select    | 20T11:01:00
    e05   | profile-1 | title-1 | view      | 20T11:02:30
    e06   | profile-2 | title-1 | highlight | 20T14:10:00
    e07   | profile-2 | title-1 | select    | 20T14:10:30
    e08   | profile-3 | title-1 | highlight | 20T21:15:00
    e09   | profile-3 | title-2 | highlight | 20T21:16:00
    e10   | profile-3 | title-2 | select    | 20T21:17:00
    e11   | profile-3 | title-2 | view      | 20T21:18:00
    e12   | profile-1 | title-2 | highlight | 20T22:30:00
    e13   | profile-1 | title-3 | highlight | 20T23:10:00
    e14   | profile-1 | title-3 | view      | 20T23:59:59
    """,
    """
    event | profile   | title   | type      | time
    e12   | profile-1 | title-2 | highlight | 20T22:30:00
    e15   | profile-1 | title-3 | view      | 21T00:05:00
    e16   | profile-2 | title-3 | select    | 21T06:00:00
    e17   | profile-2 | title-3 | view      | 21T06:40:00
    e18   | profile-3 | title-1 | highlight | 21T09:59:59
    e19   | profile-3 | title-3 | view      | 21T10:00:00
    e20   | profile-4 | title-1 | view      | 20T23:58:00
    e21   | profile-4 | title-1 | view      | 20T23:00:00
    e22   | profile-4 | title-2 | view      | 20T12:30:00
    """,
    """
    event | profile   | title   | type      | time
    e23   | profile-4 | title-1 | highlight | 21T10:05:00
    e24   | profile-4 | title-1 | select    | 21T10:06:00
    e25   | profile-4 | title-1 | view      | 21T10:07:00
    e26   | profile-5 | title-4 | highlight | 21T10:20:00
    e27   | profile-5 | title-4 | view      | 21T10:21:00
    e28   | profile-1 | title-4 | view      | 21T10:30:00
    e29   | profile-1 | title-2 | view      | 21T10:58:00
    e30   | profile-2 | title-2 | view      | 21T10:59:30
    e30   | profile-2 | title-2 | view      | 21T10:59:30
    e31   | profile-5 | title-5 | view      | 20T09:40:00
    """,
)
REFUSED = (
    '{"event_id": "bad-1", "profile_id": "profile-1", "gti": "title-1"',
    '{"event_id": "bad-2", "profile_id": "profile-1", "gti": "title-1", "event_type": "wiev", '
    '"event_timestamp": "2026-11-21T10:00:00Z"}',
    '{"event_id": "bad-3", "gti": "title-1", "event_type": "view", '
    '"event_timestamp": "2026-11-21T10:00:00Z"}',
    '{"event_id": "bad-4", "gti": "title-1", "event_type": "stop", '
    '"event_timestamp": "2026-11-21T10:00:00Z"}',
    '{"event_id": "bad-5", "profile_id": "profile-1", "gti": "title-1", "event_type": "view", '
    '"event_timestamp": "2099-01-01T00:00:00Z"}',
)


def _payloads(text: str) -> list[str]:
    rows = TextTable.parse(text).rows
    return [payload((event, who, title, kind, at(time))) for event, who, title, kind, time in rows]


def _land(lake: TestLake, payloads: list[str]) -> None:
    """Write the records to bronze; `step` gives them the same numbers again."""
    lake.bronze(payloads).write.format("delta").mode("append").saveAsTable("engagement_bronze")
    lake.records -= len(payloads)


@pytest.fixture(scope="module")
def lake(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, empty_lake: Path
) -> TestLake:
    made = Lakes(spark, tmp_path_factory.mktemp("adhoc"), empty_lake).new()
    first, second, third = map(_payloads, EVENTS)
    for payloads in (first, [*second, *REFUSED], third):
        _land(made, payloads)
        made.step(payloads)
    batch_log.record(made.lake)
    return made


@pytest.fixture
def current(lake: TestLake) -> TestLake:
    """The lake, its schema the session's current one; another test may have opened another."""
    lakes.register(lake.spark, lake.lake.place)
    return lake


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_is_as_written(current: TestLake, question: str) -> None:
    frame = current.spark.sql(statement(question, current.view))
    found = TextTable.of(frame.columns, frame.collect())
    expected = TextTable.parse((ANSWERS / f"{question}.txt").read_text(encoding="utf-8"))
    assert set(found.columns) - set(expected.columns) == LEFT_OUT.get(question, set())
    difference = found.only(expected.columns).differences(expected)
    assert not difference, f"{question}:\n{difference}"


VIEWS = (
    "engagement_current",
    "engagement_minute_counts",
    "engagement_refused",
    "engagement_status",
    "engagement_ticks",
    "tidemill_volumes",
)


@pytest.mark.parametrize("asked", [*QUESTIONS, *VIEWS])
def test_duckdb_answers_it_too(current: TestLake, asked: str) -> None:
    """Each question and each view, cell by cell, but for the age at the time of asking."""
    text = f"SELECT * FROM {asked}"
    if asked in QUESTIONS:
        text = read_only((FOLDER / "adhoc" / f"{asked}.sql").read_text(encoding="utf-8"))
    root, definitions = current.lake.place.folder, [load("engagement")]
    assert root is not None
    names, rows = DuckDBEngine(root, definitions).answer(text)
    by_spark = questions.answer(current.spark, text)
    assert list(names) == by_spark["columns"]
    aged = [place for place, name in enumerate(names) if name == "age_seconds"]
    mine, theirs = (
        [[cell for place, cell in enumerate(row) if place not in aged] for row in answer]
        for answer in (rows, by_spark["rows"])
    )
    if asked in VIEWS:  # in no order
        mine, theirs = sorted(mine, key=json_of), sorted(theirs, key=json_of)
    assert json_of(mine) == json_of(theirs)


def test_every_answer_has_its_question() -> None:
    assert sorted(path.stem for path in ANSWERS.glob("*.txt")) == QUESTIONS
    assert len(QUESTIONS) >= 20


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_says_what_it_asks_yields_and_reads(question: str) -> None:
    """The head names it, its grain, and exactly the tables and views that it reads."""
    text = (FOLDER / "adhoc" / f"{question}.sql").read_text(encoding="utf-8")
    head = text[: text.index("\n-- read:")]
    assert re.match(rf"-- {question}: .+\?\n-- grain: one row", head)
    named = set(re.findall(r"\b(?:engagement|tidemill)_\w+", head))
    assert named == set(re.findall(r"(?:FROM|JOIN) ((?:engagement|tidemill)_\w+)", text))


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_only_reads(question: str) -> None:
    """So `tidemill query "$(tidemill sql top_titles)"` takes it."""
    text = statement(question, load("engagement").views[0])
    assert read_only(text) == text


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_runs_as_its_file_stands(question: str) -> None:
    """Nothing is put into it, so it can be copied to a SQL editor from the file."""
    assert "$" not in (FOLDER / "adhoc" / f"{question}.sql").read_text(encoding="utf-8")


def test_a_difference_names_row_column_and_both_values() -> None:
    expected = TextTable.parse("gti | views\nt1 | 3\nt2 | null")
    told = TextTable.of(["gti", "views"], [("t1", 3), ("t2", 4)]).differences(expected)
    assert told.startswith("row 2, views: '4', expected 'null'\n")


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_analysts_page_lists_it(question: str) -> None:
    """With the sentence of its head."""
    root = FOLDER.parent
    head = (FOLDER / "adhoc" / f"{question}.sql").read_text(encoding="utf-8")
    asked = head[: head.index("\n")].removeprefix(f"-- {question}: ")
    page = (root / "docs" / "analysts.md").read_text(encoding="utf-8")
    assert f"| [{question}](../sql/adhoc/{question}.sql) | {asked} |" in page
