"""What a run knows of accepted events: where to look for duplicates, never what is there."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest

from lakes import Event, Lakes, TestLake, at, payload
from tidemill.pipeline.silver import duplicates, known_events
from tidemill.pipeline.silver.known_events import KnownEvents

HOUR = int(at("10:00").timestamp()) // 3600


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many minutes of the events table each look-up asked for."""
    counts: list[int] = []
    real = duplicates.accepted_before

    def watched(minutes: Sequence[int], *words: object) -> object:
        counts.append(len(minutes))
        return real(minutes, *words)  # type: ignore[arg-type]

    monkeypatch.setattr(duplicates, "accepted_before", watched)
    return counts


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Which hours, counted from ten o'clock, each reading of the events table was of."""
    hours: list[list[int]] = []
    real = duplicates._hashes_of

    def watched(lake: object, some: Sequence[int], most: int | None) -> pa.Table | None:
        hours.append([hour - HOUR for hour in some])
        return real(lake, some, most)  # type: ignore[arg-type]

    monkeypatch.setattr(duplicates, "_hashes_of", watched)
    return hours


def events(*named: tuple[str, str]) -> list[str]:
    return [payload((name, "p", "g", "view", at(time))) for name, time in named]


def ids(lake: TestLake) -> list[str]:
    return sorted(row["event_id"] for row in lake.events().select("event_id").collect())


def cleaned(lake: TestLake, payloads: list[str]) -> None:
    lake.batch += 1
    lake.clean(payloads, batch=lake.batch)


def test_only_a_suspect_is_looked_up(
    lakes: Lakes, looked: list[int], learned: list[list[int]]
) -> None:
    lake = lakes.new()
    cleaned(lake, events(("a", "10:00"), ("b", "11:00")))
    assert (looked, learned) == ([2], []), "a first batch may be the only one: it reads, as ever"
    cleaned(lake, events(("c", "10:00"), ("d", "11:30")))
    assert (looked, learned) == ([2], [[1, 0]]), "its hours are read once, and hold none of it"
    cleaned(lake, events(("e", "10:00"), ("f", "11:30")))
    assert (looked, learned) == ([2], [[1, 0]]), "nothing is read"
    cleaned(lake, events(("g", "09:10"), ("h", "10:10")))
    assert (looked, learned) == ([2, 1], [[1, 0]]), "an hour may come once, so it is looked up"
    cleaned(lake, events(("k", "09:20")))
    assert (looked, learned) == ([2, 1], [[1, 0], [-1]]), "when it comes again, it is read"
    cleaned(lake, events(("h", "10:10"), ("i", "11:40"), ("a", "10:00"), ("a", "10:00")))
    assert looked == [2, 1, 2], "the minutes of what may have come before, which are two"
    cleaned(lake, events(("j", "10:20"), ("j", "10:20"), ("l", "11:20")))
    assert looked == [2, 1, 2], "what is twice in a batch needs no event of before"
    assert ids(lake) == sorted("abcdefghijkl")


def optimize(lake: TestLake) -> None:
    lake.spark.sql("OPTIMIZE engagement_events")


def delete(lake: TestLake) -> None:
    lake.spark.sql("DELETE FROM engagement_events WHERE event_id = 'c'")


def restore(lake: TestLake) -> None:
    delete(lake)
    lake.known.begin(lake.lake)
    newest = lake.lake.commits("engagement_events")[0].version
    lake.spark.sql(f"RESTORE TABLE engagement_events TO VERSION AS OF {newest - 1}")


def another_run(lake: TestLake) -> None:
    """A process that takes over for one batch, and gives back."""
    lake.known, before = KnownEvents(), lake.known
    cleaned(lake, events(("x", "10:05")))
    lake.known = before


def nothing(lake: TestLake) -> None:
    pass


@pytest.mark.parametrize(
    ("meanwhile", "reads_again"),
    [(nothing, 0), (optimize, 0), (delete, 1), (restore, 1), (another_run, 1)],
)
def test_what_another_commit_moved_is_read_again(
    lakes: Lakes,
    learned: list[list[int]],
    meanwhile: Callable[[TestLake], None],
    reads_again: int,
) -> None:
    lake = lakes.new()
    cleaned(lake, events(("a", "10:00")))
    cleaned(lake, events(("b", "10:00")))
    cleaned(lake, events(("c", "10:01")))
    meanwhile(lake)
    del learned[:]
    again = [("c", "10:01"), ("d", "10:02")] + [("x", "10:05")] * (meanwhile is another_run)
    cleaned(lake, events(*again))
    assert len(learned) == reads_again
    assert ids(lake) == sorted("abcd" + "x" * (meanwhile is another_run))


def test_after_a_large_batch_its_hours_are_read_again(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch, learned: list[list[int]]
) -> None:
    lake = lakes.new()
    for name in "ab":
        cleaned(lake, events((name, "10:00")))
    with monkeypatch.context() as small:
        small.setattr(duplicates, "SMALL", 1)
        cleaned(lake, events(("c", "10:00"), ("d", "10:00")))
    cleaned(lake, events(("d", "10:00"), ("e", "10:00")))
    assert learned == [[0], [0]]
    assert ids(lake) == sorted("abcde")


def test_a_batch_that_comes_again_counts_once(lakes: Lakes) -> None:
    """Its own rows, which are known by then, are not from before."""
    lake = lakes.new()
    for name in "abc":
        cleaned(lake, events((name, "10:00")))
    lake.records -= 1
    lake.clean(events(("c", "10:00")), batch=2)
    assert ids(lake) == sorted("abc")


@pytest.mark.parametrize("form", ["whole", "by the hour", "with little room"])
def test_events_are_accepted_once_whatever_is_known(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Batches with repeats of their own and of before, late ones and without an id; and hours that
    hold, by chance, a third of what they are asked for."""
    if form != "whole":
        monkeypatch.setattr(known_events, "WHOLE", 0)
        monkeypatch.setattr(known_events, "HOURS", 2)
    if form == "with little room":
        monkeypatch.setattr(known_events, "MOST", 15)
        real = known_events._Hour.holds
        by_chance = lambda hour, hashes: real(hour, hashes) | (hashes % 3 == 0)  # noqa: E731
        monkeypatch.setattr(known_events._Hour, "holds", by_chance)
    lake, drawn = lakes.new(), random.Random(form)
    past: list[Event] = []
    wanted: set[tuple[str | None, object]] = set()
    without = 0
    for number in range(9):
        batch: list[Event] = []
        for place in range(drawn.randint(1, 12)):
            kind = drawn.random()
            if kind < 0.3 and past:
                batch.append(drawn.choice(past))
            elif kind < 0.4 and batch:
                batch.append(drawn.choice(batch))
            else:
                time = at("11:00") + timedelta(minutes=number - 60 * drawn.choice((0, 0, 1, 5, 9)))
                name = None if kind > 0.95 else f"{number}-{place}"
                batch.append((name, "p", "g", "view", time))
        # An event without an id is like no other.
        without += sum(name is None for name, *_ in batch)
        wanted |= {(event[0], event[4]) for event in batch if event[0]}
        past += batch
        cleaned(lake, [payload(event) for event in batch])
    found = lake.events().selectExpr("event_id", "unix_seconds(event_timestamp)").collect()
    named = [(row[0], row[1]) for row in found if row[0]]
    assert len(named) == len(set(named))
    assert {*named} == {(name, int(time.timestamp())) for name, time in wanted}  # type: ignore[attr-defined]
    assert len(found) - len(named) == without


def test_an_hour_that_is_too_large_is_looked_up(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch, looked: list[int], learned: list[list[int]]
) -> None:
    monkeypatch.setattr(known_events, "WHOLE", 0)
    monkeypatch.setattr(known_events, "LARGEST", 2)
    lake = lakes.new()
    cleaned(lake, events(("a", "10:00"), ("b", "10:01"), ("c", "10:02"), ("d", "11:00")))
    cleaned(lake, events(("c", "10:02"), ("e", "10:03"), ("f", "11:01")))
    cleaned(lake, events(("e", "10:03"), ("g", "11:02")))
    assert ids(lake) == sorted("abcdefg")
    assert learned == [[1], [0]], "its events are counted once"
    assert looked == [4, 2, 1]


def test_hours_make_room_for_those_that_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_events, "MOST", 30)
    known = KnownEvents()

    def read(hours: Sequence[int], most: int | None) -> pa.Table:
        of = np.repeat(np.asarray(hours), 10)
        return pa.table({"hash": of * 100 + np.arange(len(of)), "hour": of})

    known.learn([1, 2, 3, 4], read, lambda: None)
    assert not known._hours, "they may not come again"
    known.learn([1, 2, 3, 4], read, lambda: None)
    assert sorted(known._hours) == [2, 3, 4], "the newest first, while there is room"
    for _ in range(2):
        known.learn([2, 9], read, lambda: None)
    assert sorted(known._hours) == [2, 4, 9], "the oldest that is not asked for goes"


def test_an_hour_holds_what_was_added() -> None:
    drawn = np.random.default_rng(7)
    hour, parts = known_events._Hour(), []
    for size in (0, 1, 5, 1000, 3, 3, 700, 0, 2):
        parts.append(drawn.integers(-(2**63), 2**63 - 1, size))
        hour.add(parts[-1])
    every = np.concatenate(parts)
    assert hour.events == len(every)
    assert hour.holds(every).all()
    others = drawn.integers(-(2**63), 2**63 - 1, 100_000)
    assert not hour.holds(others).any()
    assert not known_events._Hour().holds(every).any()
