"""The processor that runs in Spark's workers: keeps each key's ring in state, sets its timers.

    rows of a key ──► ring ──► values, if they changed      state: one row per live key
    timer of a key ──► ring ──► values, if they changed     (wall clock only)

It imports nothing of the lake: each worker process imports this module anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tidemill.features import FeatureView
from tidemill.features.ring_buffer import Ring, Shape, Values

MINUTE_MS = 60_000
STATE = "ring"


def ddl(columns: Iterable[tuple[str, str]], between: str = " ") -> str:
    """Return (name, type) pairs as the columns of a schema; a struct's take `: ` between the
    two."""
    return ", ".join(f"`{name}`{between}{type_}" for name, type_ in columns)


@dataclass(frozen=True)
class Names:
    """The names and types that a processor needs of a view; the view itself stays with the
    driver."""

    keys: tuple[str, ...]
    partials: tuple[str, ...]
    columns: tuple[str, ...]
    state: str

    @classmethod
    def of(cls, view: FeatureView) -> Names:
        """Return the names of a view, and the state's schema as DDL."""
        partials = [(p.name, p.type) for p in view.partials]
        columns = [(c.name, c.type) for c in view.values]
        bucket = ddl([("__minute", "BIGINT"), *partials], ": ")
        state = f"due BIGINT, buckets ARRAY<STRUCT<{bucket}>>, told STRUCT<{ddl(columns, ': ')}>"
        return cls(view.keys, tuple(dict(partials)), tuple(dict(columns)), state)


@dataclass
class Keeper(StatefulProcessor):
    """Keeps each key's ring and emits its values when they changed.

    The key of nulls is the clock: it has no ring and emits (batch, as_of) alone. `by_timer`: as_of
    is the end of the processing time's minute, and a key is looked at again when a bucket enters or
    leaves one of its windows; otherwise as_of is what the rows say. With timers a batch without
    rows knows no `batch`, and says -1: gold's own stays.
    """

    shape: Shape
    names: Names
    by_timer: bool
    _handle: Any = field(default=None, init=False)
    _state: Any = field(default=None, init=False)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state: a ring per key."""
        self._handle = handle
        self._state = handle.getValueState(STATE, self.names.state)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Count new bucket rows in, and let the key's windows pass to as_of."""
        new = list(rows)
        batch = max(row["__batch"] for row in new)
        as_of = self._now(timerValues) if self.by_timer else max(row["__as_of"] for row in new)
        if key[0] is None:
            yield from self._clock(as_of, batch)
            return
        buckets = [row for row in new if row["__minute"] is not None]
        yield from self._passed(key, buckets, as_of, batch)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """Let the key's windows pass to the present minute."""
        as_of = self._now(timerValues)
        if key[0] is None:
            yield from self._clock(as_of, -1)
            return
        yield from self._passed(key, [], as_of, -1)

    def _now(self, timer_values: Any) -> int:
        """Return the end of the minute of the batch's processing time, one for all its keys."""
        return int(timer_values.getCurrentProcessingTimeInMs()) // MINUTE_MS + 1

    def _clock(self, as_of: int, batch: int) -> Iterator[Row]:
        self._wake_at(as_of + 1)
        nothing = dict.fromkeys((*self.names.keys, *self.names.columns))
        yield Row(**nothing, __as_of=as_of, __batch=batch)

    def _passed(self, key: Any, rows: list[Row], as_of: int, batch: int) -> Iterator[Row]:
        stored = self._state.get()
        if not rows and (stored is None or (stored[0] is not None and as_of < stored[0])):
            return
        ring = self._ring(stored)
        for row in rows:
            ring.add(row["__minute"], [row[name] for name in self.names.partials])
        values = ring.advance(as_of)
        self._keep(ring, as_of)
        if values is not None:
            named = zip((*self.names.keys, *self.names.columns), (*key, *values), strict=True)
            yield Row(**dict(named), __as_of=as_of, __batch=batch)

    def _ring(self, stored: Values | None) -> Ring:
        if stored is None:
            return Ring(self.shape)
        ring = Ring(self.shape, told=tuple(stored[2]))
        for bucket in stored[1]:
            ring.add(bucket[0], bucket[1:])
        return ring

    def _keep(self, ring: Ring, as_of: int) -> None:
        """Keep the ring; an empty one leaves nothing behind."""
        due = ring.changes_at(as_of)
        self._wake_at(due)
        if not ring.buckets:
            self._state.clear()
            return
        self._state.update((due, [(m, *p) for m, p in ring.rows()], ring.told))

    def _wake_at(self, as_of: int | None) -> None:
        """Have the one timer of the key go off when the minute that ends at `as_of` begins."""
        if not self.by_timer:
            return
        wanted = None if as_of is None else (as_of - 1) * MINUTE_MS
        timers = list(self._handle.listTimers())
        for timer in timers:
            if timer != wanted:
                self._handle.deleteTimer(timer)
        if wanted is not None and wanted not in timers:
            self._handle.registerTimer(wanted)
