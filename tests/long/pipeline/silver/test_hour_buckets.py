"""Hour buckets: what a recompute reads by the hour is what the minutes say."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from pyspark.sql import functions as F

import oracle
from lakes import Event, Lakes, TestLake, at, events_frame
from spending import SPENT, Spending, brute, feed_spending, some_event, spent
from tidemill.lake.commits import writer
from tidemill.lake.parameters import ask
from tidemill.lake.statements import statement
from tidemill.operations import reconcile
from tidemill.pipeline.gold import refresh as gold
from tidemill.pipeline.gold.changes import changes_by_recompute
from tidemill.pipeline.silver import hour_buckets, minute_buckets
from tidemill.pipeline.steps import feature_step

MINUTE = timedelta(minutes=1)


def recomputed(lake: TestLake, as_of: datetime, mode: str = "recompute") -> gold.Refreshed:
    lake.lake = replace(lake.lake, pipeline=lake.lake.pipeline.overridden({"refresh": mode}))
    batch = minute_buckets.bucketed(lake.lake, lake.view).batch
    return gold.refresh(lake.lake, lake.view, as_of=as_of, batch=batch)


def usable(lake: TestLake) -> hour_buckets.Hours | None:
    there = minute_buckets.bucketed(lake.lake, lake.view)
    return hour_buckets.usable(lake.lake, lake.view, there.batch, there.commits)


def view_at(text: str, profile: str = "p") -> Event:
    return (None, profile, "g", "view", at(text))


@pytest.mark.parametrize("seed", [1])
def test_any_schedule_read_by_the_hour(seed: int, lakes: Lakes) -> None:
    """Late events and upkeep now and then: at any as_of the rows are the oracle's."""
    choose, lake = random.Random(seed), lakes.new()
    known: list[Event] = []
    now = at("06:00")
    for step in range(5):
        now += choose.choice([1, 59, 60, 61, 200]) * MINUTE
        new = [some_event(choose, now) for _ in range(choose.randint(5, 9))]
        known += new
        feature_step.append_batch(events_frame(lake.spark, new), step, lake=lake.lake)
        if step in (0, 2, 3):
            hour_buckets.bring_up(lake.lake, lake.view)
        for late in (0, 1, 30, choose.randint(-1500, 1500)):
            as_of = now + late * MINUTE
            assert by_hours(lake, as_of) == oracle.features(known, as_of), f"{step} at {as_of}"


def by_hours(lake: TestLake, as_of: datetime) -> dict[oracle.Key, oracle.Row]:
    """The features that are not empty, computed from hours where there are."""
    there = usable(lake)
    assert there is not None
    args = {"as_of": as_of, "batch": 1_000, "hours": there.batch}
    text = statement("features", lake.view, by_hours=True)
    rows = ask(lake.spark, text, args, hour_buckets.frames(lake.lake, lake.view, there)).collect()
    found = {(r["profile_id"], r["gti"]): {n: r[n] for n in oracle.COLUMNS} for r in rows}
    return {key: values for key, values in found.items() if any(values.values())}


def test_hours_are_read_and_minutes_only_at_the_edges(lakes: Lakes) -> None:
    lake = lakes.new()
    known = [view_at(f"{hour:02}:{minute:02}") for hour in range(10) for minute in (10, 50)]
    lake.feed(known)
    hour_buckets.bring_up(lake.lake, lake.view)
    lake.feed([view_at("03:30")])  # late, and not in the hours
    there = usable(lake)
    assert there is not None and there.batch == 0
    frame = changes_by_recompute(lake.lake, lake.view, at("10:00"), lake.batch, there)
    read = [name for name in frame.inputFiles() if "engagement_buckets" in name]
    assert len(read) == 1, "the late event's file; of ten others none"
    recomputed(lake, at("10:20"))
    assert lake.gold() == oracle.features([*known, view_at("03:30")], at("10:20"))


def test_upkeep_adds_only_what_came_since(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.feed([view_at("09:00"), view_at("09:10"), view_at("08:00")])
    assert hour_buckets.bring_up(lake.lake, lake.view) == 2
    assert hour_buckets.bring_up(lake.lake, lake.view) == 0
    lake.feed([view_at("09:20"), view_at("09:30", "q")])
    assert hour_buckets.bring_up(lake.lake, lake.view) == 2
    rows = lake.table("hours").orderBy("bucket_hour", "batch", "profile_id").collect()
    assert [(r["batch"], r["profile_id"], r["view_count"]) for r in rows] == [
        (0, "p", 1),
        (0, "p", 2),
        (1, "p", 1),
        (1, "q", 1),
    ]
    assert [told["number"] for told in lake.ledgers("hours")] == [1, 0]


def test_hours_of_buckets_that_were_changed_are_not_read_but_made_again(lakes: Lakes) -> None:
    lake = lakes.fed([view_at("05:00"), view_at("09:00", "q")])
    hour_buckets.bring_up(lake.lake, lake.view)
    lake.spark.sql("DELETE FROM engagement_buckets WHERE profile_id = 'q'")
    assert usable(lake) is None
    recomputed(lake, at("10:00"))
    assert list(lake.gold()) == [("p", "g")]
    hour_buckets.bring_up(lake.lake, lake.view)
    assert usable(lake) is not None
    assert lake.table("hours").where(F.col("profile_id") == "q").isEmpty()
    recomputed(lake, at("10:01"))
    assert list(lake.gold()) == [("p", "g")] and lake.different() == 0


def test_hours_that_somebody_changed_are_not_read_but_made_again(lakes: Lakes) -> None:
    lake = lakes.fed([view_at("05:00"), view_at("09:00", "q")])
    hour_buckets.bring_up(lake.lake, lake.view)
    lake.spark.sql("DELETE FROM engagement_hours WHERE profile_id = 'q'")
    assert usable(lake) is None
    assert hour_buckets.bring_up(lake.lake, lake.view) == 2
    assert usable(lake) is not None


def test_a_repair_does_not_rest_on_the_hours(lakes: Lakes) -> None:
    """Hours that are wrong under a right ledger: reconcile finds it, --repair mends it."""
    lake = lakes.fed([view_at("05:00")])
    hour_buckets.bring_up(lake.lake, lake.view)
    told = {n: v for n, v in lake.ledgers("hours")[0].items() if n != "version"}
    with writer.carrying(lake.spark, told):
        lake.spark.sql("UPDATE engagement_hours SET view_count = 7")
    recomputed(lake, at("10:00"))
    assert lake.different() == 1
    assert reconcile.repaired(lake.lake, lake.view)["repaired"] == 1
    assert lake.different() == 0


def test_two_at_once_append_once(lakes: Lakes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second has read the ledger before the first has written: Delta skips its number."""
    lake = lakes.fed([view_at("05:00")])
    hour_buckets.bring_up(lake.lake, lake.view)
    lake.feed([view_at("06:00")])
    there = minute_buckets.bucketed(lake.lake, lake.view)
    stale = hour_buckets.hours_state(lake.lake, lake.view, there.commits)
    hour_buckets.bring_up(lake.lake, lake.view)
    lake.feed([view_at("07:00")])
    with monkeypatch.context() as racing:
        racing.setattr(hour_buckets, "hours_state", lambda *a: stale)
        hour_buckets.bring_up(lake.lake, lake.view)
    assert lake.table("hours").count() == 2
    hour_buckets.bring_up(lake.lake, lake.view)
    assert lake.table("hours").count() == 3


def test_affected_keys_are_computed_from_hours(lakes: Lakes) -> None:
    lake = lakes.new(views=[SPENT])
    known: list[Spending] = [
        ("p", "view", 5, at("03:10")),
        ("p", "select", 3, at("04:30")),
        ("q", "view", 9, at("09:30")),
    ]
    feed_spending(lake, known)
    hour_buckets.bring_up(lake.lake, lake.view)
    for batch in ([("p", "view", 4, at("10:00"))], [("q", "view", 1, at("02:00"))]):
        known += batch
        feed_spending(lake, batch)
        for as_of in (at("10:30"), at("10:31")):
            recomputed(lake, as_of, "incremental")
            assert spent(lake) == brute(known, as_of)
    assert {told["mode"] for told in lake.ledgers()[:3]} == {"incremental"}
    assert lake.different() == 0


def test_long_windows_by_the_hour(lakes: Lakes) -> None:
    """30 days: the same by hours as by minutes, and the minutes of two hours are read."""
    month = {**lakes.declared(), "features": [{"count": {}, "over": ["30d", "7d", "90m"]}]}
    lake = lakes.new(views=[month])
    days = [at("21T09:10") - timedelta(days=day, minutes=7 * day) for day in range(31)]
    lake.feed([(None, "p", "g", "view", day) for day in days])
    hour_buckets.bring_up(lake.lake, lake.view)
    lake.feed([view_at("09:30")])
    times = [*days, at("09:30")]
    for as_of in (at("10:00"), at("10:33"), at("09:59")):
        recomputed(lake, as_of)
        row = lake.table("features").collect()[0]
        for name, length in (("30d", 43200), ("7d", 10080), ("90m", 90)):
            wanted = sum(as_of - length * MINUTE <= time < as_of for time in times)
            assert row[f"count_{name}"] == wanted, (name, as_of)
    assert lake.different() == 0
