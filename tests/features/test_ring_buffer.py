"""The ring against brute force: any schedule of rows and ticks, no Spark."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import datetime, timezone

import pytest

import oracle
from lakes import Event, at
from tidemill.config.pipeline_file import load
from tidemill.features import FeatureView, count, last, max_, min_
from tidemill.features.ring_buffer import Ring, Shape

SHIPPED = load("engagement").views[0]
SPENT = FeatureView(
    name="spent",
    keys=["profile_id"],
    event_time="event_timestamp",
    schema={"profile_id": "string", "event_type": "string", "amount": "bigint"},
    features=[
        min_("amount").over("10m", "1h"),
        max_("amount").by("event_type", ["view"]).over("10m"),
        count().over("10m"),
    ],
)


def minute(time: datetime) -> int:
    return int(time.timestamp()) // 60


def time_of(minute: int) -> datetime:
    return datetime.fromtimestamp(minute * 60, timezone.utc)


@pytest.mark.parametrize("seed", range(6))
def test_any_schedule_of_rows_and_ticks(seed: int) -> None:
    """After every step the values told last are the oracle's, and a ring is kept for no key but
    those that have a value."""
    choose, shape = random.Random(seed), Shape.of(SHIPPED)
    rings: dict[tuple[str, str], Ring] = {}
    shown: dict[tuple[str, str], dict[str, int]] = {}
    known: list[Event] = []
    as_of = minute(at("06:00"))
    for _ in range(150):
        as_of += choose.choice([0, 1, 1, 2, 59, 61, 200, 721])
        new = [some_event(choose, as_of) for _ in range(choose.choice([0, 1, 2, 5]))]
        known += new
        for (key, start), partials in counted(new).items():
            rings.setdefault(key, Ring(shape)).add(start, partials)
        for key, ring in list(rings.items()):
            if (values := ring.advance(as_of)) is not None:
                shown[key] = dict(zip(oracle.COLUMNS, values, strict=True))
            if not ring.buckets:
                del rings[key]
        expected = oracle.features(known, time_of(as_of))
        assert {key: row for key, row in shown.items() if any(row.values())} == expected
        assert rings.keys() == expected.keys()


def some_event(choose: random.Random, as_of: int) -> Event:
    """An event in the minute before as_of, or late: by minutes, or around the windows' edges."""
    late = choose.choice([1, 1, 1, 2, 30, 60, 61, 719, 720, 721, 1439, 1440, 1441, 3000])
    kind = choose.choice(oracle.TYPES)
    return (None, choose.choice("pqr"), choose.choice("gh"), kind, time_of(as_of - late))


def counted(events: list[Event]) -> dict[tuple[tuple[str, str], int], list[int]]:
    """The bucket rows of a batch: select, highlight and view of each key and minute."""
    found: dict[tuple[tuple[str, str], int], list[int]] = defaultdict(lambda: [0, 0, 0])
    for _, profile, gti, kind, time in events:
        found[(profile, gti), minute(time)][oracle.TYPES.index(kind)] += 1
    return found


@pytest.mark.parametrize("seed", range(4))
def test_a_ring_that_wakes_only_when_something_changes(seed: int) -> None:
    """Between two rows it is looked at only when it said that a bucket enters or leaves; buckets
    may be ahead of as_of. Values of min, max and count are brute force's at every minute."""
    choose, ring = random.Random(seed), Ring(Shape.of(SPENT))
    known: list[tuple[int, str, int]] = []
    told, due = ring.told, None
    for now in range(1000, 1400):
        rows = []
        if choose.random() < 0.05:
            rows = [
                (now - choose.randint(-3, 70), choose.choice(["view", "select"]), amount)
                for amount in choose.sample(range(50), choose.randint(1, 3))
            ]
        known += rows
        for start, kind, amount in rows:
            ring.add(start, (amount, amount if kind == "view" else None, 1))
        if rows or now == due:
            told = ring.advance(now) or told
            due = ring.changes_at(now)
        assert told == brute(known, now), now


def brute(known: list[tuple[int, str, int]], now: int) -> tuple[object, ...]:
    hour, ten = ([r for r in known if now - length <= r[0] < now] for length in (60, 10))
    return (
        min((amount for _, _, amount in hour), default=None),
        min((amount for _, _, amount in ten), default=None),
        max((amount for _, kind, amount in ten if kind == "view"), default=None),
        len(ten),
    )


def test_an_emptied_key_tells_its_zeros_once() -> None:
    ring = Ring(Shape.of(SHIPPED))
    ring.add(1000, (0, 0, 2))
    assert ring.advance(1001) == (0, 0, 2) * 3
    assert ring.advance(1060) is None, "the hour still holds the minute"
    assert ring.advance(1061) == (0, 0, 2, 0, 0, 2, 0, 0, 0)
    assert ring.advance(1000 + 1441) == (0,) * 9
    assert ring.buckets == {}
    assert ring.advance(5000) is None


def test_a_row_that_is_too_old_or_counts_nothing_is_not_kept() -> None:
    ring = Ring(Shape.of(SHIPPED))
    ring.add(1000, (0, 0, 1))
    ring.add(4999, (0, 0, 0))
    assert ring.advance(5000) is None
    assert ring.buckets == {}


def test_a_partial_is_kept_no_longer_than_its_own_windows() -> None:
    """The count of SPENT has ten minutes, its min an hour: a bucket without an amount leaves."""
    ring = Ring(Shape.of(SPENT))
    ring.add(1000, (None, None, 1))
    assert ring.advance(1001) == (None, None, None, 1)
    assert ring.advance(1011) == (None, None, None, 0)
    assert ring.buckets == {}


def test_nan_is_above_all_numbers_as_in_spark() -> None:
    ring = Ring(Shape.of(SPENT))
    for amount in (float("nan"), 3.0):
        ring.add(1000, (amount, amount, 1))
    values = ring.advance(1001)
    assert values is not None
    assert values[0] == 3.0
    assert values[2] != values[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"features": [last("k").over("1h")]}, "k_last_1h of view v cannot be kept in state"),
        ({"features": [count().over("1h").offset("1h")]}, "cannot be kept in state"),
        ({"features": [count().over("1h")], "bucket": "5m"}, "state keeps minutes"),
    ],
)
def test_what_state_lacks_is_refused(words: dict, message: str) -> None:
    view = FeatureView(**{"name": "v", "keys": ["k"], "event_time": "t", **words})
    with pytest.raises(ValueError, match=message):
        Shape.of(view)
