"""The replacement of bucket rows, made beside the bucket table and put in its place in one commit.

    events that feature has read ──day by day──► <view>_rebuild_<id> ──one commit──► <view>_buckets
    (clean's batches up to e,                    {batch b, events e,    replaces its rows with
     feature's up to b)                           through}              batch <= b

Nobody else reads the staging table. Its property says which rebuild it is of, its commits how far
it is, so the same rebuild goes on where it stood; another one throws it away. Batches that feature
appends meanwhile stay: they are later than b, and their events later than e. What came since the
staging began is staged last, as rows of the newest batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.config.settings import iso
from tidemill.errors import LedgerError
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger, writer
from tidemill.lake.commits.races import TRIES, lost_race, past_others
from tidemill.lake.integrity import interrupted_rebuilds
from tidemill.lake.schema import creation
from tidemill.lake.tables import Table
from tidemill.lake.times import of_epoch
from tidemill.operations.rebuild import backfill_rows
from tidemill.operations.rebuild.backfill_rows import Days
from tidemill.pipeline.silver import minute_buckets

FROM_EVENTS = "buckets from events"


@dataclass(frozen=True)
class Read:
    """What feature has read: its batches up to `batch` are of clean's up to `events`, wholly."""

    batch: int
    events: int


def read_so_far(lake: Lake, view: FeatureView) -> Read | None:
    """Return what the view's buckets are made of, exactly; None when that cannot be told: nothing
    was read yet, or the last batch ends within a commit of the events.

    Another process may append meanwhile, so the newest finished batch is asked for first.
    """
    checkpoint = lake.checkpoint("feature")
    finished = checkpoint.finished()
    batch = minute_buckets.bucketed(lake, view).batch
    version = checkpoint.read_before(max(finished, batch))
    if version is None:
        return None
    newest = backfill_rows.newest_event_batch(lake)
    name = lake.tables.events.name
    commits = lake.commits(name)
    missing = commits[-1].version - version
    if missing > 0:
        commits = lake.commits(name, len(commits) + missing)
        if commits[-1].version > version:
            return None
    later = [
        int(commit.ledger["batch"])
        for commit in ledger.appends(commits, lake.generation)
        if commit.ledger and commit.version >= version
    ]
    return Read(batch, min([newest, *(number - 1 for number in later)]))


@dataclass(frozen=True)
class Staging:
    """A staging table: whose, and which bucket rows it will replace."""

    lake: Lake
    view: FeatureView
    table: Table
    id: str
    begun: Read
    keys: Sequence[Mapping[str, str]]
    since: datetime | None

    @property
    def progress(self) -> tuple[Read, str]:
        """What the staged rows are made of, and the last day that is done."""
        newest = ledger.newest_append(self.lake, self.table.name, self.lake.generation)
        if newest is None or newest.ledger is None:
            return self.begun, ""
        fields = newest.ledger
        return Read(int(fields["batch"]), int(fields["events"])), str(fields["through"])

    @cached_property
    def days(self) -> Days:
        """The days to stage: of some rows that are replaced, of all that the table may hold."""
        events = self._events(-1, self.begun.events)
        held = bool(self.keys or self.since)
        return backfill_rows.days(self.lake, self.view, events, self.since, held=held)

    def of_day(self, day: datetime) -> DataFrame:
        """Return the bucket rows of a day's events."""
        events = backfill_rows.of_day(self._events(-1, self.begun.events), day)
        return self._made(events, self.begun.batch, self._scope(day, backfill_rows.DAY))

    def of_later(self, first: datetime, before: Read, now: Read) -> DataFrame:
        """Return the bucket rows, from the first day on, of events that feature read since."""
        return self._made(self._events(before.events, now.events), now.batch, self._scope(first))

    def append(self, rows: DataFrame, read: Read, through: str) -> None:
        """Stage rows, and record in the same commit how far the table is."""
        ledger_fields = {"generation": self.lake.generation, **vars(read), "through": through}
        writer.write(rows, self.table.name, ledger_fields)

    def put_in_place(self, first: datetime, *, brings_batches: bool = False) -> int:
        """Replace the bucket rows from the first day on, in one commit whose ledger says so; return
        the number of rows put in place.

        Rows of batches that were not staged stay. With `brings_batches` the table did not hold all
        batches before: the commit is then its newest append, as far as a ledger is concerned.
        LedgerError when other writers always came first.
        """
        name, read = self.lake.tables.of(self.view).buckets.name, self.progress[0]
        staged = self.lake.spark.table(self.table.name)
        ledger_fields = {
            "generation": self.lake.generation,
            "batch": read.batch,
            ledger.REBUILD: self.id,
            **({"newest": _newest(staged)} if brings_batches else {ledger.UPKEEP: FROM_EVENTS}),
        }
        rows = staged.repartition("bucket_hour")
        rows = rows.sortWithinPartitions("bucket_hour", "bucket_start")
        scope = f"{self._scope(first)} AND batch <= {read.batch}"
        try:
            past_others(lambda: writer.write(rows, name, ledger_fields, replaces_where=scope))
        except PySparkException as error:
            if not lost_race(error):
                raise
            raise LedgerError(
                f"{TRIES} writes in a row lost against another writer",
                where=name,
                expected="the same rebuild again, when maintenance has ended",
            ) from error
        return self._put(name)

    def _put(self, name: str) -> int:
        commits = self.lake.commits(name)
        ours = (c for c in commits if c.ledger and c.ledger.get(ledger.REBUILD) == self.id)
        commit = next(ours, None)  # which wrote again the rows beside them, too
        return commit.metric("numOutputRows") - commit.metric("numCopiedRows") if commit else 0

    def drop(self) -> None:
        """Remove the staging table."""
        creation.drop(self.lake, self.table.name)

    def _events(self, after: int, to: int) -> DataFrame:
        events = self.lake.spark.table(self.lake.tables.events.name)
        return events.where((F.col("batch") > after) & (F.col("batch") <= to))

    def _scope(self, first: datetime, length: Any = None) -> str:
        end = first + length if length else None
        return backfill_rows.condition(first, end, self.keys, self.since)

    def _made(self, events: DataFrame, batch: int, where: str) -> DataFrame:
        made = minute_buckets.buckets_of(events, batch, self.view).where(where)
        columns = self.table.columns
        return made.select(*(F.col(c.name).cast(c.type).alias(c.name) for c in columns))


def _newest(staged: DataFrame) -> str:
    """Return the start of the newest bucket as a ledger writes it."""
    row = staged.agg(F.unix_seconds(F.max("bucket_start"))).collect()[0]
    return iso(of_epoch(int(row[0])))


def begin(
    lake: Lake,
    view: FeatureView,
    spec: str,
    read: Read,
    keys: Sequence[Mapping[str, str]],
    since: datetime | None,
) -> Staging:
    """Return the staging of the same rebuild where it can go on, else a new one; what else is
    staged for the view is removed."""
    known: dict[str, Any] | None = None
    for staging in interrupted_rebuilds.stagings(lake, view):
        same = staging["spec"] == spec and staging["generation"] == lake.generation
        if same and not known:
            known = staging
        else:
            creation.drop(lake, staging["table"])
    state = known or _created(lake, view, spec, read)
    table = replace(lake.tables.of(view).buckets, name=state["table"])
    begun = Read(state["batch"], state["events"])
    return Staging(lake, view, table, state["id"], begun, keys, since)


def _created(lake: Lake, view: FeatureView, spec: str, read: Read) -> dict[str, Any]:
    id_ = creation.new_generation()[:12]
    state = {
        "spec": spec,
        "id": id_,
        "view": view.name,
        "table": f"{view.name}_rebuild_{id_}",
        "generation": lake.generation,
        **vars(read),
    }
    buckets = lake.tables.of(view).buckets
    properties = {**buckets.properties, interrupted_rebuilds.STATE: json.dumps(state)}
    table = replace(buckets, name=state["table"], properties=properties)
    creation.create(lake, table)
    return state


def pending(staging: Staging) -> Iterator[tuple[int, int, datetime]]:
    """Yield (place, number of days, day) of the days that are not staged yet."""
    days, through = staging.days.each, staging.progress[1]
    for place, day in enumerate(days, 1):
        if f"{day:%Y-%m-%d}" > through:
            yield place, len(days), day
