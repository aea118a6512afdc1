"""Days of a stream's rows: its operator over the events, as a batch, without a watermark."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.config.stream_operators.stream import Stream
from tidemill.features.windows import HOUR, duration
from tidemill.lake.catalog import Lake
from tidemill.lake.parameters import is_connect
from tidemill.lake.tables import Table
from tidemill.lake.times import at
from tidemill.operations.recompute import late_causes
from tidemill.operations.recompute.late_causes import AT, MISSING, WHAT
from tidemill.operations.recompute.wanted_days import ONE, KnownEvents, midnight
from tidemill.pipeline.row_writes.frame_cache import cached
from tidemill.pipeline.streams.stream_rows import stream_rows

NONE, _LEAST = timedelta(0), timedelta(microseconds=1)
_ALMOST = 1e-9  # of a double, whose last bits depend on the order of what is added


def kept(frame: DataFrame) -> AbstractContextManager[DataFrame]:
    """Keep a frame while it is read more than once; Spark Connect computes it again: serverless
    compute keeps none, and takes none of the settings."""
    return nullcontext(frame) if is_connect(frame.sparkSession) else cached(frame)


@dataclass(frozen=True)
class StreamDays:
    """The days of a stream's rows."""

    lake: Lake
    stream: Stream

    kind = "stream"

    @property
    def name(self) -> str:
        """The stream's name."""
        return self.stream.name

    @property
    def table(self) -> Table:
        """The table of its recomputed days."""
        return self.lake.tables.stream_days[self.stream.name]

    @property
    def lateness(self) -> timedelta:
        """How much older than the newest event one may be that is in time."""
        return self.stream.lateness

    @property
    def _around(self) -> tuple[timedelta, timedelta]:
        """How long before and after its own time an event may be that a row follows from."""
        before = after = self.stream.join.interval if self.stream.join else NONE
        if totals := self.stream.totals:
            length, _ = totals.lengths
            after += max(length, duration(totals.then.length)) if totals.then else length
            before += length if totals.then else NONE
        return before, after

    def reads(self, day: date) -> tuple[datetime, datetime]:
        """Return from when to before when events are that the day's rows follow from: of a join its
        latest pair counts too."""
        before, after = self._around
        return midnight(day) - before, midnight(day) + ONE + after + _LEAST

    def rows(self, day: date, known: KnownEvents) -> DataFrame:
        """Return the rows of the day: with their own columns but `batch`."""
        made = stream_rows(self._events(day, known), self.stream, self.lake.pipeline.events)
        names = [n for n in self.lake.tables.streams[self.name].column_names if n != "batch"]
        return made.select(*names).where(self._within(day))

    def differences(self, day: date, rows: DataFrame, known: KnownEvents) -> Mapping[str, int]:
        """Return how many of the stream's own rows of the day are missing, too many or changed, by
        cause (see `late_causes`)."""
        live = self.lake.spark.table(self.name).where(self._within(day))
        hour = F.col("event_hour")
        if self.stream.totals is None:
            live = live.where((hour > at(midnight(day) - HOUR)) & (hour < at(midnight(day) + ONE)))
        with kept(self._different(live, rows)) as different:
            if different.isEmpty():
                return {}
            late = late_causes.late_records(self.lake, self.stream, self.reads(day)[0])
            events, after = self._events(day, known), self._around[1]
            return late_causes.counted(self.lake, self.stream, different, events, late, after)

    def _events(self, day: date, known: KnownEvents) -> DataFrame:
        (first, end), time = self.reads(day), F.col(self.lake.pipeline.events.event_time)
        hour = F.col("event_hour")
        return (
            self.lake.spark.table(self.lake.tables.events.name)
            .where((hour > at(first - HOUR)) & (hour < at(end)))
            .where((time >= at(first)) & (time < at(end)) & (F.col("batch") <= known.batch))
        )

    @property
    def _time(self) -> str:
        return self.stream.row_time(self.lake.pipeline.events.event_time)

    def _within(self, day: date) -> Column:
        time = F.col(self._time)
        return (time >= at(midnight(day))) & (time < at(midnight(day) + ONE))

    def _different(self, live: DataFrame, fresh: DataFrame) -> DataFrame:
        """Return the rows that one side alone has, or that are not equal: what tells them, their
        time as `AT`, and which of these as `WHAT`."""
        totals, join = self.stream.totals, self.stream.join
        if totals is not None:
            keys, kept = [*totals.result_keys, "window_start"], []
        else:
            assert join is not None
            keys, kept = ["event_id"], [f"{side.name}_record_id" for side in join.sides]
        columns = {c.name: c for c in self.table.columns}
        values = [n for n in fresh.columns if n not in keys]
        live_rows = live.select(F.struct(*fresh.columns).alias("live"))
        fresh_rows = fresh.select(F.struct(*fresh.columns).alias("fresh"))
        same = " AND ".join(f"live.{name} <=> fresh.{name}" for name in keys)
        equal = " AND ".join(_is_equal(name, columns[name].type == "DOUBLE") for name in values)
        rows = live_rows.join(fresh_rows, F.expr(same), "full_outer")
        return rows.where(f"live IS NULL OR fresh IS NULL OR NOT ({equal})").selectExpr(
            *(f"coalesce(live.{name}, fresh.{name}) AS {name}" for name in (*keys, *kept)),
            f"coalesce(live.{self._time}, fresh.{self._time}) AS {AT}",
            f"CASE WHEN live IS NULL THEN '{MISSING}' "
            f"WHEN fresh IS NULL THEN 'extra' ELSE 'changed' END AS {WHAT}",
        )


def _is_equal(name: str, is_double: bool) -> str:
    same = f"live.{name} <=> fresh.{name}"
    if not is_double:
        return same
    off = f"abs(live.{name} - fresh.{name}) <= {_ALMOST} * abs(fresh.{name})"
    return f"({same} OR coalesce({off}, FALSE))"
