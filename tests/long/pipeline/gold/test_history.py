"""Thirty days of events, newest first, oldest first and in random order: the same result."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import oracle
from lakes import Event, Lakes, TestLake, at, payload
from runs import of_files, reading, run_once, write_file

DAYS, BATCHES, FILES = 30, 5, 3


def month() -> list[Event]:
    """Events over thirty days, most in the last two and near the windows' edges, a few with the
    same id twice; in few hours, for every hour is a file to write."""
    dice = random.Random(11)
    found: list[Event] = []
    for number in range(240):
        day = 0 if number % 2 else dice.choice((1, 2, 9, 16, 23, DAYS - 1))
        back = day * 1440 + dice.choice((0, 0, 60, 720)) + dice.uniform(-20, 20)
        time = at("12:00") - timedelta(minutes=max(back, 0))
        kind = dice.choice(oracle.TYPES)
        found.append((f"e{number}", f"p{dice.randrange(4)}", f"g{dice.randrange(3)}", kind, time))
    return found + found[::40]


def ordered(order: str, batches: int = BATCHES) -> list[list[Event]]:
    """The events in a few batches, in the order named."""
    events = sorted(month(), key=lambda event: event[4])
    if order == "newest":
        events.reverse()
    if order == "random":
        random.Random(3).shuffle(events)
    size = -(-len(events) // batches)
    return [events[start : start + size] for start in range(0, len(events), size)]


def check(lake: TestLake) -> None:
    events = month()
    assert lake.gold() == oracle.features(events, oracle.as_of(events))  # type: ignore[arg-type]
    minutes = lake.table("minute_counts").withColumn("m", F.unix_seconds("bucket_minute"))
    names = ("profile_id", "gti", "event_type", "m", "count")
    found = {tuple(row[:4]): row[4] for row in minutes.select(*names).collect()}
    expected = {(p, g, k, int(m.timestamp())): n for (p, g, k, m), n in counted(events)}
    assert found == expected
    assert lake.different() == 0


def counted(events: list[Event]) -> list[tuple[tuple, int]]:
    return list(oracle.buckets(events).items())


@pytest.mark.parametrize(
    "order",
    ["random", *(pytest.param(order, marks=pytest.mark.full) for order in ("oldest", "newest"))],
)
def test_thirty_days_in_any_order(lakes: Lakes, order: str) -> None:
    lake = lakes.new()
    batches = ordered(order)
    assert len(batches) == BATCHES
    for batch in batches:
        lake.step([payload(event) for event in batch])
    check(lake)


@pytest.mark.stream
def test_thirty_days_as_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    """Newest first through the three queries, a file a batch."""
    folder, root = tmp_path / "in", tmp_path / "lake"
    for number, batch in enumerate(ordered("newest", FILES)):
        write_file(folder, f"{number}.jsonl", map(payload, batch), age=FILES - number)
    definition = of_files(folder).overridden({"max_files_per_trigger": 1})
    rows = run_once(root, definition)
    assert sum(row.query == "land" for row in rows) == FILES
    lake = reading(spark, root)
    check(lake)
