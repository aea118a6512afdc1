"""Clean: every record is accepted, quarantined or a duplicate, once."""

from __future__ import annotations

import random
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakes import Event, Lakes, TestLake, at, payload
from tidemill.lake.session.temporary_conf import temporary_conf
from tidemill.pipeline.silver import clean as silver
from tidemill.pipeline.steps import clean_step

pytestmark = [pytest.mark.connect, pytest.mark.zones]


def event(event_id: str | None, time: str = "10:00", gti: str = "g") -> str:
    found: Event = (event_id, "p", gti, "view", at(time))
    return payload(found)


def counts(lake: TestLake) -> list[tuple[int, int, int, int]]:
    """Events, accepted, quarantined, duplicates of each batch, as its commit says, oldest first."""
    names = ("events", "accepted", "quarantined", "duplicates")
    return [tuple(told[name] for name in names) for told in reversed(lake.ledgers("events"))]  # type: ignore[misc]


def kept(lake: TestLake) -> list[tuple[str, str]]:
    rows = lake.events().select("record_id", "event_id").orderBy("record_id").collect()
    return [tuple(row) for row in rows]


def test_within_a_batch_the_smallest_record_is_kept(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.clean([event("a"), event("a"), event("b")])
    assert kept(lake) == [("r000001", "a"), ("r000003", "b")]
    assert counts(lake) == [(3, 2, 0, 1)]


def test_across_batches_the_accepted_one_stays_however_late(lakes: Lakes) -> None:
    #   batch 0: a at 10:00     batch 1: newer events     batch 2: a at 10:00 again
    lake = lakes.new()
    lake.clean([event("a")], batch=0)
    lake.clean([event("b", "11:30"), event("c", "20T01:00")], batch=1)
    lake.clean([event("a"), event("c", "20T01:00")], batch=2)
    assert [one for _, one in kept(lake)] == ["a", "b", "c"]
    assert counts(lake) == [(1, 1, 0, 0), (2, 2, 0, 0), (2, 0, 0, 2)]


def test_the_same_id_at_another_time_is_another_event(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.clean([event("a", "10:00"), event("a", "10:01")])
    assert counts(lake) == [(2, 2, 0, 0)]


def test_events_without_an_id_are_never_duplicates(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.clean([event(None), event(None)], batch=0)
    lake.clean([event(None)], batch=1)
    assert counts(lake) == [(2, 2, 0, 0), (1, 1, 0, 0)]


def test_events_without_an_id_are_spread_over_the_tasks(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one time all of them: they stay in the tasks that they came in."""
    lake = lakes.new()
    lake.clean([event(None), event("a")], batch=0)
    sizes: list[int] = []
    write = silver._write_events

    def seeing(rows: DataFrame, *rest: Any) -> None:
        numbers = rows.withColumn("task", F.spark_partition_id()).groupBy("task").count()
        sizes.extend(row["count"] for row in numbers.collect())
        write(rows, *rest)

    monkeypatch.setattr(silver, "_write_events", seeing)
    settings = {
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    with temporary_conf(lake.spark, settings):
        rows = lake.bronze(event(None) for _ in range(400)).repartition(3)
        clean_step.clean_batch(rows, 1, lake=lake.lake)
    assert len(sizes) == 3 and max(sizes) < 200, sizes


def test_the_rows_of_each_file_are_in_the_order_of_time(lakes: Lakes) -> None:
    lake, draw = lakes.new(), random.Random(3)
    times = [f"{hour:02}:{minute:02}" for hour in (8, 9, 10) for minute in range(0, 60, 7)]
    draw.shuffle(times)
    lake.clean([event(f"e{time}", time) for time in times])
    files = list((lakes.made[-1] / "engagement_events").glob("event_hour=*/*.parquet"))
    for file in files:
        rows = pq.ParquetFile(file).read(["event_timestamp"])
        found = rows["event_timestamp"].to_pylist()
        assert len(found) == 9 and found == sorted(found)
    assert len(files) == 3


def test_a_refused_event_makes_no_duplicate(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.clean([event("a", gti=""), event("a")])
    assert counts(lake) == [(2, 1, 1, 0)]


def test_a_refused_record_keeps_its_payload_position_and_batch(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.clean(["{bad"], batch=0)
    lake.clean([event("a"), "{bad again"], batch=1)
    names = ("record_id", "raw_payload", "topic", "partition", "offset", "reasons", "batch")
    rows = lake.table("quarantine").select(*names).orderBy("record_id").collect()
    assert [tuple(row) for row in rows] == [
        ("r000001", "{bad", "t", 0, 1, ["malformed"], 0),
        ("r000003", "{bad again", "t", 0, 3, ["malformed"], 1),
    ]
    assert counts(lake) == [(1, 0, 1, 0), (2, 1, 1, 0)]


def test_an_empty_batch_writes_nothing(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.clean([], batch=0)
    assert lake.ledgers("events") == [] and lake.ledgers("quarantine") == []
