"""Which days are to be recomputed, and why.

A day is over when no event that is in time can change it: the newest event is past all that its
rows follow from, and past the watermark. Of what was recomputed before, a day is made again when
events of it came later, or when the events themselves were made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from typing import Any, Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.config.settings import iso
from tidemill.errors import UsageError
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.tables import Table
from tidemill.lake.tables.day_tables import DAY, PARTITION
from tidemill.lake.times import of_micros

ONE = timedelta(days=1)
NEW, LATE, MADE_AGAIN, ASKED = "new", "late events", "events made again", "asked"


class Days(Protocol):
    """Something of which days can be recomputed."""

    @property
    def name(self) -> str:
        """What the view or stream is called."""

    @property
    def kind(self) -> str:
        """Which of both it is."""

    @property
    def table(self) -> Table:
        """The table of its recomputed days."""

    @property
    def lateness(self) -> timedelta:
        """How much older than the newest event one may be that is in time."""

    def reads(self, day: date) -> tuple[datetime, datetime]:
        """Return the times between which events are that the day's rows follow from."""

    def rows(self, day: date, known: KnownEvents) -> DataFrame:
        """Return the day's rows, as the events say."""

    def differences(self, day: date, rows: DataFrame, known: KnownEvents) -> Mapping[str, int]:
        """Return how many of what people read until now is different, by cause."""


@dataclass(frozen=True)
class KnownEvents:
    """The events that there are: clean's newest batch, the times of the oldest and the newest
    event."""

    batch: int
    oldest: datetime
    newest: datetime

    @classmethod
    def of(cls, lake: Lake) -> KnownEvents | None:
        """Return what the events table holds; None for nothing."""
        name, time_ = lake.tables.events.name, lake.pipeline.events.event_time
        last = ledger.newest_append(lake, name, lake.generation)
        if last is None or last.ledger is None:
            return None
        batch = int(last.ledger["batch"])
        rows = lake.spark.table(name).where(F.col("batch") <= batch)
        micros = F.unix_micros(time_)
        oldest, newest = rows.agg(F.min(micros), F.max(micros)).collect()[0]
        return None if newest is None else cls(batch, of_micros(oldest), of_micros(newest))


@dataclass(frozen=True)
class _Known:
    """What the row of a day says that was recomputed."""

    day: date
    batch: int
    generation: str


def midnight(day: date) -> datetime:
    """Return when a day begins."""
    return datetime.combine(day, time.min, timezone.utc)


def wanted(
    lake: Lake, days: Days, known: KnownEvents, asked: date | None
) -> list[tuple[date, str]]:
    """Return the days to recompute, oldest first, and why; of what was never recomputed the newest
    one that is over. UsageError for a day that is asked for and is not over yet."""
    if asked is not None:
        _refuse_open(days, known, asked)
        return [(asked, ASKED)]
    newest = _newest_over(days, known)
    before = _recomputed(lake, days.table)
    if not before:
        return [(newest, NEW)] if midnight(newest) + ONE > known.oldest else []
    found = dict(_again(lake, days, before))
    last = max(before)
    while last < newest:
        last += ONE
        found[last] = NEW
    return sorted(found.items())


def _newest_over(days: Days, known: KnownEvents) -> date:
    day = known.newest.date()
    while _open_until(days, day) > known.newest:
        day -= ONE
    return day


def _open_until(days: Days, day: date) -> datetime:
    return days.reads(day)[1] + days.lateness


def _refuse_open(days: Days, known: KnownEvents, day: date) -> None:
    until = _open_until(days, day)
    if until > known.newest:
        raise UsageError(
            f"{day} is not over for {days.name}: the newest event is of {iso(known.newest)}",
            where="--day",
            expected=f"an event of {iso(until)} or later, or a day up to "
            f"{_newest_over(days, known)}",
        )


def _recomputed(lake: Lake, table: Table) -> dict[date, _Known]:
    if not lake.has(table.name):
        return {}
    rows = lake.spark.table(table.name).where(F.col("row_kind") == DAY)
    found = rows.select(PARTITION, "events_batch", "generation").collect()
    return {row[0]: _Known(*row) for row in found}


def _again(lake: Lake, days: Days, before: Mapping[date, _Known]) -> Iterator[tuple[date, str]]:
    """Yield the days of which events came since they were recomputed."""
    ours = [day for day in before.values() if day.generation == lake.generation]
    arrived = _arrived(lake, min((day.batch for day in ours), default=0)) if ours else []
    for day in before.values():
        first, end = days.reads(day.day)
        if day.generation != lake.generation:
            yield day.day, MADE_AGAIN
        elif any(
            row["newest"] > day.batch
            and midnight(row["day"]) <= end
            and midnight(row["day"]) + ONE > first
            for row in arrived
        ):
            yield day.day, LATE


def _arrived(lake: Lake, batch: int) -> list[Any]:
    """Return the days of the events that came after a batch, and the newest batch of each."""
    rows = lake.spark.table(lake.tables.events.name).where(F.col("batch") > batch)
    day = F.col(lake.pipeline.events.event_time).cast("date").alias("day")
    return rows.groupBy(day).agg(F.max("batch").alias("newest")).collect()
