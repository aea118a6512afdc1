"""Which events the buckets of a view cover: all that `feature` has read, else the view is late.

    <checkpoint of feature>/_tidemill_views.json    {view: {"table": id, "through": batch or null}}

A batch of feature appends to the buckets of every view that its pipeline declares. So the buckets
of a view are complete exactly when their table took part in every batch of the checkpoint. The
record beside the checkpoint says which tables did: `table` is Delta's id of the bucket table,
`through` the last batch it took part in, or null while the pipeline declares the view.

    batches of feature       0    1    2    3    4
    engagement, always       x    x    x    x    x      complete
    plays, added at 2                  x    x    x      late: lacks 0 and 1
    clicks, left out at 2    x    x         x    x      late: lacks 2
    visits, table removed    -    -    -    x    x      late: another table than the recorded one
    likes, left out when all was rebuilt from bronze    late: its table is of the tables before

A late view is refused by whatever opens the lake; `rebuild --views` makes its buckets from the
events, beside the table and put in place at once (see `replacement`). A checkpoint without a record
is of an earlier version: its views are taken as complete unless the ledgers, or the hours of the
buckets, say that events are missing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pyspark.sql import functions as F

from tidemill.config import dataflow
from tidemill.config.dataflow import REBUILD
from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.errors import LakeError
from tidemill.features import FeatureView
from tidemill.lake import tables
from tidemill.lake.catalog import Lake
from tidemill.lake.checkpoints import Checkpoint
from tidemill.lake.commits import ledger
from tidemill.lake.integrity.whole_file import write_json
from tidemill.lake.schema.table_properties import GENERATION

RECORD = "_tidemill_views.json"
LOST_RECORDS = "see 'Lost table' in docs/operations.md"
NOTHING = -1  # as the last batch that a table took part in
Record = dict[str, dict[str, Any]]


def read(checkpoint: Checkpoint) -> Record | None:
    """Return the record beside feature's checkpoint, None where there is none."""
    try:
        record: Record = json.loads((checkpoint.folder / RECORD).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return record


def write(checkpoint: Checkpoint, record: Record) -> None:
    """Write the record, whole: a crash leaves the one before it."""
    write_json(checkpoint.folder / RECORD, dict(sorted(record.items())))


def of_absent(
    pipeline: PipelineDefinition, checkpoint: Checkpoint, absent: Collection[str]
) -> dict[str, str]:
    """Return, by view, why a bucket table that does not exist would be late; needs no query."""
    if checkpoint.finished() < 0:
        return {}
    record = read(checkpoint) or {}
    reasons = {}
    for view in pipeline.views:
        declared = tables.of(pipeline).of(view)
        name = declared.buckets.name
        if name in absent:
            lost = view.name in record or declared.gold.name not in absent
            why = f"{name} is gone" if lost else f"{name} does not exist yet"
            reasons[view.name] = f"{why}, and feature has read {_batches(checkpoint.finished())}"
    return reasons


def late(lake: Lake, views: Iterable[FeatureView] | None = None) -> dict[str, str]:
    """Return, by view, why its buckets lack events that feature has read; of all
    views by default. Their bucket tables exist."""
    checkpoint = lake.checkpoint("feature")
    if checkpoint.finished() < 0:
        return {}
    record = read(checkpoint)
    asked = lake.pipeline.views if views is None else views
    reasons = {view.name: _reason(lake, view, record, checkpoint) for view in asked}
    return {name: why for name, why in reasons.items() if why}


def _reason(
    lake: Lake, view: FeatureView, record: Record | None, checkpoint: Checkpoint
) -> str | None:
    name = lake.tables.of(view).buckets.name
    if lake.metadata(name).properties.get(GENERATION, "") != lake.generation:
        return f"{name} is of before a rebuild from bronze"
    if record is None:
        return _reason_without_record(lake, view, checkpoint)
    entry = record.get(view.name)
    if entry is None:
        return f"{name} was made after feature had read {_batches(checkpoint.finished())}"
    if entry["table"] != lake.detail(name).id:
        return f"{name} is another table than the one that feature has written"
    through = entry["through"]
    if through == NOTHING:
        return f"a rebuild of {name} has not ended"
    if through is not None and through < checkpoint.finished():
        return f"{name} lacks the batches {through + 1} to {checkpoint.finished()} of feature"
    return None


def _batches(newest: int) -> str:
    return "batch 0" if newest == 0 else f"batches up to {newest}"


def refuse(pipeline: PipelineDefinition, reasons: Mapping[str, str]) -> None:
    """Raise LakeError when a view is late, with the command that makes its buckets."""
    for view, why in reasons.items():
        raise LakeError(
            f"its buckets lack events: {why}",
            where=f"view {view}",
            expected=f"{way_out(pipeline, reasons)}; `tidemill plan` says more",
        )


def way_out(pipeline: PipelineDefinition, views: Iterable[str]) -> str:
    """Return the command that makes the buckets of late views, in words."""
    part = "--from bronze" if pipeline.engine == "stateful" else f"--views {','.join(views)}"
    return f"run `tidemill rebuild {pipeline.command_name} {part}`"


def refuse_lost(lake: Lake, absent: Collection[str]) -> None:
    """Raise LakeError when a table is gone that a query has written or reads; what it held is not
    made again by going on. Tables of views are for `late` to judge."""
    name = lake.pipeline.command_name
    queries = lake.pipeline.queries_of(lake.pipeline.engine)
    for query in (each for each in queries if not each.per_view):
        newest = lake.checkpoint(query.checkpoint).finished()
        for role in set((query.reads, *query.writes)) - dataflow.OF_VIEW - {dataflow.SOURCE}:
            (table,) = lake.tables_of(query, (role,))
            if table in absent and newest >= 0:
                raise LakeError(
                    f"is gone, and {query.name} has finished {_batches(newest)}",
                    where=table,
                    expected=LOST_RECORDS if role == "bronze" else REBUILD.format(pipeline=name),
                )


def take_part(lake: Lake) -> None:
    """Record that the pipeline's views take part in feature's next batches, and that those which it
    does not declare took part up to the last one that is finished. A late view stays late."""
    checkpoint, behind = lake.checkpoint("feature"), late(lake)
    record = read(checkpoint) or {}
    views = [view for view in lake.pipeline.views if view.name not in behind]
    declared = {view.name: lake.tables.of(view).buckets.name for view in views}
    for view, entry in record.items():
        if view not in {*declared, *behind} and entry["through"] is None:
            entry["through"] = checkpoint.finished()
    for view, name in declared.items():
        record[view] = {"table": lake.detail(name).id, "through": None}
    if record != read(checkpoint):
        write(checkpoint, record)


def uncover(lake: Lake, view: FeatureView) -> None:
    """Record that the view's buckets lack events, whatever they hold, until they are `covered`."""
    covered(lake, view, NOTHING)


def covered(lake: Lake, view: FeatureView, batch: int) -> None:
    """Record that the view's buckets hold all that feature has read up to a batch."""
    checkpoint = lake.checkpoint("feature")
    entry = {"table": lake.detail(lake.tables.of(view).buckets.name).id, "through": batch}
    write(checkpoint, {**(read(checkpoint) or {}), view.name: entry})


def _reason_without_record(lake: Lake, view: FeatureView, checkpoint: Checkpoint) -> str | None:
    """Compare the events that the appends' ledgers count with those that feature has read; where
    the log no longer holds each append, the hours of both. In doubt a view is complete."""
    if any(key in view.select for key in view.keys):
        return None  # an event whose selected key is null is in no bucket
    name, events = lake.tables.of(view).buckets.name, lake.tables.events.name
    counted = _counted(lake, name)
    version = checkpoint.read_to()
    if counted is None or version is None or lake.commits(events, 1)[0].version + 1 != version:
        return _missing_hour(lake, view)
    read_ = lake.spark.table(events).count()
    if counted < read_:
        return f"{name} counts {counted:,} of the {read_:,} events that feature has read"
    return None


def _counted(lake: Lake, name: str) -> int | None:
    """Return the events that the appends since the table was made count, None when the log does not
    reach back to that."""
    counted = 0
    for commit in lake.commits(name, None):
        fields = commit.ledger or {}
        if fields.get("generation") == lake.generation and ledger.UPKEEP not in fields:
            counted += int(fields.get("events", 0))
        if commit.makes_table:
            return counted
    return None


def _missing_hour(lake: Lake, view: FeatureView) -> str | None:
    """Return which hour of events has no bucket at all; it reads partitions' values alone."""
    events, buckets = lake.tables.events.name, lake.tables.of(view).buckets.name
    version = lake.checkpoint("feature").read_to()
    reader = lake.spark.read
    if version is not None and version <= lake.commits(events, 1)[0].version:
        reader = reader.option("versionAsOf", version - 1)
    hours = reader.table(events).select("event_hour").distinct()
    newest = hours.agg(F.unix_seconds(F.max("event_hour"))).collect()[0][0]
    oldest = newest and newest - int(lake.pipeline.kept_of(view).total_seconds()) + 3600
    held = lake.spark.table(buckets).select(F.col("bucket_hour").alias("event_hour")).distinct()
    recent = hours.where(F.unix_seconds("event_hour") >= (oldest or 0))
    missing = recent.join(held, "event_hour", "left_anti")
    first = missing.agg(F.min("event_hour").cast("string")).collect()[0][0]
    return f"{buckets} holds nothing of the hour {first}, which has events" if first else None
