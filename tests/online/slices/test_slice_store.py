"""What every store keeps to of slices: merged hours mask batches, none comes back, states advance
one at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakes import at
from redis_server import RedisServer
from tidemill.online import packing
from tidemill.online.embedded_store import EmbeddedStore
from tidemill.online.open_store import open_store
from tidemill.online.slices import slice_records
from tidemill.online.slices.slice_records import KeyHour
from tidemill.online.slices.slice_state import SliceState
from tidemill.online.slices.slice_store import SliceStore
from tidemill.online.store_address import StoreAddress

HOUR = int(at("10:00").timestamp()) // 3600
FIRST = HOUR * 3600
WORDS = {
    "name": "plays",
    "keys": ["song"],
    "event_time": "at",
    "schema": {"song": "string"},
    "features": [{"count": {}, "over": ["1d"]}],
}
STATE = SliceState("plays", json.dumps(WORDS), "table:1", "event", through=9)
SONG = packing.key_text(("la}{la",))


@pytest.fixture
def store(address: StoreAddress) -> Iterator[SliceStore]:
    store = open_store(address, writes=True)
    yield store
    store.close()


def added(batch: int, count: int, minute: int = 0, hour: int = HOUR) -> KeyHour:
    return slice_records.added(SONG, hour, batch, {hour * 3600 + minute * 60: [count]})


def merged(through: int, count: int, hour: int = HOUR) -> KeyHour:
    return slice_records.merged(SONG, hour, through, {hour * 3600: [count]}, [count])


def counted(store: SliceStore, through: int = 9, hour: int = HOUR) -> tuple[int, int]:
    """The events of the hour as it is read: of all of it, and of its minutes."""
    (hours,) = store.read_slices(STATE, [("la}{la",)], range(hour, hour + 1))
    read = slice_records.read(hours.get(hour, {}), through)
    whole = (read.whole[0] if read.whole else 0) + sum(parts[0] for parts in read.late)
    if read.whole is None:
        whole = sum(parts[0] for _, parts in read.minutes)
    return whole, sum(parts[0] for _, parts in read.minutes)


def test_a_batch_adds_once_and_is_seen_when_it_is_whole(store: SliceStore) -> None:
    for one in (added(3, 2), added(4, 5), added(3, 2), added(4, 1, minute=7)):
        store.write_slices(STATE, [one])
    assert counted(store) == (8, 8)
    assert counted(store, through=3) == (2, 2)
    assert store.read_slices(STATE, [("other",)], range(HOUR, HOUR + 2)) == [{}]


def test_what_is_merged_masks_its_batches_whenever_they_come(store: SliceStore) -> None:
    """Merged through 5 with 3 events, beside a batch 6; then batch 4 comes again, and a merge
    through 4 that was slow."""
    store.write_slices(STATE, [added(3, 2), added(5, 1), added(6, 10)])
    store.write_slices(STATE, [merged(5, 3)])
    assert counted(store) == (13, 13)
    store.write_slices(STATE, [added(4, 2), added(5, 1)])
    store.write_slices(STATE, [merged(4, 2)])
    assert counted(store) == (13, 13)
    store.write_slices(STATE, [merged(6, 13)])
    store.write_slices(STATE, [added(6, 10), added(7, 1, minute=1)])
    assert counted(store) == (14, 14)


def test_states_advance_one_at_a_time(store: SliceStore) -> None:
    assert store.sliced(["plays"]) == []
    assert store.advance_slices(STATE, None)
    assert not store.advance_slices(replace(STATE, through=1), None)
    newer = replace(STATE, through=10, visible_at=at("10:01"))
    assert store.advance_slices(newer, STATE)
    assert not store.advance_slices(newer, STATE)
    assert store.sliced(["absent", "plays"]) == [newer]
    assert asyncio.run(_read(store)) == ([newer], [{}])


async def _read(store: SliceStore) -> tuple[list[SliceState], list[Any]]:
    keys, hours = [("la}{la",)], range(HOUR, HOUR + 1)
    read = await store.sliced_async(["plays"]), await store.read_slices_async(STATE, keys, hours)
    await store.close_async()
    return read


def test_old_hours_and_other_layouts_are_swept(store: SliceStore) -> None:
    other = replace(STATE, events="table:2")
    assert other.layout != STATE.layout
    store.write_slices(other, [added(1, 1)])
    store.write_slices(
        STATE, [added(1, 1), added(1, 2, hour=HOUR - 1), added(1, 4, hour=HOUR - 30)]
    )
    assert store.sweep_slices(STATE, HOUR - 1) == 2
    assert [counted(store, hour=HOUR - ago)[0] for ago in (0, 1, 30)] == [1, 2, 0]


def test_numbers_of_any_size_come_back(store: SliceStore) -> None:
    large = 2**70
    store.write_slices(STATE, [added(1, large)])
    assert counted(store) == (large, large)


def test_a_file_that_was_made_before_slices_has_none(tmp_path: Path) -> None:
    file = tmp_path / "online.sqlite"
    EmbeddedStore(file, writes=True).check_writable()
    assert open_store(str(file)).sliced(["plays"]) == []


@pytest.mark.redis
def test_by_the_wall_clock_an_hour_has_its_time(redis: RedisServer) -> None:
    """As long as windows reach it, and an hour; by the event clock it has none."""
    store = open_store(redis.url, writes=True)
    client = redis.client()
    client.flushall()
    store.write_slices(STATE, [added(1, 1)])
    (name,) = client.keys("tidemill-slices:*")
    assert client.ttl(name) == -1
    by_wall = replace(STATE, clock="wall")
    ahead = 2**31 // 3600 // 24 * 24  # in 2038
    store.write_slices(by_wall, [added(1, 1, hour=ahead), added(1, 1, hour=HOUR - 1000)])
    live = {name: client.ttl(name) for name in client.keys("tidemill-slices:*")}
    assert sorted(live.values())[1] == 3600
    end = (ahead + 1) * 3600 + 86_400 + 3_600
    assert abs(max(live.values()) + client.time()[0] - end) < 60
    store.close()
