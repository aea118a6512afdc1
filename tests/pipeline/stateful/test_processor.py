"""The processor that Spark runs, in Spark's own tester: rows, ticks and timers, no stream."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from tidemill.features import FeatureView, count, max_
from tidemill.features.ring_buffer import Shape
from tidemill.pipeline.stateful.processor import MINUTE_MS, STATE, Keeper, Names

VIEW = FeatureView(
    name="spent",
    keys=["profile_id"],
    event_time="event_timestamp",
    schema={"profile_id": "string", "amount": "bigint"},
    features=[count().over("10m", "1h"), max_("amount").over("10m")],
)
START = 1000
Bucket = tuple[int, int, int]  # minute, count, max


def alone(*, by_timer: bool) -> TwsTester:
    keeper = Keeper(Shape.of(VIEW), Names.of(VIEW), by_timer=by_timer)
    return TwsTester(keeper, timeMode="ProcessingTime", outputMode="Update")


def arrivals(as_of: int, *buckets: Bucket, batch: int = 0) -> list[Row]:
    """The rows of a key: its new buckets, or a tick."""
    told = {"__as_of": as_of, "__batch": batch}
    rows = [Row(__minute=m, count=n, amount_max=most, **told) for m, n, most in buckets]
    return rows or [Row(__minute=None, count=None, amount_max=None, **told)]


def values(rows: Iterable[Row]) -> list[tuple]:
    return [(row["count_1h"], row["count_10m"], row["amount_max_10m"]) for row in rows]


def test_a_tick_tells_only_what_changed() -> None:
    #   a bucket at 1000: in the ten minutes until as_of 1010, in the hour until 1060
    spark = alone(by_timer=False)
    assert values(spark.test("p", arrivals(1001, (1000, 2, 7)))) == [(2, 2, 7)]
    for as_of, told in ((1010, []), (1011, [(2, 0, None)]), (1060, []), (1061, [(0, 0, None)])):
        assert values(spark.test("p", arrivals(as_of))) == told
    assert spark.peekValueState(STATE, "p") is None
    assert spark.test("p", arrivals(1062)) == []


def test_rows_of_several_batches_count_at_the_newest_as_of() -> None:
    spark = alone(by_timer=False)
    rows = arrivals(1001, (1000, 1, 5)) + arrivals(1011, (1009, 1, 3), batch=4)
    (told,) = spark.test("p", rows)
    assert values([told]) == [(2, 1, 3)]
    assert (told["profile_id"], told["__as_of"], told["__batch"]) == ("p", 1011, 4)


def test_the_clock_keeps_no_state() -> None:
    spark = alone(by_timer=False)
    (told,) = spark.test(None, arrivals(1001, batch=3))
    assert (told["profile_id"], told["count_1h"], told["__as_of"], told["__batch"]) == (
        None,
        None,
        1001,
        3,
    )
    assert spark.peekValueState(STATE, None) is None


def test_a_timer_goes_off_when_a_bucket_leaves_or_its_minute_ends() -> None:
    spark = alone(by_timer=True)
    spark.setProcessingTime(START * MINUTE_MS + 5_000)  # as_of is 1001
    assert values(spark.test("p", arrivals(1, (1000, 1, 5), (1002, 1, 9)))) == [(1, 1, 5)]
    shown = {}
    for minute in range(START + 1, START + 65):
        for told in spark.setProcessingTime(minute * MINUTE_MS):
            shown[told["__as_of"]] = values([told])[0]
    assert shown == {
        1003: (2, 2, 9),
        1011: (2, 1, 9),
        1013: (2, 0, None),
        1061: (1, 0, None),
        1063: (0, 0, None),
    }
    assert spark.peekValueState(STATE, "p") is None
    assert list(spark.handle._timers.getAllKeysWithTimers()) == []


def test_the_clock_tells_every_minute_by_timer() -> None:
    spark = alone(by_timer=True)
    spark.setProcessingTime(START * MINUTE_MS)
    assert [row["__as_of"] for row in spark.test(None, arrivals(1, batch=3))] == [1001]
    told = spark.setProcessingTime((START + 1) * MINUTE_MS)
    assert [(row["__as_of"], row["__batch"]) for row in told] == [(1002, -1)]
    told = spark.setProcessingTime((START + 9) * MINUTE_MS + 1)  # it slept: one, and no more
    assert [row["__as_of"] for row in told] == [1010]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_timers_and_ticks_tell_the_same(seed: int) -> None:
    """Any schedule of rows: what is told minute by minute does not depend on who wakes the key."""
    by_tick, by_timer = alone(by_timer=False), alone(by_timer=True)
    choose, last = random.Random(seed), [(0, 0, None), (0, 0, None)]
    for now in range(START, START + 300):
        new = list(some_buckets(choose, now)) if choose.random() < 0.1 else []
        ticked = by_tick.test("p", arrivals(now + 1, *new))
        woken = list(by_timer.setProcessingTime(now * MINUTE_MS))
        if new:
            woken += by_timer.test("p", arrivals(now + 1, *new))
        last = [
            (values(rows) or [before])[-1]
            for rows, before in zip((ticked, woken), last, strict=True)
        ]
        assert last[0] == last[1], now
        kept = [each.peekValueState(STATE, "p") is None for each in (by_tick, by_timer)]
        assert kept[0] == kept[1], now


def some_buckets(choose: random.Random, now: int) -> Iterator[Bucket]:
    for _ in range(choose.randint(1, 3)):
        yield now - choose.choice([-2, 0, 0, 1, 9, 10, 59, 60, 90]), 1, choose.randrange(50)
