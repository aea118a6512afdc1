"""Quarantine, as people ask of it: why records were refused, one of them whole, what is left."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.errors import UsageError
from tidemill.lake.catalog import Lake
from tidemill.lake.times import at, of_epoch
from tidemill.pipeline.silver import replays

NEWEST = 20
EXPORTED = 10_000  # records


def refused(lake: Lake, since: datetime | None = None, reason: str | None = None) -> DataFrame:
    """Return refused records, and `replayed`, whether a repaired one was landed; those that came
    since a time, those with a reason, such as `missing:gti`, or `missing` for any field."""
    rows = lake.spark.table(lake.tables.quarantine.name)
    if since is not None:
        rows = rows.where(F.col("ingested_at") >= at(since))
    if reason is not None:
        one = F.lit(reason)
        rows = rows.where(
            F.exists("reasons", lambda r: (r == one) | r.startswith(F.concat(one, F.lit(":"))))
        )
    if not lake.has(lake.tables.replays.name):
        return rows.withColumn("replayed", F.lit(False))
    sent = replays.landed(lake).select("record_id", F.lit(True).alias("__landed"))
    landed = F.coalesce("__landed", F.lit(False))
    return rows.join(sent, "record_id", "left").withColumn("replayed", landed).drop("__landed")


def listed(lake: Lake, since: datetime | None, reason: str | None) -> dict[str, Any]:
    """Return the reasons, each with how many records it refused, how many of them are open, and the
    newest; and the newest open records."""
    rows = refused(lake, since, reason)
    counts = (
        F.count("*").alias("records"),
        F.count_if(~F.col("replayed")).alias("open"),
        F.count_if("replayed").alias("replayed"),
    )
    total = rows.agg(*counts).collect()[0]
    by_reason = rows.withColumn("reason", F.explode("reasons")).groupBy("reason")
    newest = F.max(F.unix_seconds("ingested_at")).alias("newest")
    example = F.min("record_id").alias("example")
    reasons = by_reason.agg(*counts, newest, example).orderBy(F.desc("records"), "reason").collect()
    still = rows.where(~F.col("replayed")).orderBy(F.desc("ingested_at"), "record_id")
    columns = ("record_id", "reasons", F.unix_seconds("ingested_at").alias("ingested_at"))
    return {
        "pipeline": lake.pipeline.pipeline,
        **total.asDict(),
        "reasons": [_timed(row.asDict(), "newest") for row in reasons],
        "newest": [
            _timed(row.asDict(), "ingested_at")
            for row in still.select(*columns).limit(NEWEST).collect()
        ],
    }


def shown(lake: Lake, record_id: str) -> dict[str, Any]:
    """Return a refused record whole: payload, position, reasons, batch, and whether a repaired one
    was landed, under which id."""
    times = {name: F.unix_seconds(name) for name in ("source_ts", "ingested_at")}
    rows = refused(lake).where(F.col("record_id") == record_id).withColumns(times).collect()
    if not rows:
        raise UsageError(
            "is not in quarantine",
            where=record_id,
            expected=f"a record_id of `tidemill quarantine list {lake.pipeline.pipeline}`",
        )
    record = _timed(rows[0].asDict(), *times)
    record.pop("ingest_date")
    return {**record, "replay_id": replays.PREFIX + record_id if record["replayed"] else None}


def _timed(row: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return a row with its times, which came as seconds, in UTC: a session's zone says nothing."""
    return {**row, **{name: of_epoch(row[name]) for name in names}}


def export(lake: Lake, path: Path, since: datetime | None, reason: str | None) -> int:
    """Write the open records as lines to repair, for `replay`, in the order of their ids; return
    how many. So many at a time are in this process's memory as EXPORTED says."""
    rows = refused(lake, since, reason).where(~F.col("replayed"))
    columns = rows.select("record_id", "reasons", "raw_payload")
    parts = max(1, -(-columns.count() // EXPORTED))
    ordered = columns.repartitionByRange(parts, "record_id").sortWithinPartitions("record_id")
    written = 0
    try:
        with path.open("w", encoding="utf-8") as file:
            for row in ordered.toLocalIterator():
                file.write(json.dumps(row.asDict(), ensure_ascii=False) + "\n")
                written += 1
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(path)) from error
    return written
