"""Which accepted events a run of clean knows of, so that it need not read them in each batch.

    hours of a batch ──had before, not known yet──► events, read once ──the hashes──┐
    the batch's own hashes, before they are written ────────────────────────────────┴─► hours
    hashes of the next batch ──those that their hour holds──► suspects: looked up by their ids

What an hour does not hold was never accepted; what it holds may have been, and was but for chance
and batches that were not written in the end. So this says where to look, never what is there.

It holds for one version of the events table and the batch that this run appended to it since. After
any other commit that moves rows (another writer's, a rebuild's, expiry's) nothing is known. Known
are 64 million events at most, in 8 bytes each; hours beyond, and those of more than 16 million, are
looked up in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger

Hashes: TypeAlias = NDArray[np.int64]

MOST = 64_000_000  # events that are known at a time
# How much a batch reads to know it from then on: a table of so many bytes whole, else some hours.
WHOLE = 128 * 2**20
HOURS, EVENTS = 8, 4_000_000
LARGEST = 16_000_000  # events of an hour that are brought into the driver at once

Read = Callable[[Sequence[int], int | None], pa.Table | None]
"""Reads `hash` and `hour` (since 1970) of all events with an id in some hours; None where they are
more than a number."""


class KnownEvents:
    """The events of some hours by their hashes. It belongs to one run of clean."""

    def __init__(self) -> None:
        """Know nothing."""
        self._hours: dict[int, _Hour] = {}
        self._asked: set[int] = set()
        self._too_large: set[int] = set()
        self._generation, self._version, self._batch = "", -1, -1

    def begin(self, lake: Lake) -> None:
        """Forget what the events table no longer bears out."""
        recent = lake.commits(lake.tables.events.name)
        if not self._holds(recent, lake):
            self._hours.clear()
        self._generation, self._version = lake.generation, recent[0].version

    def _holds(self, recent: Sequence[ledger.Commit], lake: Lake) -> bool:
        """Return whether since the version that is known this run's newest batch was appended and
        nothing else."""
        newest, oldest = recent[0].version, recent[-1].version
        if lake.generation != self._generation or not oldest <= self._version + 1 <= newest + 1:
            return False
        moved = [one for one in recent if one.version > self._version and one.moves_data]
        own = ledger.appends(moved, lake.generation)
        return [(one.ledger or {})["batch"] for one in own] == [self._batch] * len(moved)

    def learn(self, hours: Sequence[int], read: Read, size: Callable[[], int | None]) -> None:
        """Read the hours of a batch that an earlier batch had too and that are not known yet, the
        newest first: all of them where the table is small (`size` tells its bytes, None where
        nobody knows), else some."""
        missing = sorted(
            self._asked.intersection(hours) - {*self._hours} - self._too_large, reverse=True
        )
        self._asked.update(hours)
        if not missing:
            return
        bytes_ = size()
        if bytes_ is not None and bytes_ <= WHOLE:
            self._learn(missing, read, None)
            return
        left = EVENTS
        for hour in missing[:HOURS]:
            if left > 0 and self._has_room(hours):
                left -= self._learn([hour], read, LARGEST)

    def _learn(self, hours: Sequence[int], read: Read, most: int | None) -> int:
        found = read(hours, most)
        if found is None:
            self._too_large.update(hours)
            return 0
        hashes, of = found["hash"].to_numpy(), found["hour"].to_numpy()
        for hour in hours:
            self._hours[hour] = _Hour()
            self._hours[hour].add(hashes[of == hour])
        return len(hashes)

    def _has_room(self, asked: Sequence[int]) -> bool:
        """Make room by forgetting hours that the batch does not ask for, the oldest first."""
        known = sum(hour.events for hour in self._hours.values())
        for hour in sorted({*self._hours} - {*asked}):
            if known < MOST:
                break
            known -= self._hours.pop(hour).events
        return known < MOST

    def may_hold(self, hashes: Hashes, hours: Hashes) -> NDArray[np.bool_]:
        """Return of each event whether it may have been accepted: its hour is not known, or holds
        its hash."""
        found = np.ones(len(hashes), bool)
        for hour in np.unique(hours).tolist():
            if hour in self._hours:
                at = hours == hour
                found[at] = self._hours[hour].holds(hashes[at])
        return found

    def add(self, batch: int, hashes: Hashes, hours: Hashes) -> None:
        """Know a batch's events, which are about to be written."""
        self._batch = batch
        for hour in np.unique(hours).tolist():
            if hour in self._hours:
                self._hours[hour].add(hashes[hours == hour])


class _Hour:
    """An hour's events: sorted runs, of which a longer one comes before a shorter one, so that what
    is added is sorted again only with what is not much longer."""

    def __init__(self) -> None:
        """Hold nothing."""
        self._runs: list[Hashes] = []

    @property
    def events(self) -> int:
        return sum(map(len, self._runs))

    def add(self, hashes: Hashes) -> None:
        self._runs.append(np.sort(hashes))
        while len(self._runs) > 1 and len(self._runs[-2]) <= 2 * len(self._runs[-1]):
            self._runs[-2:] = [np.sort(np.concatenate(self._runs[-2:]))]

    def holds(self, hashes: Hashes) -> NDArray[np.bool_]:
        found = np.zeros(len(hashes), bool)
        for run in self._runs:
            if len(run):
                places = np.searchsorted(run, hashes)
                places[places == len(run)] = 0
                found |= run[places] == hashes
        return found
