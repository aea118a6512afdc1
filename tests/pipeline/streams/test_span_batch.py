"""Each key's first and last event, whatever order they come in."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakes import at
from stream_lakes import Event, StreamLake, declared
from tidemill.lake import times
from tidemill.pipeline.steps import stream_step

SPANS = declared(
    [{"name": "known", "span": {"keys": ["item"], "where": "kind != 'robot'", "columns": ["kind"]}}]
)


def oracle(events: list[Event]) -> dict[str, tuple[Any, ...]]:
    found: dict[str, tuple[Any, ...]] = {}
    for item in {item for kind, item, _ in events if kind != "robot"}:
        mine = sorted(
            (time, number, kind)
            for number, (kind, of, time) in enumerate(events)
            if of == item and kind != "robot"
        )
        (first, _, first_kind), (last, _, last_kind) = mine[0], mine[-1]
        found[item] = (first, last, first_kind, last_kind)
    return found


def found(lake: StreamLake) -> dict[str, tuple[Any, ...]]:
    rows = times.collect(lake.lake.spark.table("known"))
    spans = {
        row["item"]: (row["first_at"], row["last_at"], row["first_kind"], row["last_kind"])
        for row in rows
    }
    assert len(spans) == len(rows)
    return spans


def step(lake: StreamLake, *events: Event) -> None:
    lake.feed(*events)
    new = lake.lake.spark.table("shop_events").where(F.col("batch") == lake.batch)
    stream_step.stateless_batch(new, lake.batch, lake=lake.lake, name="known")


def test_spans_are_what_brute_force_says_after_every_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    """In any order, some of them at the same time."""
    choose, lake = random.Random(8), StreamLake.new(spark, tmp_path / "lake", SPANS)
    events: list[Event] = []
    for _ in range(4):
        new = [
            (
                choose.choice(["in", "out", "robot"]),
                choose.choice("abcd"),
                at("20T00:00") + timedelta(hours=choose.randrange(12)),
            )
            for _ in range(6)
        ]
        events += new
        step(lake, *new)
        assert found(lake) == oracle(events)


def test_a_batch_that_changes_nothing_leaves_no_commit(spark: SparkSession, tmp_path: Path) -> None:
    lake = StreamLake.new(spark, tmp_path / "lake", SPANS)
    step(lake, ("in", "a", at("09:00")), ("out", "a", at("10:00")))
    before = lake.lake.commits("known", 1)[0].version
    step(lake, ("in", "a", at("09:30")), ("robot", "b", at("09:30")))
    stream_step.stateless_batch(spark.table("shop_events"), 0, lake=lake.lake, name="known")
    assert lake.lake.commits("known", 1)[0].version == before


@pytest.mark.stream
def test_a_run_brings_spans_to_a_lake_with_a_past(spark: SparkSession, tmp_path: Path) -> None:
    """Declared when there are events already, and a join beside it, of which none are late."""
    lake = StreamLake.new(spark, tmp_path / "lake", declared([]))
    lake.feed(("out", "a", at("10:00")))
    lake.feed(("in", "a", at("09:00")), ("buy", "a", at("09:10")))
    lake.feed(("ask", "a", at("08:50")))
    join = {
        "left": {"name": "ask", "where": "kind = 'ask'", "watermark": "1m"},
        "right": {"name": "buy", "where": "kind = 'buy'", "watermark": "1m"},
        "keys": ["item"],
        "within": "1h",
    }
    (span,) = SPANS.streams
    lake = lake.reopened(declared([span, {"name": "bought", "join": join}]))
    lake.run()
    assert found(lake) == {"a": (at("08:50"), at("10:00"), "ask", "out")}
    assert [row["seconds_between"] for row in lake.rows("bought")] == [1200.0]
