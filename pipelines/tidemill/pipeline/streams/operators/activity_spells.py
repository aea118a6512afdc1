"""Spells of an activity: from its first event until an event of another one, or a timeout.

    09:00 read  09:05 read  09:09 write ...            10:00 write
    |-----------------------| read 09:00 to 09:09, ended by change
                            |-----------| write 09:09 to 09:20, ended by timeout ... | write 10:00

It runs in Spark's workers and imports nothing of the lake. By event time, events wait until the
watermark has passed them, so that they are taken in the order in which they happened, whatever
order they come in. By processing time they are taken as they come.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
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
            self._wake_by(min(at for at, _ in new))
            return
        now = timerValues.getCurrentProcessingTimeInMs() * MILLI
        spell = yield from self._passed(key, new, now)
        self._wake_by(spell[4] + self.timeout)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """Take what the watermark has passed, in order of time; end a spell that timed out."""
        if self.by_watermark:
            now = timerValues.getCurrentWatermarkInMs() * MILLI
            waiting = list(self._waiting.get())
        else:
            now, waiting = timerValues.getCurrentProcessingTimeInMs() * MILLI, []
        still = [(at, activity) for at, activity in waiting if at > now]
        events = [(at, activity) for at, activity in waiting if at <= now]
        spell = yield from self._passed(key, events, now)
        if events:
            self._waiting.put(still) if still else self._waiting.clear()
        due = [at for at, _ in still]
        if spell is not None:
            due.append(spell[4] + self.timeout)
        if due:  # the timer that went off is taken away by Spark
            self._handle.registerTimer(-(-min(due) // MILLI))

    def _passed(
        self, key: Any, events: Sequence[tuple[int, str | None]], now: int
    ) -> Generator[Row, None, Any]:
        """Let events up to `now` prolong the spell or begin one, end one that has timed out, and
        return the one that goes on. The state is asked once and told once, whatever the number of
        events: each time costs a message to the JVM."""
        spell = kept = self._spell.get()
        for at, activity in sorted(events, key=lambda event: (event[0], event[1] or "")):
            seen = at if self.by_watermark else now
            spell = yield from self._timed_out(key, spell, seen)
            if spell is None:
                spell = (activity, at, at, 1, seen)
            elif activity == spell[0]:
                _, first, last, number, _ = spell
                spell = (activity, min(first, at), max(last, at), number + 1, seen)
            else:
                yield self._ended(key, spell, max(at, spell[2]), CHANGE)
                spell = (activity, at, at, 1, seen)
        spell = yield from self._timed_out(key, spell, now)
        if spell is None and kept is not None:
            self._spell.clear()
        elif spell is not None and spell != kept:
            self._spell.update(spell)
        return spell

    def _timed_out(self, key: Any, spell: Any, now: int) -> Generator[Row, None, Any]:
        """End a spell that has timed out; return the one that goes on."""
        if spell is None or now - spell[4] < self.timeout:
            return spell
        yield self._ended(key, spell, spell[2], TIMEOUT)
        return None

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

    def _wake_by(self, due: int) -> None:
        """Have the key's one timer go off at `due` at the latest. One that goes off before stays:
        it finds nothing to do, and is set anew."""
        wanted = -(-due // MILLI)
        timers = list(self._handle.listTimers())
        if any(timer <= wanted for timer in timers):
            return
        for timer in timers:
            self._handle.deleteTimer(timer)
        self._handle.registerTimer(wanted)
