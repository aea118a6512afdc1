"""Totals of windows: open ones that change, closed ones, totals of totals, and totals of pairs."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakes import at
from stream_lakes import Event, StreamLake, declared, drawn, in_duckdb, join
from tidemill.lake import times
from tidemill.pipeline.steps import stream_step

pytestmark = pytest.mark.stream

BY_ITEM: dict[str, Any] = {
    "keys": ["item"],
    "length": "10m",
    "watermark": "10m",
    "compute": {"events": "count", "paid": {"sum": "price"}, "kinds": {"approx_distinct": "kind"}},
}


def found(
    lake: StreamLake, name: str, *columns: str
) -> dict[tuple[Any, datetime], tuple[Any, ...]]:
    rows = times.collect(lake.lake.spark.table(name))
    totals = {
        (row.asDict().get("item"), row["window_start"]): tuple(row[n] for n in columns)
        for row in rows
    }
    assert len(totals) == len(rows), "a window stands twice"
    return totals


def oracle(events: list[Event], text: str) -> dict[tuple[Any, datetime], tuple[Any, ...]]:
    """What DuckDB says: item and window_start, then the rest."""
    with in_duckdb(events) as connection:
        rows = connection.execute(text).fetchall()
    return {(item, start): tuple(rest) for item, start, *rest in rows}


TUMBLING = """SELECT item, time_bucket(INTERVAL 10 MINUTE, events."at"), count(*), sum(price)
              FROM events GROUP BY ALL"""
SLIDING = """SELECT item, start, count(*) FROM events, generate_series(
               time_bucket(INTERVAL 4 MINUTE, events."at") - INTERVAL 12 MINUTE,
               time_bucket(INTERVAL 4 MINUTE, events."at"), INTERVAL 4 MINUTE) AS t(start)
             WHERE events."at" < start + INTERVAL 12 MINUTE GROUP BY ALL"""


def test_open_windows_are_there_and_change(spark: SparkSession, tmp_path: Path) -> None:
    sliding = {**BY_ITEM, "length": "12m", "every": "4m", "compute": {"events": "count"}}
    streams = [
        {"name": "tumbling", "totals": {**BY_ITEM, "partition": "item"}},
        {"name": "sliding", "totals": sliding},
    ]
    lake = StreamLake.new(spark, tmp_path / "lake", declared(streams))
    events = drawn(7, at("08:00"), 90)
    for first in range(0, len(events), 30):
        lake.feed(*events[first : first + 30])
        lake.run()
        so_far = events[: first + 30]
        assert found(lake, "tumbling", "events", "paid") == {
            key: (count, int(paid)) for key, (count, paid) in oracle(so_far, TUMBLING).items()
        }
        assert found(lake, "sliding", "events") == oracle(so_far, SLIDING)
    assert lake.lake.tables.streams["tumbling"].partitioned_by == ("item",)
    (newest,) = lake.lake.commits("tumbling", 1)
    assert newest.operation == "MERGE"

    rows = spark.table("tumbling").drop("batch").limit(3)
    stream_step.stream_batch(rows, 0, lake=lake.lake, name="tumbling")  # long done
    assert lake.lake.commits("tumbling", 1)[0].version == newest.version


def test_an_average_of_counts_comes_when_its_hour_is_closed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Two users, six windows of ten minutes each, from 11:00 on: 8 to 12 and 10 to 15 events; the
    averages are 10 and 12.5. They come when the watermark has passed 12:01, not before."""
    counts = {"u1": [8, 9, 10, 11, 10, 12], "u2": [10, 11, 12, 13, 14, 15]}
    then = {"length": "1h", "compute": {"average": {"mean": "events"}}}
    ten = {"keys": ["item"], "length": "10m", "watermark": "1m", "compute": {"events": "count"}}
    streams = [
        {"name": "averages", "totals": {**ten, "then": then}},
        {"name": "counts", "totals": {**ten, "emit": "closed"}},
    ]
    lake = StreamLake.new(spark, tmp_path / "lake", declared(streams))
    start = at("10:00")
    events: list[Event] = [
        ("view", user, start + timedelta(minutes=10 * window, seconds=number))
        for user, numbers in counts.items()
        for window, count in enumerate(numbers)
        for number in range(count)
    ]
    lake.feed(*events)
    lake.run()
    lake.feed(("view", "u3", at("11:01")))  # the watermark is 11:00, the end of the hour
    lake.run()
    assert found(lake, "averages", "average") == {
        ("u1", start): (10.0,),
        ("u2", start): (12.5,),
    }
    by_table = spark.sql(
        "SELECT item, avg(events) AS average FROM counts WHERE window_start < '2026-11-21 11:00' "
        "GROUP BY item"
    )
    assert {row["item"]: row["average"] for row in by_table.collect()} == {"u1": 10.0, "u2": 12.5}
    assert spark.table("counts").count() == 12


def test_nothing_comes_before_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    then = {"length": "1h", "compute": {"average": {"mean": "events"}}}
    ten = {"keys": ["item"], "length": "10m", "watermark": "1m", "compute": {"events": "count"}}
    streams = [{"name": "averages", "totals": {**ten, "then": then}}]
    lake = StreamLake.new(spark, tmp_path / "lake", declared(streams))
    lake.feed(("view", "u1", at("10:00")), ("view", "u1", at("10:59:59")))
    lake.run()
    lake.feed(("view", "u3", at("11:00:59")))
    lake.run()
    assert found(lake, "averages", "average") == {}


def test_pairs_are_counted_by_the_hour(spark: SparkSession, tmp_path: Path) -> None:
    """Clicks of each ad and hour, of those that follow an impression within the hour."""
    totals = {
        "keys": ["item"],
        "of": "buy",
        "length": "1h",
        "emit": "closed",
        "compute": {"pairs": "count", "slowest": {"max": "seconds_between"}},
    }
    streams = [{"name": "bought", "join": join(), "totals": totals}]
    lake = StreamLake.new(spark, tmp_path / "lake", declared(streams))
    events = drawn(9, at("06:00"), 240)
    for first in range(0, len(events), 80):
        lake.feed(*events[first : first + 80])
        lake.run()
    lake.feed(("look", "z", at("11:59")))
    lake.run()
    text = """SELECT a.item, date_trunc('hour', b."at"), count(*), max(epoch(b.at) - epoch(a.at))
        FROM events a JOIN events b ON a.item = b.item AND a.kind = 'ask' AND b.kind = 'buy'
          AND b.at BETWEEN a.at AND a.at + INTERVAL 1 HOUR GROUP BY ALL"""
    assert found(lake, "bought", "pairs", "slowest") == oracle(events, text)
