"""A window that holds more than a feature's type: that value is null, counted, and all others are
exact, whichever way gold is brought up to date and however the events were split."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import carts
from carts import Carts, Row, payload
from lakes import at
from tidemill.errors import RunError
from tidemill.features import (
    Feature,
    FeatureView,
    bloom,
    count,
    cuckoo,
    distinct,
    max_,
    mean,
    ratio,
    stddev,
    sum_,
)
from tidemill.features.columns import OVERFLOWED
from tidemill.features.ring_buffer import Ring, Shape
from tidemill.lake.tables import ViewTables, pipeline_tables
from tidemill.pipeline import batch_log
from tidemill.pipeline.silver import hour_buckets

MOST = 2**63 - 1
WINDOWS = {"1h": timedelta(hours=1), "10m": timedelta(minutes=10)}
ADDING: list[Feature] = [
    feature.over(*WINDOWS)
    for feature in (
        count(),
        sum_("x"),
        mean("x"),
        stddev("x"),
        ratio("x_sum", "count").named("per"),
    )
]
HELD: list[Feature] = [
    feature.over(*WINDOWS)
    for feature in (
        max_("x"),
        distinct("x", limit=2),
        cuckoo("x", capacity=2),
        bloom("s", capacity=1),
    )
]


def brute(rows: Iterable[Row], as_of: datetime, feature: str) -> Any:
    """A feature over rows in plain Python: null where its value, or a part of it, does not fit."""
    name, _, window = feature.rpartition("_")
    start = as_of - WINDOWS[window]
    xs = [x for _, x, time in rows if start <= time.replace(second=0) < as_of]
    total, squares = sum(xs), sum(x * x for x in xs)
    fits = -(2**63) <= total <= MOST
    spread = squares * len(xs) - total * total
    known = fits and max(squares, squares * len(xs), total * total) < 10**38
    values = {
        "count": len(xs),
        "x_sum": total if fits else None,
        "x_mean": total / len(xs) if xs and fits else None,
        "per_ratio": total / len(xs) if xs and fits else None,
        "x_stddev": math.sqrt(spread / len(xs) / (len(xs) - 1)) if len(xs) > 1 and known else None,
        "x_max": max(xs, default=None),
        "x_distinct": len(set(xs)) if len(set(xs)) <= 2 else None,
    }
    return values[name]


def agrees(lake: Carts, rows: list[Row], place: int = 0) -> None:
    """Every cell against brute force, what is null against the ledger, and a recompute."""
    view = lake.lake.pipeline.views[place]
    as_of = lake.lake.gold_state(view).as_of
    assert as_of is not None
    gold, overflowed = lake.gold(view.name), dict[str, int]()
    for k in sorted({k for k, _, _ in rows}):
        mine = [row for row in rows if row[0] == k]
        for column in view.shown:
            if column.name.startswith(("x_cuckoo", "s_bloom")):
                continue
            wanted = brute(mine, as_of, column.name)
            found = gold[k][column.name] if k in gold else brute([], as_of, column.name)
            near = isinstance(wanted, float) and isinstance(found, float)
            same = math.isclose(found, wanted, rel_tol=1e-12) if near else found == wanted
            assert same, (k, column.name, found, wanted)
        for name in filter(None, (gold.get(k, {}).get(OVERFLOWED) or "").split(",")):
            assert gold[k][name] is None
            overflowed[name] = overflowed.get(name, 0) + 1
    assert lake.ledger(place).get("overflowed", {}) == overflowed
    assert lake.different(place) == 0


def step(lake: Carts, known: list[Row], *rows: Row) -> None:
    known += rows
    lake.step(payload(k, x, time) for k, x, time in rows)


def test_a_sum_beyond_a_bigint_is_null_for_its_key_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Two valid records, of one minute or of two; then the value fits again."""
    lake, known = Carts.new(spark, tmp_path / "lake", carts.view("adding", ADDING)), list[Row]()
    step(lake, known, ("a", 5, at("09:00")), ("b", 7, at("09:00")), ("c", 1, at("09:00")))
    assert lake.gold("adding")["a"]["x_sum_1h"] == 5
    step(
        lake, known, ("b", MOST, at("09:01:10")), ("b", MOST, at("09:01:20")), ("a", 6, at("09:01"))
    )
    agrees(lake, known)
    assert lake.gold("adding")["b"]["x_sum_1h"] is None
    assert lake.ledger()["mode"] == "incremental"
    assert lake.ledger()["overflowed"]["x_sum_1h"] == 1
    step(lake, known, ("c", -(2**63), at("09:02")), ("a", 1, at("09:02")))
    agrees(lake, known)
    step(lake, known, ("c", -1, at("09:03")), ("b", -MOST, at("09:03")), ("b", -9, at("09:04")))
    agrees(lake, known)
    assert lake.gold("adding")["b"]["x_sum_1h"] == MOST - 2
    before = lake.gold("adding")
    lake.feature(1)  # the overflowing batch again
    assert lake.gold("adding") == before
    for time in ("09:11", "09:13", "09:59", "10:02", "10:03"):
        lake.refresh(at(time))
        agrees(lake, known)
    lake.refresh(at("10:05"))
    agrees(lake, known)
    assert "overflowed" not in lake.ledger()
    step(lake, known, ("b", 3, at("10:05")))
    agrees(lake, known)
    assert lake.ledger()["mode"] == "incremental"


@pytest.mark.full
def test_any_split_and_either_way_give_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """Extreme values of both signs, in batches: brought along, and counted again with hours."""
    drawn, known = random.Random(5), list[Row]()
    views = (carts.view("adding", ADDING), carts.view("held", HELD))
    lake = Carts.new(spark, tmp_path / "lake", *views)
    extremes = [MOST, -(2**63), MOST // 2, -(2**62), 10**9, -3, 0, 1]
    for number in range(5):
        first = at("08:30") + timedelta(minutes=12 * number)
        rows = [
            (
                drawn.choice("abc"),
                drawn.choice(extremes),
                first + timedelta(seconds=drawn.randrange(900)),
            )
            for _ in range(drawn.choice([4, 25]))
        ]
        step(lake, known, *rows)
        for place in (0, 1):
            agrees(lake, known, place)
    buckets = spark.table("adding_buckets").selectExpr(
        "sum(CAST(x_sum AS DECIMAL(38,0)))", "sum(count)"
    )
    assert tuple(map(int, buckets.collect()[0])) == (sum(x for _, x, _ in known), len(known))
    assert lake.counts() == (len(known), len(known), 0, 0)
    hour_buckets.bring_up(lake.lake, lake.lake.pipeline.views[0])
    pipeline = lake.lake.pipeline.overridden({"refresh": "recompute"})
    lake.lake = replace(lake.lake, pipeline=pipeline)
    for time in ("10:10", "09:40"):
        for place in (0, 1):
            lake.refresh(at(time), place)
            agrees(lake, known, place)


def test_squares_that_no_decimal_holds(spark: SparkSession, tmp_path: Path) -> None:
    lake, known = Carts.new(spark, tmp_path / "lake", carts.view("adding", ADDING)), list[Row]()
    step(
        lake,
        known,
        ("a", MOST, at("09:00:01")),
        ("a", -MOST, at("09:00:02")),
        ("b", 3, at("09:00")),
    )
    step(lake, known, ("b", 5, at("09:01")), ("a", 1, at("09:01")))
    agrees(lake, known)
    row = lake.gold("adding")["a"]
    assert (row["x_sum_1h"], row["x_stddev_1h"], row[OVERFLOWED]) == (
        1,
        None,
        "x_stddev_1h,x_stddev_10m",
    )


def test_a_key_over_capacity_leaves_the_others(spark: SparkSession, tmp_path: Path) -> None:
    lake, known = Carts.new(spark, tmp_path / "lake", carts.view("held", HELD)), list[Row]()
    step(lake, known, *(("a", x, at("09:00")) for x in range(3)), ("b", 1, at("09:00")))
    lake.step(payload("a", 1, at("09:00"), s=str(n)) for n in range(30))
    row, other = lake.gold("held")["a"], lake.gold("held")["b"]
    for name in ("x_distinct_1h", "x_cuckoo_1h", "s_bloom_1h"):
        assert row[name] is None and other[name] is not None, name
    assert lake.ledger()["overflowed"] == {
        f"{name}_{window}": 1
        for name in ("x_distinct", "x_cuckoo", "s_bloom")
        for window in WINDOWS
    }
    step(lake, known, ("b", 2, at("09:30")))
    assert set(lake.ledger()["overflowed"].values()) == {1}
    assert lake.gold("held")["a"]["x_distinct_10m"] == 0
    assert lake.different() == 0


def test_overflows_are_told(spark: SparkSession, tmp_path: Path) -> None:
    lake = Carts.new(spark, tmp_path / "lake", carts.view("adding", [sum_("x").over("1h")]))
    lake.step([payload("a", MOST, at("09:00")), payload("a", 1, at("09:00"))])
    batch_log.record(lake.lake)
    row = spark.table("tidemill_batches").where("view IS NOT NULL").collect()[0]
    assert row["overflowed"] == {"x_sum_1h": 1}
    status = spark.table("adding_status").collect()[0]
    assert status["overflowed"] == '{"x_sum_1h":1}'


def test_stop_names_view_feature_and_key(spark: SparkSession, tmp_path: Path) -> None:
    view = carts.view("adding", [sum_("x").over("1h")], on_overflow="stop")
    lake = Carts.new(spark, tmp_path / "lake", view)
    lake.step([payload("a", 1, at("09:00")), payload("b", 2, at("09:00"))])
    for batch in (1, 1):
        with pytest.raises(
            RunError, match="feature x_sum_1h overflows for 1 keys, the first k=b"
        ) as e:
            lake.step([payload("b", MOST, at("09:01"))], batch=batch)
        assert (e.value.where, e.value.exit_code) == ("view adding", 3)
        lake.records -= 1
    assert lake.gold("adding")["b"]["x_sum_1h"] == 2
    tolerant = view.model_copy(update={"on_overflow": "null"})
    lake.lake = replace(lake.lake, pipeline=lake.lake.pipeline.overridden({"views": (tolerant,)}))
    lake.feature(1)
    assert lake.gold("adding")["b"]["x_sum_1h"] is None
    assert lake.gold("adding")["a"]["x_sum_1h"] == 1


def test_a_lake_made_before_opens_and_goes_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its gold has NOT NULL sums and no column that names overflows."""
    view, declared = carts.view("adding", ADDING), pipeline_tables.view_tables

    def before(view: FeatureView) -> ViewTables:
        now = declared(view)
        columns = [c for c in now.gold.columns if c.name != OVERFLOWED]
        old = (replace(c, nullable=not c.name.startswith("x_sum")) for c in columns)
        return replace(now, gold=replace(now.gold, columns=tuple(old)))

    with monkeypatch.context() as patched:
        patched.setattr(pipeline_tables, "view_tables", before)
        pipeline_tables.of.cache_clear()
        Carts.new(spark, tmp_path / "lake", view)
    pipeline_tables.of.cache_clear()
    assert not spark.table("adding_features").schema["x_sum_1h"].nullable
    lake, known = Carts.new(spark, tmp_path / "lake", view), list[Row]()
    step(lake, known, ("a", MOST, at("09:01")), ("a", 1, at("09:01")), ("b", 1, at("09:01")))
    agrees(lake, known)
    assert lake.gold("adding")["a"]["x_sum_1h"] is None


def test_a_ring_keeps_sums_that_no_bigint_holds() -> None:
    view = carts.view("adding", [count().over("1h"), sum_("x").over("10m", "1h")])
    ring = Ring(Shape.of(view))
    for _ in range(3):
        ring.add(100, (1, MOST))
    ring.add(120, (1, 5))
    assert ring.advance(121) == (4, None, 5)
    stored = ring.rows()
    assert all(abs(part[1]) <= MOST for _, part in stored) and len(stored) == 4
    again = Ring(Shape.of(view), told=ring.told)
    for minute, part in stored:
        again.add(minute, part)
    assert again.buckets == ring.buckets
    again.add(120, (1, -2 * MOST))
    again.add(121, (1, -MOST - 9))
    assert again.advance(122) == (6, -4, None)
