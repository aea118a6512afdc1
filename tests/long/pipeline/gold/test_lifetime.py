"""Lifetimes: exact for as long as the lake exists, whatever maintenance has folded."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import sales
from lakes import NOW, at
from sales import CASES, Sales, brute, nothing, same
from tidemill.config.settings import Clock
from tidemill.errors import UsageError
from tidemill.features import count
from tidemill.lake.commits import failpoints
from tidemill.lake.parameters import literal
from tidemill.operations import maintenance, reconcile
from tidemill.pipeline import on_demand
from tidemill.pipeline.silver import minute_buckets
from tidemill.training.training_set import Wanted, training_set

WINDOWS = {"lifetime": timedelta(days=40_000), "3h": timedelta(hours=3)}
ADDS_UP = ("count", "sum", "mean", "variance", "stddev")
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
OLD = literal(datetime.fromisoformat("1901-01-01T00:00:00+00:00"))


def declared(adds_up: bool) -> list[tuple]:
    return [case for case in CASES if not adds_up or case[0].aggregate in ADDS_UP]


def new(spark: SparkSession, root: Path, cases: list[tuple], **words: object) -> Sales:
    features = [feature.over(*WINDOWS) for feature, _, _ in cases]
    definition = sales.declare(features, history="1d").overridden(
        {"refresh": "incremental", **words}
    )
    return Sales.new(spark, root, definition)


def check(lake: Sales, known: list[sales.Sale], names: set[str]) -> None:
    gold, wanted = lake.gold(), brute(known, lake.as_of(), WINDOWS, MINUTE)
    assert set(gold) == set(wanted)
    for card, row in wanted.items():
        wrong = {n: (gold[card][n], v) for n, v in row.items() if n in names}
        wrong = {n: pair for n, pair in wrong.items() if not same(*pair)}
        assert not wrong, f"{card} at {lake.as_of()}: {wrong}"


def fold(lake: Sales) -> list[str]:
    steps = maintenance.plan(lake.lake, Clock(NOW), ("expire",))
    return [done.result for done in maintenance.maintain(lake.lake, steps)]


def old_rows(lake: Sales) -> tuple[int, int]:
    """The keys with a base, and the bucket rows between the base and the history."""
    rows = lake.lake.spark.table("sales_buckets")
    edge = literal(lake.as_of() - DAY)
    between = rows.where(f"bucket_start > {OLD}").where(f"bucket_hour < {edge} - INTERVAL '1' HOUR")
    return rows.where(f"bucket_start < {OLD}").count(), between.count()


@pytest.mark.parametrize("adds_up", [True, False], ids=["adds_up", "does_not"])
def test_four_days_of_a_day_s_history(
    adds_up: bool, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each day's events and some of three days before: gold is brute force's before and after the
    folding, as it is after one that died, and training's values are brute force's too."""
    cases = declared(adds_up)
    lake = new(spark, tmp_path / "lake", cases)
    names = {column.name for column in lake.view.shown}
    known: list[sales.Sale] = []
    drawn = random.Random(4)
    for day in range(4):
        start = at("00:10") - (5 - day) * DAY
        batch = sales.draw(drawn, start, 1400, 25) + sales.draw(drawn, start - 3 * DAY, 4300, 4)
        known += batch
        lake.feed(batch)
        check(lake, known, names)
        if day == 2:
            with monkeypatch.context() as failing:
                failpoints._reached.clear()
                failing.setenv(failpoints.VARIABLE, "expiry.noted")
                with pytest.raises(failpoints.Injected):
                    fold(lake)
            assert reconcile.reconcile(lake.lake, lake.view).different == 0
        before = lake.as_of()
        assert all("folded what is before" in result for result in fold(lake))
        bases, others = old_rows(lake)
        assert bases > 0 == others
        assert fold(lake) == [], "there is nothing more to fold"
        compared = reconcile.reconcile(lake.lake, lake.view)
        assert (compared.different, compared.keys) == (0, 3)
        assert lake.refresh(before + MINUTE).mode == "incremental"
        check(lake, known, names)
    assert lake.refresh(lake.as_of() + 2 * DAY).mode in ("incremental", "recompute")
    check(lake, known, names)
    _in_training(lake, known, names, drawn)
    with pytest.raises(UsageError, match="is before the oldest kept bucket"):
        on_demand.refresh_to(lake.lake, lake.view, lake.as_of() - 4 * DAY)


def _in_training(
    lake: Sales, known: list[sales.Sale], names: set[str], drawn: random.Random
) -> None:
    newest = max(event.at for event in known)
    moments = [newest - timedelta(seconds=drawn.randrange(11 * 3600)) for _ in range(8)]
    given = [(number, f"c{number % 4}", moment) for number, moment in enumerate(moments)]
    frame = lake.lake.spark.createDataFrame(given, "row INT, card STRING, timestamp TIMESTAMP")
    definition = lake.lake.pipeline
    assert definition.kept_of(lake.view) == DAY
    lake.refresh(newest.replace(second=0, microsecond=0) + MINUTE)
    for row in training_set(frame, Wanted([(lake.lake, lake.view)])).rows.collect():
        _, card, moment = given[row["row"]]
        edge = moment.replace(second=0, microsecond=0)
        wanted = brute(known, edge, WINDOWS, MINUTE).get(card) or nothing(WINDOWS)
        wrong = {n: (row[n], v) for n, v in wanted.items() if n in names and not same(row[n], v)}
        assert not wrong, f"{card} at {moment}: {wrong}"


def test_what_gold_has_not_seen_is_not_folded(spark: SparkSession, tmp_path: Path) -> None:
    lake = new(spark, tmp_path / "lake", declared(adds_up=True))
    lake.feed(sales.draw(random.Random(1), at("00:00") - 3 * DAY, 4000, 20))
    rows = sales.frame(spark, lake.view, sales.draw(random.Random(2), at("00:00") - 3 * DAY, 60, 3))
    minute_buckets.bucket(rows, lake.batch + 1, lake=lake.lake, view=lake.view)
    assert fold(lake) == ["a refresh comes first"]
    lake.refresh(lake.as_of())
    assert "folded" in fold(lake)[0]
    assert reconcile.reconcile(lake.lake, lake.view).different == 0


def test_a_sum_that_its_column_cannot_hold_stays_apart(spark: SparkSession, tmp_path: Path) -> None:
    """Two sums of 2^62 and one more are too large together; -2^62 makes them fit again."""
    lake = new(spark, tmp_path / "lake", [c for c in CASES if c[1] == "points_sum"])
    (one,) = sales.draw(random.Random(1), at("00:00") - 4 * DAY, 60, 1)
    huge = [sales.Sale(**{**vars(one), "points": 2**62, "at": one.at + n * MINUTE}) for n in (0, 1)]
    lake.feed([*huge, sales.Sale(**{**vars(one), "points": 1, "at": at("00:00")})])
    assert lake.gold()[one.card]["points_sum_lifetime"] is None
    assert "folded" in fold(lake)[0]
    assert lake.lake.spark.table("sales_buckets").count() == 3
    lake.feed([sales.Sale(**{**vars(one), "points": -(2**62), "at": at("00:01")})])
    assert lake.gold()[one.card]["points_sum_lifetime"] == 2**62 + 1
    assert reconcile.reconcile(lake.lake, lake.view).different == 0


def test_with_an_offset(spark: SparkSession, tmp_path: Path) -> None:
    """All but the newest six hours; the history keeps those one by one."""
    features = [count().over("lifetime").offset("6h"), count().over("lifetime")]
    definition = sales.declare(features, history="12h").overridden({"refresh": "incremental"})
    lake = Sales.new(spark, tmp_path / "lake", definition)
    known: list[sales.Sale] = []
    for day in range(3):
        batch = sales.draw(random.Random(day), at("00:00") - (3 - day) * DAY, 1400, 20)
        known += batch
        lake.feed(batch)
        fold(lake)
        lake.refresh(lake.as_of() + timedelta(hours=2))
        for card, row in lake.gold().items():
            mine = [sales.cut(e.at, MINUTE) for e in known if e.card == card]
            edge = lake.as_of() - timedelta(hours=6)
            assert row["count_lifetime_6h_ago"] == sum(e < edge for e in mine)
            assert row["count_lifetime"] == len(mine)
    assert lake.lake.spark.table("sales_buckets").where(F.col("bucket_start") < F.expr(OLD)).count()
