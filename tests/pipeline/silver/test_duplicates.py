"""Which events are duplicates, and how little of the events table is read to tell."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from lakes import Lakes, at, payload
from tidemill.pipeline.silver import duplicates
from tidemill.pipeline.silver.clean import clean


def minute(text: str) -> int:
    return int(at(text).timestamp()) // 60


@pytest.mark.parametrize(
    ("minutes", "most", "expected"),
    [
        ([5], 3, [(5, 5)]),
        ([5, 6, 7], 3, [(5, 7)]),
        ([5, 7, 9], 3, [(5, 5), (7, 7), (9, 9)]),
        ([5, 7, 9, 30], 2, [(5, 9), (30, 30)]),
        ([0, 10, 20, 30], 3, [(0, 10), (20, 20), (30, 30)]),
        ([1, 2, 50, 51], 1, [(1, 51)]),
    ],
)
def test_ranges(minutes: list[int], most: int, expected: list[tuple[int, int]]) -> None:
    assert list(duplicates.ranges(minutes, most)) == expected


def test_ranges_hold_every_minute_and_are_as_many_as_allowed() -> None:
    draw = random.Random(7)
    for _ in range(200):
        minutes = sorted(draw.sample(range(3_000), draw.randint(1, 400)))
        most = draw.randint(1, 130)
        ranges = list(duplicates.ranges(minutes, most))
        assert len(ranges) <= most
        assert all(first <= last for first, last in ranges)
        held = [m for m in minutes if any(first <= m <= last for first, last in ranges)]
        assert held == minutes
        assert ranges == sorted(ranges)


@pytest.mark.parametrize(
    ("before", "events", "found"),
    [
        ([], [], []),
        ([], ["a5r2", "b5r1", "a6r3"], []),
        ([], ["a5r2", "a5r1", "a5r3"], [0, 2]),
        (["a5"], ["a5r2", "a5r1", "b5r3"], [0, 1]),
        (["a6"], ["a5r2", "a5r2"], [1]),
    ],
)
def test_the_smallest_record_is_no_duplicate(
    before: list[str], events: list[str], found: list[int]
) -> None:
    """By id, time and record; of the same record, which a batch may have twice, one place."""
    rows = [
        {"id": text[:1].encode(), "at": int(text[1]), "record": text[2:].encode(), "place": place}
        for place, text in enumerate(events)
    ]
    known = {(text[:1].encode(), int(text[1:])) for text in before}
    assert sorted(duplicates.duplicates_among(rows, known)) == found


def test_of_a_large_table_only_files_with_times_of_the_batch_are_read(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lakes.new()
    for place, time in enumerate(("10:00", "10:20", "10:40", "11:20")):
        lake.clean([payload((f"e{place}", "p", "g", "view", at(time)))], batch=place)
    files = {file.rpartition("/")[2] for file in lake.events().inputFiles()}
    assert len(files) == 4
    monkeypatch.setattr(duplicates, "LARGE_EVENTS", 0)
    for times, read in ((("10:20",), 1), (("10:30",), 0), (("10:20", "11:20"), 2)):
        minutes = sorted(minute(time) for time in times)
        frame = duplicates.accepted_before(minutes, 99, lake.lake)
        assert len(frame.inputFiles()) == read, times


@pytest.mark.parametrize("small", [50_000, 0], ids=["by places", "by a join"])
def test_late_and_repeated_events_across_batches(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(duplicates, "SMALL", small)
    lake = lakes.new()
    sent = {
        n: payload((f"e{n}", "p", "g", "view", at("08:00") + timedelta(minutes=n)))
        for n in range(200)
    }
    lake.clean([sent[n] for n in range(0, 200, 7)], batch=0)
    again = [sent[n] for n in range(0, 200, 5)]
    lake.clean([*again, *again[:3]], batch=1)
    ids = sorted(row["event_id"] for row in lake.events().collect())
    assert ids == sorted({f"e{n}" for n in (*range(0, 200, 7), *range(0, 200, 5))})
    told = lake.ledgers("events")[0]
    both = len({*range(0, 200, 7)} & {*range(0, 200, 5)})
    assert (told["duplicates"], told["accepted"]) == (both + 3, len(again) - both)


def test_many_duplicates_are_told_as_a_list(lakes: Lakes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "PLACES", 2)
    lake = lakes.new()
    sent = [payload((f"e{n}", "p", "g", "view", at("10:00"))) for n in range(5)]
    lake.clean([*sent, *sent, *sent[:2]], batch=0)
    assert lake.ledgers("events")[0]["duplicates"] == 7
    assert lake.events().count() == 5


@pytest.mark.parametrize("small", [50_000, 0], ids=["by places", "by a join"])
def test_a_record_that_comes_twice_is_kept_once(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    """The same record, with the same id and place in its source."""
    monkeypatch.setattr(duplicates, "SMALL", small)
    lake = lakes.new()
    text = payload(("e", "p", "g", "view", at("10:00")))
    rows = lake.bronze([text])
    result = clean(rows.union(rows), 0, lake=lake.lake)
    assert (result.accepted, result.duplicates) == (1, 1)
