"""mode="event": every aggregate at any time, against brute force and the lake's own recompute."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sales
from lakes import at
from sales import CASES, Sales, nothing, same
from tidemill.pipeline.silver.minute_buckets import bucket
from tidemill.training.training_set import Wanted, training_set

MINUTE = timedelta(minutes=1)
WINDOWS = {"3h": timedelta(hours=3), "10m": timedelta(minutes=10)}
CARDS = ("c0", "c1", "c2", "stranger")


@pytest.fixture(scope="module")
def every(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Every]:
    yield Every(spark, tmp_path_factory.mktemp("every") / "lake")


class Every:
    """A lake with every aggregate, fed in three batches, the last one late."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        features = [feature.over(*WINDOWS) for feature, _, _ in CASES]
        self.lake = Sales.new(spark, root, sales.declare(features))
        drawn = random.Random(11)
        self.events: list[sales.Sale] = []
        for start, minutes, many in (("06:00", 120, 90), ("08:30", 90, 60), ("06:15", 60, 20)):
            batch = sales.draw(drawn, at(start), minutes, many)
            self.lake.batch += 1
            rows = sales.frame(spark, self.lake.view, batch)
            bucket(rows, self.lake.batch, lake=self.lake.lake, view=self.lake.view)
            self.events += batch


def answered(lake: Sales, rows: Iterable[tuple[str, datetime]], **words: Any) -> list[dict]:
    given = [(number, card, time) for number, (card, time) in enumerate(rows)]
    frame = lake.lake.spark.createDataFrame(given, "row INT, card STRING, timestamp TIMESTAMP")
    wanted = Wanted([(lake.lake, lake.view)], **words)
    found = training_set(frame, wanted).rows.collect()
    assert len(found) == len(given)
    return [row.asDict() for row in sorted(found, key=lambda row: row["row"])]


def test_a_value_is_what_brute_force_says_at_the_edge(every: Every) -> None:
    """Any aggregate, at any second, of keys with events and without."""
    drawn = random.Random(12)
    span = (at("09:59") - at("05:50")).total_seconds()
    moments = [at("05:50") + timedelta(seconds=drawn.random() * span) for _ in range(40)]
    moments += [at("09:00"), at("08:59:59.999"), at("09:00:00.001"), at("08:10")]
    rows = [(drawn.choice(CARDS), moment) for moment in moments]
    for (card, moment), row in zip(rows, answered(every.lake, rows), strict=True):
        edge = moment.replace(second=0, microsecond=0)
        wanted = sales.brute(every.events, edge, WINDOWS, MINUTE).get(card) or nothing(WINDOWS)
        wrong = {n: (row[n], v) for n, v in wanted.items() if not same(row[n], v)}
        assert not wrong, f"{card} at {moment}: {wrong}"
