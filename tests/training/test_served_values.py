"""mode="served": what gold answered at a time, late events from when they came on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakes import Lakes, TestLake, at
from tidemill.config.settings import Clock
from tidemill.errors import LakeError, UsageError
from tidemill.lake.batches import BatchRow
from tidemill.lake.commits import failpoints
from tidemill.operations import maintenance
from tidemill.operations.after_refresh import AfterRefresh
from tidemill.pipeline.gold import history_feed, refresh
from tidemill.pipeline.silver import minute_buckets
from tidemill.training import past_answers
from tidemill.training.training_set import Wanted, training_set

Asked = tuple[str, datetime]


@pytest.fixture(scope="module")
def day(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, empty_lake: Path
) -> Iterator[TestLake]:
    """Gold at 10:01, at 10:06 with an event of 09:50 that came late, and at 10:06 again with
    another late one; then at 10:30.

        09:50 ▪ (late, by 10:06)   10:00 ▪   10:02 ▪ (late, 2nd at 10:06)   10:05 ▪   10:29 ▪
    """
    lakes = Lakes(spark, tmp_path_factory.mktemp("day"), empty_lake)
    lake = lakes.new(served_history="maintenance")
    lake.feed([("a", "p", "g", "view", at("10:00:10")), ("b", "q", "g", "view", at("09:10"))])
    lake.feed([("c", "p", "g", "view", at("09:50")), ("d", "p", "g", "view", at("10:05"))])
    lake.feed([("e", "p", "g", "view", at("10:02"))])
    lake.feed([("f", "r", "g", "view", at("10:29"))])
    yield lake


def served(lake: TestLake, asked: Iterable[Asked], **words: Any) -> list[int | None]:
    """The views in the hour as gold answered, by row."""
    return values(lake, asked, "view_count_1h", mode="served", **words)


def values(lake: TestLake, asked: Iterable[Asked], column: str, **words: Any) -> list[int | None]:
    given = [(number, who, "g", time) for number, (who, time) in enumerate(asked)]
    schema = "row INT, profile_id STRING, gti STRING, timestamp TIMESTAMP"
    frame = lake.spark.createDataFrame(given, schema)
    wanted = Wanted([(lake.lake, lake.view)], lake.clock, **words)
    rows = training_set(frame, wanted).rows.collect()
    return [row[column] for row in sorted(rows, key=lambda row: row["row"])]


TIMES = [
    ("p", at("10:01")),
    ("p", at("10:05:59.9")),
    ("p", at("10:06")),
    ("q", at("10:01")),
    ("q", at("10:06")),
    ("q", at("10:30")),
    ("r", at("10:06")),
    ("r", at("10:30")),
    ("nobody", at("10:06")),
]
ANSWERS = [1, 1, 4, 1, 1, 0, 0, 1, 0]


def test_a_late_event_is_in_the_answer_from_when_it_came_on(day: TestLake) -> None:
    assert served(day, TIMES) == ANSWERS
    event = values(day, [("p", at("10:01")), ("p", at("10:05:59"))], "view_count_1h")
    assert event == [2, 3]  # what was true: with 09:50, and with 10:02


def test_the_history_goes_on_where_gold_s_files_are_gone(day: TestLake) -> None:
    """The same before it is fed, after, and when nothing but the table is left."""
    steps = maintenance.plan(day.lake, day.clock, ("history",))
    assert [(step.table, step.action) for step in steps] == [("engagement_history", "history")]
    done = maintenance.maintain(day.lake, steps)
    assert done[0].result == "10 rows appended"  # 4 versions, p 3 times, q twice, r
    assert served(day, TIMES) == ANSWERS
    assert maintenance.plan(day.lake, day.clock, ("history",)) == []
    assert history_feed.feed(day.lake, day.view) == 0
    with _vacuumed(day):
        assert served(day, TIMES) == ANSWERS


def test_a_snapshot_and_a_key_s_history(day: TestLake) -> None:
    rows = past_answers.snapshot(day.lake, day.view, at("10:03"), day.clock).collect()
    assert {row["profile_id"]: row["view_count_1h"] for row in rows} == {"p": 1, "q": 1}
    rows = past_answers.history(
        day.lake,
        day.view,
        [("q", "g"), {"gti": "g", "profile_id": "r"}],
        at("10:01"),
        at("10:30"),
        day.clock,
    ).collect()
    assert [(r["profile_id"], r["view_count_1h"], r["valid_to"] is None) for r in rows] == [
        ("q", 1, True)
    ]


def test_a_time_before_the_history_is_refused_with_its_first(day: TestLake) -> None:
    with pytest.raises(UsageError, match=r"1 before .*10:01:00Z.*times from 2026-11-21T10:01:00Z"):
        served(day, [("p", at("10:00:59"))])
    with pytest.raises(UsageError, match="1 after"):
        served(day, [("p", at("10:30:01"))])
    assert served(day, [("p", at("09:00")), ("p", at("10:06"))], outside="null") == [None, 4]
    with pytest.raises(LakeError, match="10:01:00Z or later"):
        past_answers.snapshot(day.lake, day.view, at("09:00"), day.clock)


class _vacuumed:
    def __init__(self, lake: TestLake) -> None:
        self.lake = lake

    def __enter__(self) -> None:
        spark = self.lake.spark
        spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        spark.sql("VACUUM engagement_features RETAIN 0 HOURS")

    def __exit__(self, *_: object) -> None:
        self.lake.spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")


# -- how the history is fed ------------------------------------------------------------------------


def fed_rows(lake: TestLake) -> set[tuple]:
    """The history's rows, but for the times of commits; each is there once."""
    names = ("profile_id", "kind", "begins", "version", "as_of", "view_count_1h")
    rows = [tuple(row) for row in lake.table("history").select(*names).collect()]
    assert len(rows) == len(set(rows))
    return set(rows)


def test_fed_late_often_or_again_it_holds_the_same(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each refresh, once at the end, and killed before and after each append: the same rows."""
    batches = [
        [("a", "p", "g", "view", at("10:00"))],
        [("b", "q", "g", "view", at("09:30"))],
        [("c", "p", "g", "view", at("10:05")), ("d", "q", "g", "select", at("10:01"))],
    ]
    often = lakes.new(served_history="refresh")
    for number, batch in enumerate(batches):
        often.feed(batch)
        told = BatchRow("feature", "", number, at("10:00"), 0, view="engagement")
        AfterRefresh(often.lake).on_batch([told])
    wanted, version = fed_rows(often), history_feed.fed(often.lake, often.view)
    late = lakes.new(served_history="maintenance")
    for number, batch in enumerate(batches):
        late.feed(batch)
        point = ("history.answers_read", "history.written")[number % 2]
        failpoints._reached.clear()
        monkeypatch.setenv(failpoints.VARIABLE, point)
        with pytest.raises(failpoints.Injected):
            history_feed.feed(late.lake, late.view)
        monkeypatch.delenv(failpoints.VARIABLE)
    history_feed.feed(late.lake, late.view)
    assert fed_rows(late) == wanted
    assert history_feed.fed(late.lake, late.view) == version


def test_a_refresh_back_in_time_is_no_answer(lakes: Lakes) -> None:
    """Gold at 10:01, back at 09:31, and at 10:06: what 10:06 leaves as 09:31 had it is there."""
    lake = lakes.new(served_history="maintenance")
    lake.feed([("a", "p", "g", "view", at("10:00")), ("b", "q", "g", "view", at("09:30"))])
    newest = minute_buckets.bucketed(lake.lake, lake.view).batch
    refresh.refresh(lake.lake, lake.view, as_of=at("09:31"), batch=newest)
    history_feed.feed(lake.lake, lake.view)
    assert served(lake, [("p", at("10:01")), ("q", at("10:01"))]) == [1, 1]
    with pytest.raises(UsageError, match="1 before"):
        served(lake, [("q", at("09:31"))])
    lake.feed([("c", "p", "g", "view", at("10:05"))])
    history_feed.feed(lake.lake, lake.view)
    asked = [("p", at("10:01")), ("p", at("10:06")), ("q", at("10:06"))]
    assert served(lake, asked) == [1, 2, 1]


def test_where_nobody_kept_it_there_is_a_gap(lakes: Lakes) -> None:
    """Fed at 10:01; then gold's files go before it is fed at 10:11. q is gone meanwhile.

    10:01 fed        10:06 lost      10:11 fed
      ├─────────────── gap ────────────┤
    """
    views = [lakes.declared() | {"when_empty": "delete"}]
    lake = lakes.new(served_history="maintenance", views=views)
    lake.feed([("a", "p", "g", "view", at("10:00")), ("b", "q", "g", "view", at("19T10:10"))])
    lake.feed([("e", "q", "g", "view", at("20T10:03"))])
    history_feed.feed(lake.lake, lake.view)
    lake.feed([("c", "p", "g", "view", at("10:05"))])
    lake.feed([("d", "p", "g", "view", at("10:10"))])
    with _vacuumed(lake):
        history_feed.feed(lake.lake, lake.view)
    assert lake.ledgers("history")[0]["from_version"] == 2
    views = values(lake, [("p", at("10:01")), ("q", at("10:01"))], "view_count_1d", mode="served")
    assert views == [1, 1]
    later = [("p", at("10:11")), ("q", at("10:11"))]
    assert values(lake, later, "view_count_1d", mode="served") == [3, 0]
    with pytest.raises(UsageError, match=r"1 in a gap of .* without 2026-11-21T10:01:00Z to"):
        served(lake, [("p", at("10:06"))])
    gone = lake.table("history").where("kind = 'gone'").select("profile_id").collect()
    assert [row[0] for row in gone] == ["q"]


def test_by_the_wall_clock_an_answer_holds_from_its_commit_on(lakes: Lakes) -> None:
    lake = lakes.new(follows="wall", served_history="maintenance")
    lake.feed([("a", "p", "g", "view", at("11:59"))])
    (commit,) = [c for c in lake.lake.commits("engagement_features") if c.ledger]
    assert commit.ledger and commit.ledger["as_of"] == "2026-11-21T12:01:00Z"
    after = Clock(commit.at + timedelta(seconds=5))
    asked = [("p", commit.at), ("p", commit.at + timedelta(seconds=4))]
    assert served(replace(lake, clock=after), asked) == [1, 1]
    early = [("p", commit.at - timedelta(milliseconds=1))]
    with pytest.raises(UsageError, match="1 before"):
        served(replace(lake, clock=after), early)
    assert served(replace(lake, clock=after), early, outside="null") == [None]
