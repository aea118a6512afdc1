"""Which days are to be recomputed, and why.

A day is over when no event that is in time can change it: the newest event is past all that its
rows follow from, and past the watermark. Of what was recomputed before, a day is made again when
events that it follows from came later, or when the events themselves were made again. Up to which
batch of events that was looked at, the table says in a property when a pass is through: so a pass
reads the batches since then, and a day that one has not come to is found again. A table that is
made again, for other columns or another definition, says in the same commit which days it had: they
are due until they are there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.config.settings import iso
from tidemill.errors import UsageError
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.schema.table_properties import tell
from tidemill.lake.tables import Table
from tidemill.lake.tables.day_tables import DAY, PARTITION
from tidemill.lake.times import at, of_epoch, of_micros

ONE, MINUTE = timedelta(days=1), timedelta(minutes=1)
LOOKED_AT, LOST = "tidemill.looked_at", "tidemill.lost_days"
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
        """Return from when to before when events are that the day's rows follow from."""

    def rows(self, day: date, known: KnownEvents) -> DataFrame:
        """Return the day's rows, as the events say."""

    def differences(self, day: date, rows: DataFrame, known: KnownEvents) -> Mapping[str, int]:
        """Return how many of what people read until now is different, by cause."""


@dataclass(frozen=True)
class KnownEvents:
    """The events that there are: clean's newest batch, the hour of the oldest event, and the time
    of the newest one."""

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
        hour = F.unix_seconds("event_hour")  # the partition: no times are read for it
        oldest, final = map(of_epoch, rows.agg(F.min(hour), F.max(hour)).collect()[0])
        if oldest is None or final is None:
            return None
        of_final = rows.where(F.col("event_hour") == at(final))
        newest = of_final.agg(F.max(F.unix_micros(time_))).collect()[0][0]
        return cls(batch, oldest, of_micros(newest))


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
    found = dict.fromkeys(_lost(lake, days.table) - before.keys(), MADE_AGAIN)
    if not before and not found:
        return [(newest, NEW)] if midnight(newest) + ONE > known.oldest else []
    found.update(_again(lake, days, known, before))
    last = max([*before, *found])
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


def _lost(lake: Lake, table: Table) -> set[date]:
    """Return the days that the table had when it was made again, which may be there by now."""
    if not lake.has(table.name):
        return set()
    said = lake.metadata(table.name).properties.get(LOST, "")
    return set(map(date.fromisoformat, said.split()))


def loses(lake: Lake, table: Table) -> set[date]:
    """Return the days that a table loses when it is made again: those that it has, and those that
    it lost before and has not got back."""
    return _lost(lake, table) | _recomputed(lake, table).keys()


def of_lost(days: Iterable[date]) -> dict[str, str]:
    """Return the property of a table that is made again and had these days."""
    return {LOST: " ".join(map(str, sorted(days)))}


def _again(
    lake: Lake, days: Days, known: KnownEvents, before: Mapping[date, _Known]
) -> Iterator[tuple[date, str]]:
    """Yield the days of which events came since they were recomputed."""
    ours = [day.batch for day in before.values() if day.generation == lake.generation]
    looked = _looked_at(lake, days.table)
    since = min(ours, default=known.batch) if looked is None else looked
    arrived = _arrived(lake, since) if since < known.batch else []
    for day in before.values():
        first, end = days.reads(day.day)
        if day.generation != lake.generation:
            yield day.day, MADE_AGAIN
        elif any(
            newest > day.batch and minute < end and minute + MINUTE > first
            for minute, newest in arrived
        ):
            yield day.day, LATE


def _arrived(lake: Lake, batch: int) -> list[tuple[datetime, int]]:
    """Return the minutes of the events that came after a batch, and the newest batch of each."""
    rows = lake.spark.table(lake.tables.events.name).where(F.col("batch") > batch)
    minute = F.floor(F.unix_seconds(lake.pipeline.events.event_time) / 60).alias("minute")
    found = rows.groupBy(minute).agg(F.max("batch").alias("newest")).collect()
    return [(of_epoch(row["minute"] * 60), row["newest"]) for row in found]


def _looked_at(lake: Lake, table: Table) -> int | None:
    """Return up to which batch of these events passes have looked at what came late."""
    said = json.loads(lake.metadata(table.name).properties.get(LOOKED_AT, "{}"))
    return said["batch"] if said.get("generation") == lake.generation else None


def look_at(lake: Lake, table: Table, known: KnownEvents) -> None:
    """Have the table say that a pass has come through all that was due by these events."""
    if _looked_at(lake, table) != known.batch:
        said = {"generation": lake.generation, "batch": known.batch}
        tell(lake.spark, table.name, {LOOKED_AT: json.dumps(said)})
