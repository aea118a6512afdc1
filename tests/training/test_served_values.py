"""mode="served": what gold answered at a time, late events from when they came on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakes import Lakes, TestLake, at
from tidemill.errors import LakeError, UsageError
from tidemill.operations import maintenance
from tidemill.pipeline.gold import history_feed
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
