"""Windows of the calendar and tumbling ones, over nights on which clocks change."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import SparkSession

import sales
from sales import Sales
from tidemill.features import count, distinct, max_, sum_
from tidemill.lake.parameters import ask
from tidemill.lake.statements import statement
from tidemill.operations import reconcile
from tidemill.pipeline.gold.changes import changes_by_recompute
from tidemill.pipeline.silver import hour_buckets, minute_buckets
from tidemill.training.training_set import Wanted, training_set

UTC = timezone.utc
BERLIN = {"calendar": "day", "zone": "Europe/Berlin"}
ST_JOHNS = {"calendar": "week", "zone": "America/St_Johns"}
FIVE = timedelta(minutes=5)
ADDS_UP = [
    count().over("1h", BERLIN, {"tumbling": "2h"}),
    count().over(BERLIN).offset("1d"),
    sum_("points").over(ST_JOHNS),
]
DOES_NOT = [distinct("merchant").over(BERLIN), max_("points").over({"tumbling": "2h"}, ST_JOHNS)]
NIGHTS = [datetime(2026, 10, 24, 12, tzinfo=UTC), datetime(2026, 3, 28, 12, tzinfo=UTC)]


def midnight(at: datetime, zone: str, days_back: int = 0) -> datetime:
    """Midnight of the day on a zone's clocks, by no code of the package."""
    day = at.astimezone(ZoneInfo(zone)).date() - timedelta(days=days_back)
    return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone)).astimezone(UTC)


def brute(events: list[sales.Sale], as_of: datetime) -> dict[str, Any]:
    """The features of one card's events."""

    def since(start: datetime, end: datetime = as_of) -> list[sales.Sale]:
        return [e for e in events if start <= sales.cut(e.at, FIVE) < end]

    yesterday = as_of - timedelta(days=1)
    weekday = as_of.astimezone(ZoneInfo("America/St_Johns")).weekday()
    week = since(midnight(as_of, "America/St_Johns", weekday))
    today = since(midnight(as_of, "Europe/Berlin"))
    two_hours = since(as_of.replace(hour=as_of.hour // 2 * 2, minute=0))
    return {
        "count_1h": len(since(as_of - timedelta(hours=1))),
        "count_day_to_date": len(today),
        "count_tumbling_2h": len(two_hours),
        "count_day_to_date_1d_ago": len(since(midnight(yesterday, "Europe/Berlin"), yesterday)),
        "points_sum_week_to_date": sum(e.points for e in week),
        "merchant_distinct_day_to_date": len({e.merchant for e in today} - {None}),
        "points_max_tumbling_2h": max((e.points for e in two_hours), default=None),
        "points_max_week_to_date": max((e.points for e in week), default=None),
    }


def shown(row: dict[str, Any], names: list[str]) -> dict[str, Any]:
    return {name: row[name] for name in names}


@pytest.mark.parametrize("features", [ADDS_UP, DOES_NOT], ids=["adds_up", "does_not"])
def test_by_ticks_by_hours_and_in_training(
    features: list, spark: SparkSession, tmp_path: Path
) -> None:
    """A night on which a day of 25 hours begins, another of 23: each tick's gold is brute force's,
    forward and back; so is what hours give, and what training gives at any second."""
    definition = sales.declare(features, bucket="5m").overridden({"refresh": "incremental"})
    lake = Sales.new(spark, tmp_path / "lake", definition)
    names, known, drawn = [c.name for c in lake.view.shown], [], random.Random(3)

    def wanted(card: str, as_of: datetime) -> dict[str, Any]:
        return shown(brute([e for e in known if e.card == card], as_of), names)

    def check(as_of: datetime) -> None:
        gold = lake.gold()
        for card in {event.card for event in known}:
            assert shown(gold[card], names) == wanted(card, as_of), f"{card} at {as_of}"

    night = NIGHTS[features is DOES_NOT]
    known += sales.draw(drawn, night, 30 * 60, 120)
    minute_buckets.bucket(sales.frame(spark, lake.view, known), 0, lake=lake.lake, view=lake.view)
    lake.batch = 0
    modes = set()
    for hours in (9.5, 10, 11, 11.5, 35, 34, 35.5):  # over two midnights, and one step back
        as_of = night + timedelta(hours=hours)
        modes.add(lake.refresh(as_of).mode)
        check(as_of)
    assert "incremental" in modes
    late = sales.draw(drawn, night, 20 * 60, 10)
    known += late
    lake.feed(late)
    check(lake.as_of())
    assert reconcile.reconcile(lake.lake, lake.view).different == 0
    _by_hours(lake, wanted, drawn, night)
    lake.refresh(night + timedelta(hours=46))  # the last time that training knows
    _in_training(lake, wanted, drawn, night)


def _by_hours(lake: Sales, wanted: Any, drawn: random.Random, night: datetime) -> None:
    hour_buckets.bring_up(lake.lake, lake.view)
    there = hour_buckets.hours_state(
        lake.lake, lake.view, minute_buckets.bucketed(lake.lake, lake.view).commits
    )
    frames = hour_buckets.frames(lake.lake, lake.view, there)
    text = statement("features", lake.view, by_hours=True)
    for _ in range(3):
        as_of = night + FIVE * drawn.randrange(120, 500)
        args = {"as_of": as_of, "batch": lake.batch, "hours": there.batch}
        for row in ask(lake.lake.spark, text, args, frames).collect():
            found = {c.name: row[c.name] for c in lake.view.shown}
            assert found == wanted(row["card"], as_of), f"{row['card']} at {as_of}"
    assert changes_by_recompute(lake.lake, lake.view, lake.as_of(), lake.batch, there).isEmpty(), (
        "gold is what the hours give"
    )


def _in_training(lake: Sales, wanted: Any, drawn: random.Random, night: datetime) -> None:
    moments = [night + timedelta(seconds=drawn.randrange(32 * 3600, 45 * 3600)) for _ in range(8)]
    moments += [midnight(night, "Europe/Berlin", -1), midnight(night, "Europe/Berlin", -2)]
    given = [(number, f"c{number % 3}", moment) for number, moment in enumerate(moments)]
    frame = lake.lake.spark.createDataFrame(given, "row INT, card STRING, timestamp TIMESTAMP")
    rows = training_set(frame, Wanted([(lake.lake, lake.view)])).rows.collect()
    for row in rows:
        _, card, moment = given[row["row"]]
        edge = sales.cut(moment, FIVE)
        found = {c.name: row[c.name] for c in lake.view.shown}
        assert found == wanted(card, edge), f"{card} at {moment}"
