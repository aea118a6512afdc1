"""Every aggregate against brute force, at every edge and by every way of refreshing."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import sales
from lakes import NOW, at
from sales import CASES, Sales, nothing, same
from tidemill.config.settings import Clock, Place
from tidemill.features import FeatureView, count
from tidemill.features.aggregates import SHIPPED
from tidemill.lake.open import open_for_writing
from tidemill.operations import reconcile
from tidemill.pipeline.silver import hour_buckets
from tidemill.pipeline.steps import feature_step

WINDOWS = {"3h": timedelta(hours=3), "10m": timedelta(minutes=10)}
FEATURES = [feature.over(*WINDOWS) for feature, _, _ in CASES]


def test_every_shipped_aggregate_has_a_case() -> None:
    named = {feature.aggregate for feature, _, _ in CASES}
    assert named == {*SHIPPED, "ratio"}


def check(lake: Sales, events: list[sales.Sale], windows: dict[str, timedelta]) -> None:
    wanted = sales.brute(events, lake.as_of(), windows, lake.view.bucket_length)
    rows = lake.gold()
    for card, row in rows.items():
        expected = wanted.get(card) or nothing(windows)
        wrong = {
            name: (row[name], value)
            for name, value in expected.items()
            if not same(row[name], value)
        }
        assert not wrong, f"{card} at {lake.as_of()}: {wrong}"
    assert set(wanted) <= set(rows)


def test_all_aggregates_are_what_brute_force_says(spark: SparkSession, tmp_path: Path) -> None:
    drawn = random.Random(5)
    lake = Sales.new(spark, tmp_path / "lake", sales.declare(FEATURES))
    known: list[sales.Sale] = []
    start = at("06:00")
    for batch in range(3):
        new = sales.draw(drawn, start + timedelta(minutes=20 * batch), 25, 40)
        known += new
        lake.feed(new)
        check(lake, known, WINDOWS)
    hour_buckets.bring_up(lake.lake, lake.view)
    late = sales.draw(drawn, at("05:30"), 60, 10)
    lake.feed(late)
    known += late
    check(lake, known, WINDOWS)
    for as_of in (at("07:20"), at("09:03"), at("09:47"), at("10:30")):
        lake.refresh(as_of)
        check(lake, known, WINDOWS)
        assert reconcile.reconcile(lake.lake, lake.view).different == 0
    assert not any(
        any(row.values())
        for row in sales.brute(known, at("10:30"), WINDOWS, timedelta(minutes=1)).values()
    )


def test_bucket_rows_without_partials_count_as_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """As `rebuild --features` leaves them: a row from before has none of what is added, and what is
    added has none of what was there."""
    lake = Sales.new(spark, tmp_path / "lake", sales.declare(FEATURES))
    known = sales.draw(random.Random(6), at("06:00"), 120, 60)
    lake.feed(known)
    required = [f.name for f in spark.table("sales_buckets").schema if not f.nullable]
    keys = ("card", "bucket_start", "batch", "bucket_hour")
    for name in required:
        if name not in keys:
            spark.sql(f"ALTER TABLE sales_buckets ALTER COLUMN {name} DROP NOT NULL")
    empty = spark.table("sales_buckets").select(*keys)
    stranger = empty.withColumn("card", F.lit("nobody"))
    empty.union(stranger).write.format("delta").mode("append").saveAsTable("sales_buckets")
    lake.refresh(at("08:00"))
    check(lake, known, WINDOWS)
    hour_buckets.bring_up(lake.lake, lake.view)
    lake.feed(more := sales.draw(random.Random(7), at("08:00"), 30, 10))
    for as_of in (at("09:03"), at("12:00")):
        lake.refresh(as_of)
        check(lake, known + more, WINDOWS)


def test_views_of_one_source_share_one_read_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    read = spark.sparkContext.accumulator(0)

    def seen(card):  # no hints: from them Spark would choose another kind of function
        read.add(1)
        return card

    one = sales.declare([count().over("1h")])
    other = one.views[0].words() | {
        "name": "merchants",
        "features": [{"sum": "points", "over": ["3h"]}],
    }
    definition = one.overridden({"views": (one.views[0], FeatureView(**other))})
    lake = open_for_writing(spark, Place(tmp_path / "lake"), definition)
    drawn = sales.draw(random.Random(3), at("06:00"), 60, 40)
    events = sales.frame(spark, one.views[0], drawn)
    watched = events.withColumn("card", F.udf(seen, returnType="string")("card"))
    feature_step.feature_batch(watched, 0, lake=lake, clock=Clock(NOW), follows="event")
    assert read.value == len(drawn)
    assert [reconcile.reconcile(lake, view).different for view in definition.views] == [0, 0]
