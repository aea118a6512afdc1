"""Sums without rounding: a window that was brought along is the window that is counted again, to
the last bit, however long it runs."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sales
from computed import features
from lakes import at
from sales import Sale, Sales
from tidemill.features import Column, FeatureView, count, mean, ratio, stddev, sum_, variance
from tidemill.features.windows import Window
from tidemill.operations import reconcile
from tidemill.pipeline.silver import hour_buckets

# -- ten thousand ticks --------------------------------------------------------------------------

TICKS = 10_000
LENGTH = 60  # of the window, in minutes
QUIET = range(4_000, 4_200)  # minutes without an event: the window is empty for a while
NUMBERS = FeatureView(
    name="numbers",
    keys=["k"],
    event_time="at",
    schema={"k": "string", "amount": "double"},
    features=[f.over("1h") for f in (sum_("amount", scale=2), mean("amount", scale=2))]
    + [variance("amount", scale=2).over("1h")],
)


def ticks() -> list[tuple[int, int, float]]:
    """Events as (the tick in which they come, their minute, cents): one in most ticks, a tenth of
    them late."""
    drawn = random.Random(3)
    found = []
    for tick in range(TICKS):
        late = drawn.random() < 0.1
        minute = tick - drawn.randrange(1, 2 * LENGTH) if late else tick
        if minute >= 0 and minute not in QUIET:
            found.append((tick, minute, drawn.randrange(-10_000_000, 10_000_000) / 100))
    return found


def texts(columns: Iterable[Column], side: str) -> list[str]:
    """The values of gold's columns as texts, which show every bit, from the terms of one side."""
    return [
        f"CAST({c.value(lambda term: f'{side}.{term.partial.name}')} AS STRING) AS {c.name}"
        for c in columns
    ]


def test_a_window_of_ten_thousand_ticks_never_drifts(apart: SparkSession) -> None:
    """Brought along: the running sum of what entered and left, in the order of the ticks. Counted
    again: the merge of the buckets in the window. As decimals both are the same at every tick; as
    doubles they are not."""
    rows = apart.createDataFrame(ticks(), "tick INT, minute INT, amount DOUBLE").coalesce(1)
    rows.createOrReplaceTempView("ticks")
    apart.range(TICKS + 300).createOrReplaceTempView("clock")
    partials = NUMBERS.partials
    apart.sql(
        f"SELECT tick, minute, {', '.join(f'{p.bucket} AS {p.name}' for p in partials)}, "
        "sum(amount) AS floating FROM ticks GROUP BY tick, minute"
    ).createOrReplaceTempView("bucket_rows")
    names = [p.name for p in partials]
    signed = [f"CASE sign WHEN 1 THEN {n} WHEN -1 THEN -{n} ELSE 0 END" for n in names]
    running = "OVER (ORDER BY clock.id)"
    query = f"""
        WITH moves AS (
          SELECT tick AS id, 1 AS sign, * FROM bucket_rows WHERE minute > tick - {LENGTH}
          UNION ALL
          SELECT minute + {LENGTH} AS id, -1 AS sign, * FROM bucket_rows
          WHERE minute > tick - {LENGTH}
        ),
        brought AS (
          SELECT clock.id, {", ".join(
              f"sum(coalesce(sum({s}), 0)) {running} AS {n}"
              for n, s in zip(names, signed, strict=True)
          )}, sum(coalesce(sum(sign * floating), 0)) {running} AS floating
          FROM clock LEFT JOIN moves USING (id) GROUP BY clock.id
        ),
        held AS (
          SELECT explode(sequence(tick, minute + {LENGTH} - 1)) AS id, * FROM bucket_rows
          WHERE minute > tick - {LENGTH}
        ),
        counted AS (
          SELECT id, {", ".join(f"{p.merged()} AS {p.name}" for p in partials)},
            coalesce(sum(floating), 0D) AS floating
          FROM clock LEFT JOIN held USING (id) GROUP BY id
        )
        SELECT
          count(*) AS ticks,
          count_if({" OR ".join(
              f"{one.rsplit(' AS ', 1)[0]} IS DISTINCT FROM {other.rsplit(' AS ', 1)[0]}"
              for one, other in zip(
                  texts(NUMBERS.columns, "brought"), texts(NUMBERS.columns, "counted"), strict=True
              )
          )}) AS different,
          count_if(brought.floating <> counted.floating) AS floating_differs,
          count_if(counted.amount_n = 0) AS empty,
          count_if(counted.amount_n = 0 AND brought.floating <> 0) AS floating_rest,
          count_if(counted.amount_n = 0 AND NOT (brought.amount_sum = 0 AND brought.amount_n = 0
            AND brought.amount_squares = 0)) AS rest,
          max(named_struct({", ".join(
              f"'{n}', concat(typeof(brought.{n}), '=', typeof(counted.{n}))" for n in names
          )})) AS types
        FROM brought JOIN counted USING (id)
    """  # fmt: skip
    found = apart.sql(query).collect()[0]
    assert found["ticks"] == TICKS + 300
    assert (found["different"], found["rest"]) == (0, 0)
    assert found["empty"] > 300, "in the quiet time, and when all is over"
    assert found["floating_differs"] > TICKS / 2
    assert found["floating_rest"] == found["empty"], "a double never comes back to 0"
    assert all(one == other for one, other in (t.split("=") for t in found["types"]))
    assert found["types"]["amount_sum"].startswith("decimal(38,2)")


# -- against exact arithmetic --------------------------------------------------------------------

EXACT = {
    "big": ("bigint", [3_000_000_001, -5_000_000_007, 3_000_000_003, 2**40, 0]),
    "same": ("bigint", [9_000_000_000_000_000_001] * 1),
    "near": ("bigint", [10**9 + one for one in (4, 7, 13, 16)]),
    "fine": ("decimal(18,9)", [Decimal(one).scaleb(-9) for one in (1, 2, 4, 1_000_000_001)]),
    "widest": ("decimal(18,18)", [Decimal(one).scaleb(-18) for one in (1, 3, 10**17)]),
    "cents": ("double", [0.1, 0.2, 0.3, 0.005, 1e12]),
    "tiny": ("double", [0.000000001, 0.000000003, 0.000000008]),
}
SCALES = {"cents": 2, "tiny": 9}


def test_moments_are_those_of_exact_arithmetic(apart: SparkSession) -> None:
    """Large numbers whose squares no BIGINT holds, small ones that six digits do not show, and such
    that lie near each other, where doubles lose everything."""
    view = FeatureView(
        name="exact",
        keys=["k"],
        event_time="at",
        schema={"k": "string", **{name: f"{type_}?" for name, (type_, _) in EXACT.items()}},
        features=[
            verb(name, scale=SCALES.get(name)).over("1h")
            for name in EXACT
            for verb in (sum_, mean, variance, stddev)
        ],
    )
    longest = max(len(values) for _, values in EXACT.values())
    rows = [
        (
            "a",
            *(values[n] if n < len(values) else None for _, values in EXACT.values()),
            at("09:30"),
        )
        for n in range(longest)
    ]
    row = features(apart, view, rows, at("10:00"))["a"]
    for name, (type_, values) in EXACT.items():
        exact = [quantized(value, SCALES.get(name)) for value in values]
        total = sum(exact, Decimal(0))
        assert row[f"{name}_sum_1h"] == total, name
        assert isinstance(row[f"{name}_sum_1h"], int if type_ == "bigint" else Decimal)
        assert row[f"{name}_mean_1h"] == pytest.approx(float(total) / len(exact), rel=1e-15)
        spread = float(statistics.variance(exact)) if len(exact) > 1 else None
        if spread is None:
            assert row[f"{name}_variance_1h"] is row[f"{name}_stddev_1h"] is None
            continue
        assert row[f"{name}_variance_1h"] == pytest.approx(spread, rel=1e-14), name
        assert row[f"{name}_stddev_1h"] == pytest.approx(math.sqrt(spread), rel=1e-14), name


def quantized(value: Any, scale: int | None) -> Decimal:
    return Decimal(value) if scale is None else round_half_up(Decimal(repr(value)), scale)


def round_half_up(value: Decimal, scale: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-scale), rounding="ROUND_HALF_UP")


# -- real refreshes ------------------------------------------------------------------------------

ADDING = {
    case[1]: case
    for case in sales.CASES
    if case[1]
    in ("count", "large_count", "amount_sum", "amount_mean", "amount_variance", "share_ratio")
}
FEATURES = [count(), count().where("amount > 50 AND kind = 'buy'").named("large")]
FEATURES += [sum_("amount", scale=2), mean("amount", scale=2), variance("amount", scale=2)]
FEATURES += [ratio("large_count", "count").named("share")]
Windows = list[tuple[str, str | None]]


def opened(spark: SparkSession, folder: Path, windows: Windows, **words: Any) -> Sales:
    """A lake whose features all add up, each over the windows."""
    said = [
        feature.over(text).offset(ago) if ago else feature.over(text)
        for feature in FEATURES
        for text, ago in windows
    ]
    definition = sales.declare(said, **words)
    return Sales.new(spark, folder / "lake", definition.overridden({"refresh": "incremental"}))


def check(lake: Sales, events: list[Sale]) -> None:
    """Every feature of every card against brute force."""
    rows, as_of = lake.gold(), lake.as_of()
    for card in sorted({sale.card for sale in events}):
        mine = [sale for sale in events if sale.card == card]
        for window in lake.view.windows:
            inside = [s for s in mine if holds(window, s, as_of, lake.view.bucket_length)]
            for name, (_, _, fold) in ADDING.items():
                found, wanted = rows.get(card, {}).get(f"{name}_{window.text}"), fold(inside)
                where = f"{name}_{window.text} of {card} at {as_of}"
                assert close(found, wanted) or (card not in rows and not inside), where


def holds(window: Window, sale: Sale, as_of: datetime, bucket: timedelta) -> bool:
    return as_of - window.reach <= sales.cut(sale.at, bucket) < as_of - window.offset


def close(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, float):
        return isinstance(found, float) and math.isclose(found, wanted, rel_tol=1e-13)
    return type(found) is type(wanted) and found == wanted


def test_any_way_to_and_fro_gives_the_brute_forces_gold(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Appends, late rows, a step back, an emptied window, hours: incremental all the way."""
    windows: Windows = [("3h", None), ("10m", None), ("1h", "2h")]
    lake, drawn = opened(spark, tmp_path, windows), random.Random(11)
    known: list[Sale] = []

    def feed(start: str, minutes: int, number: int) -> None:
        new = sales.draw(drawn, at(start), minutes, number)
        known.extend(new)
        lake.feed(new)
        agrees()

    def agrees() -> None:
        check(lake, known)
        assert reconcile.reconcile(lake.lake, lake.view).different == 0

    feed("06:00", 180, 60)
    feed("09:00", 30, 20)
    feed("05:00", 240, 20)  # late, all over the windows
    assert lake.mode() == "incremental"
    for as_of in (at("09:20"), at("10:00")):  # back, and on
        assert lake.refresh(as_of).mode == "incremental"
        agrees()
    lake.refresh(at("09:55"))
    assert {row["amount_sum_10m"] for row in lake.gold().values()} == {Decimal("0.00")}
    assert {row["amount_mean_10m"] for row in lake.gold().values()} == {None}
    hour_buckets.bring_up(lake.lake, lake.view)
    lake.lake = recomputing(lake)
    assert lake.refresh(at("10:07")).mode == "recompute"
    agrees()


def recomputing(lake: Sales) -> Any:
    definition = lake.lake.pipeline.overridden({"refresh": "recompute"})
    return replace(lake.lake, pipeline=definition)


@pytest.mark.parametrize(
    ("bucket", "windows", "step"),
    [
        ("1s", [("90s", None), ("30s", "1m")], timedelta(seconds=17)),
        ("5m", [("2h", None), ("15m", "1h")], timedelta(minutes=20)),
        ("1h", [("6h", None), ("2h", "3h")], timedelta(hours=1)),
    ],
)
def test_buckets_of_any_length(
    spark: SparkSession, tmp_path: Path, bucket: str, windows: Windows, step: timedelta
) -> None:
    lake, drawn = opened(spark, tmp_path, windows, bucket=bucket), random.Random(bucket)
    known = [shrunk(s, step) for s in sales.draw(drawn, at("06:00"), 60, 30)]
    lake.feed(known)
    new = [shrunk(s, step) for s in sales.draw(drawn, at("06:00"), 70, 10)]
    known += new
    lake.feed(new)
    check(lake, known)
    start = lake.as_of()
    for as_of in (start + step, start):
        assert lake.refresh(as_of).mode == "incremental"
        check(lake, known)
    assert reconcile.reconcile(lake.lake, lake.view).different == 0


def shrunk(sale: Sale, step: timedelta) -> Sale:
    """The sale as if an hour were five steps."""
    since = (sale.at - at("06:00")) / timedelta(hours=1) * 5
    moved = at("06:00") + timedelta(microseconds=round(since * step / timedelta(microseconds=1)))
    return Sale(**{**vars(sale), "at": moved})


def test_a_key_of_which_nothing_moved_is_not_written(spark: SparkSession, tmp_path: Path) -> None:
    lake = opened(spark, tmp_path, [("3h", None), ("1h", "1h")])
    one, other = sales.draw(random.Random(1), at("09:00"), 1, 2)
    still = Sale(**{**vars(one), "card": "still"})
    moving = Sale(**{**vars(other), "card": "moving"})
    lake.feed([still, moving])
    lake.feed([Sale(**{**vars(moving), "at": at("09:30")})])
    rows = lake.gold()
    assert rows["moving"]["updated_at"] > rows["still"]["updated_at"]
    again = lake.refresh(at("09:40"))
    assert (again.mode, again.keys_changed, again.committed) == ("incremental", 0, True)
    assert lake.gold() == rows
