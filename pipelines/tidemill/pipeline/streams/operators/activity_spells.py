"""Spells of an activity: from its first event until an event of another one, or a timeout.

    09:00 read  09:05 read  09:09 write ...            10:00 write
    |-----------------------| read 09:00 to 09:09, ended by change
                            |-----------| write 09:09 to 09:20, ended by timeout ... | write 10:00

It runs in Spark's workers and imports nothing of the lake. By event time, events wait until the
watermark has passed them, so that they are taken in the order in which they happened, whatever
order they come in. By processing time they are taken as they come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tidemill.features.windows import duration

MILLI = 1000  # microseconds
CHANGE, TIMEOUT = "change", "timeout"


class Spells(StatefulProcessor):
    """Yields each spell when it is over: the keys, the activity, `start_at`, `end_at` (of a change
    the other activity's first event, of a timeout its own last one), `events`, `ended_by`.

    An event that comes `timeout` or more after the one before begins a spell of its own, also of
    the same activity: the timeout is looked at first.
    """

    def __init__(self, options: Any, keys: tuple[str, ...], clock: str) -> None:
        """Take the words of `activity_spells`, the names of the keys, and the clock of timers."""
        self.activity, self.keys, self.by_watermark = options.of, keys, clock == "event"
        self.timeout = int(duration(options.timeout).total_seconds() * 1_000_000)
        self._handle: Any = None
        self._spell: Any = None
        self._waiting: Any = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the states: the spell that goes on, and events that the watermark has not passed."""
        self._handle = handle
        spell = "activity STRING, first BIGINT, last BIGINT, events BIGINT, seen BIGINT"
        self._spell = handle.getValueState("spell", spell)
        self._waiting = handle.getListState("waiting", "at BIGINT, activity STRING")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Take events in; by event time they wait."""
        new = [(row["at"], row[self.activity]) for row in rows]
        if self.by_watermark:
            self._waiting.appendList(new)
            self._wake()
            return
        now = timerValues.getCurrentProcessingTimeInMs() * MILLI
        yield from self._timed_out(key, now)
        yield from self._taken(key, new, now)
        self._wake()

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """Take what the watermark has passed, in order of time; end a spell that timed out."""
        if not self.by_watermark:
            yield from self._timed_out(key, timerValues.getCurrentProcessingTimeInMs() * MILLI)
            self._wake()
            return
        passed = timerValues.getCurrentWatermarkInMs() * MILLI
        waiting = list(self._waiting.get())
        still = [(at, activity) for at, activity in waiting if at > passed]
        yield from self._taken(key, [(a, b) for a, b in waiting if a <= passed], None)
        self._waiting.put(still) if still else self._waiting.clear()
        yield from self._timed_out(key, passed)
        self._wake()

    def _taken(
        self, key: Any, events: Iterable[tuple[int, str | None]], now: int | None
    ) -> Iterator[Row]:
        """Let events prolong the spell or begin one; `now` is the processing time, by event time
        each event's own is what it was seen at."""
        for at, activity in sorted(events, key=lambda event: (event[0], event[1] or "")):
            seen = at if now is None else now
            spell = self._spell.get()
            if spell is not None:
                before, first, last, events_so_far, seen_last = spell
                if seen - seen_last >= self.timeout:
                    yield self._ended(key, spell, last, TIMEOUT)
                elif activity != before:
                    yield self._ended(key, spell, max(at, last), CHANGE)
                else:
                    spell = (before, min(first, at), max(last, at), events_so_far + 1, seen)
                    self._spell.update(spell)
                    continue
            self._spell.update((activity, at, at, 1, seen))

    def _timed_out(self, key: Any, now: int) -> Iterator[Row]:
        spell = self._spell.get()
        if spell is not None and now - spell[4] >= self.timeout:
            yield self._ended(key, spell, spell[2], TIMEOUT)
            self._spell.clear()

    def _ended(self, key: Any, spell: Any, end: int, by: str) -> Row:
        activity, first, _, events, _ = spell
        named = dict(zip(self.keys, key, strict=True))
        return Row(
            **named,
            **{self.activity: activity},
            start_at=first,
            end_at=end,
            events=events,
            ended_by=by,
            at=end,
        )

    def _wake(self) -> None:
        """Have the key's one timer go off when the oldest event that waits is passed, or when the
        spell times out, whichever is first."""
        spell = self._spell.get()
        times = [] if spell is None else [spell[4] + self.timeout]
        times += [at for at, _ in self._waiting.get()]
        wanted = -(-min(times) // MILLI) if times else None
        timers = list(self._handle.listTimers())
        for timer in timers:
            if timer != wanted:
                self._handle.deleteTimer(timer)
        if wanted is not None and wanted not in timers:
            self._handle.registerTimer(wanted)
