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
from tidemill.features import FeatureView, count, distinct, max_, ratio, sum_
from tidemill.lake.parameters import ask
from tidemill.lake.statements import statement
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


def test_it_is_what_gold_s_own_statement_gives(every: Every) -> None:
    """Two ways to one value: `features`, by which a recompute makes gold, at the same edge."""
    edge = at("09:07")
    lake = every.lake.lake
    args = {"as_of": edge, "batch": every.lake.batch}
    rows = ask(lake.spark, statement("features", every.lake.view), args).collect()
    gold = {row["card"]: row.asDict() for row in rows}
    shown = [c for c in every.lake.view.shown if not c.off]  # a sketch may be off by its accuracy
    for row in answered(every.lake, [(card, at("09:07:59")) for card in CARDS[:3]]):
        mine = {c.name: row[c.name] for c in shown}
        assert mine == {c.name: gold[row["card"]][c.name] for c in shown}


# -- other buckets, offsets, several views ---------------------------------------------------------

FIVE = timedelta(minutes=5)
OFFSETS = [
    count().over("1h"),
    count().over("1h", "2h").offset("30m"),
    max_("points").over("2h").offset("90m"),
    distinct("merchant").over("20m"),
    sum_("points").over("20m", "1d"),
    ratio("merchant_distinct", "count").over("20m").named("variety"),
]


def inside(events: list[sales.Sale], edge: datetime, length: timedelta, ago: timedelta) -> list:
    start, end = edge - ago - length, edge - ago
    return [e for e in events if start <= sales.cut(e.at, FIVE) < end]


def counted(events: list[sales.Sale], edge: datetime) -> dict[str, Any]:
    hour, half = timedelta(hours=1), timedelta(minutes=30)
    near = inside(events, edge, timedelta(minutes=20), timedelta())
    merchants = {e.merchant for e in near if e.merchant is not None}
    early = inside(events, edge, 2 * hour, timedelta(minutes=90))
    return {
        "count_1h": len(inside(events, edge, hour, timedelta())),
        "count_1h_30m_ago": len(inside(events, edge, hour, half)),
        "count_2h_30m_ago": len(inside(events, edge, 2 * hour, half)),
        "points_max_2h_90m_ago": max((e.points for e in early), default=None),
        "merchant_distinct_20m": len(merchants),
        "points_sum_20m": sum(e.points for e in near),
        "points_sum_1d": sum(e.points for e in inside(events, edge, 24 * hour, timedelta())),
        "variety_ratio_20m": len(merchants) / len(near) if near else None,
    }


def test_offsets_and_other_buckets(spark: SparkSession, tmp_path: Path) -> None:
    """Buckets of five minutes: the edge of 09:04:59 is 09:00. Windows that end before it, and two
    views in one set, the features of both named apart."""
    one = sales.declare(OFFSETS, bucket="5m")
    hourly = {"name": "cards", "bucket": "1h", "features": [{"count": {}, "over": ["1h"]}]}
    other = FeatureView(**(one.views[0].words() | hourly))
    definition = one.overridden({"views": (one.views[0], other)})
    spark = spark.newSession()  # its tables are called as those of the other lake
    lake = Sales.new(spark, tmp_path / "lake", definition)
    events = sales.draw(random.Random(21), at("03:00"), 480, 150)
    for view in definition.views:
        bucket(sales.frame(spark, view, events), 0, lake=lake.lake, view=view)
    drawn = random.Random(22)
    moments = [at("05:00") + timedelta(seconds=drawn.randrange(6 * 3600)) for _ in range(25)]
    rows = [(drawn.choice(CARDS), moment) for moment in [*moments, at("09:04:59"), at("09:05")]]
    given = [(number, card, time) for number, (card, time) in enumerate(rows)]
    frame = spark.createDataFrame(given, "row INT, card STRING, timestamp TIMESTAMP")
    wanted = Wanted([(lake.lake, view) for view in definition.views])
    found = {row["row"]: row.asDict() for row in training_set(frame, wanted).rows.collect()}
    for number, (card, moment) in enumerate(rows):
        mine = [event for event in events if event.card == card]
        expected = counted(mine, sales.cut(moment, FIVE))
        named = {"count_1h": "sales_count_1h"}  # the one that both views have
        row = {name: found[number][named.get(name, name)] for name in expected}
        assert row == pytest.approx(expected), f"{card} at {moment}"
        hour = moment.replace(minute=0, second=0)
        kept = [e for e in mine if hour - timedelta(hours=1) <= e.at < hour]
        assert found[number]["cards_count_1h"] == len(kept)


def test_no_event_at_or_after_the_edge_is_in_a_value(every: Every) -> None:
    """The leakage test: the same rows, from a lake that never saw what came at or after the edge.

    known by both          │ edge 09:00      only the first lake knows
    ▪ ▪  ▪   ▪  ▪  ▪  ▪ ▪  │ ▪  ▪ ▪  ▪ ...
    """
    edge = at("09:00")
    before = [event for event in every.events if event.at < edge]
    for row, card in zip(
        answered(every.lake, [(c, edge + timedelta(seconds=59)) for c in CARDS]), CARDS, strict=True
    ):
        wanted = sales.brute(before, edge, WINDOWS, MINUTE).get(card) or nothing(WINDOWS)
        assert not {n: row[n] for n, v in wanted.items() if not same(row[n], v)}
