"""Sums that the driver makes once, beside those of rows that Spark brings together."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sales
from lakes import at
from sales import Sales
from tidemill.features import FeatureView, count, max_, mean, ratio, sum_
from tidemill.pipeline.silver.minute_buckets import bucket
from tidemill.training.by_event_time import gathered_sums
from tidemill.training.training_set import Wanted, training_set

BERLIN = {"calendar": "day", "zone": "Europe/Berlin"}
FEATURES = [
    count().over("3h", "10m", BERLIN, "lifetime"),
    count().over("1h").offset("30m"),
    sum_("points").over("3h", "1d"),
    sum_("price").over("20m"),
    mean("points").over("1h"),
    ratio("points_sum", "count").over("3h").named("each"),
]
KEYS = ["card", "points", "ok"]  # a text, a number and a truth


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sales]:
    """Two views whose terms all add up, of one key and of three; two batches, the second late."""
    one = sales.declare(FEATURES)
    three = FeatureView(**(one.views[0].words() | {"name": "by_three", "keys": KEYS}))
    definition = one.overridden({"views": (one.views[0], three)})
    root = tmp_path_factory.mktemp("gathered") / "lake"
    made = Sales.new(spark.newSession(), root, definition)
    drawn = random.Random(31)
    for number, (start, minutes, many) in enumerate((("06:00", 200, 200), ("06:10", 60, 40))):
        batch = sales.draw(drawn, at(start) - timedelta(days=number == 0), minutes, many)
        for view in definition.views:
            rows = sales.frame(made.lake.spark, view, batch)
            bucket(rows, number, lake=made.lake, view=view)
    yield made


def spine(lake: Sales) -> DataFrame:
    """Rows of known keys and others, at times that are known and some that are not."""
    drawn = random.Random(32)
    span = int((at("07:10") - (at("06:00") - timedelta(days=1))).total_seconds())
    rows: list[tuple[Any, ...]] = [
        (
            number,
            drawn.choice(["c0", "c1", "c2", "stranger", ""]),
            drawn.randrange(-3, 30),
            drawn.random() < 0.5,
            at("06:00") - timedelta(days=1) + timedelta(seconds=drawn.randrange(-900, span + 900)),
        )
        for number in range(600)
    ]
    types = "row INT, card STRING, points BIGINT, ok BOOLEAN, timestamp TIMESTAMP"
    frame = lake.lake.spark.createDataFrame(rows, types).withColumn("its.label, 2", F.col("row"))
    return frame.repartition(3)


def answered(lake: Sales, views: list[FeatureView]) -> list[dict[str, Any]]:
    wanted = Wanted([(lake.lake, view) for view in views], outside="null", duplicates="keep")
    rows = training_set(spine(lake), wanted).rows.orderBy("row").collect()
    return [row.asDict() for row in rows]


def reached(lake: Sales, view: FeatureView) -> gathered_sums.GatheredSums | None:
    return gathered_sums.gathered(lake.lake, view, at("06:00"), at("07:00"))


def test_they_are_what_rows_brought_together_give(
    lake: Sales, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of both views in one set, at known and unknown times, of keys with buckets and without."""
    views = [*lake.lake.pipeline.views]
    assert all(reached(lake, view) for view in views)
    found = answered(lake, views)
    monkeypatch.setattr(gathered_sums, "MOST_NUMBERS", 0)
    assert not any(reached(lake, view) for view in views)
    assert found == answered(lake, views)
    counted = [row["sales_count_lifetime"] for row in found]
    assert None in counted and 0 in counted and max(filter(None, counted)) > 20
    assert any(row["by_three_count_lifetime"] for row in found)


def test_who_else_reads_the_rows_is_spark(
    lake: Sales, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Terms that do not add up, more keys than are joined, rows that a vector marks as deleted."""
    with monkeypatch.context() as few:
        few.setattr(gathered_sums, "MOST_KEYS", 2)
        assert reached(lake, lake.view) is None
    other = Sales.new(spark.newSession(), tmp_path / "lake", sales.declare([count().over("1h")]))
    events = sales.draw(random.Random(33), at("06:00"), 60, 50)
    bucket(sales.frame(other.lake.spark, other.view, events), 0, lake=other.lake, view=other.view)
    assert reached(other, other.view) is not None
    highest = sales.declare([count().over("1h"), max_("points").over("1h")]).views[0]
    assert reached(other, highest) is None
    table = "sales_buckets"
    property_ = "'delta.enableDeletionVectors' = 'true'"
    other.lake.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({property_})")
    assert reached(other, other.view) is None


def test_a_set_keeps_the_values_of_its_time(lake: Sales) -> None:
    """Rows are computed when they are asked for; buckets are those of the call."""
    view = lake.view
    wanted = Wanted([(lake.lake, view)], outside="null", duplicates="keep")
    rows = training_set(spine(lake), wanted).rows
    before = sorted(map(str, rows.collect()))
    late = sales.draw(random.Random(34), at("06:30"), 10, 20)
    bucket(sales.frame(lake.lake.spark, view, late), 2, lake=lake.lake, view=view)
    assert sorted(map(str, rows.collect())) == before
    assert sorted(map(str, training_set(spine(lake), wanted).rows.collect())) != before
