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
from tidemill.lake.relations import Record
from tidemill.lake.statements import statement
from tidemill.lake.times import at
from tidemill.pipeline.silver import replays

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
    (totals,) = _asked(lake, "refused_totals", since, reason)
    return {
        "pipeline": lake.pipeline.pipeline,
        **totals,
        "reasons": _asked(lake, "refused_by_reason", since, reason),
        "newest": _asked(lake, "refused_newest", since, reason),
    }


def shown(lake: Lake, record_id: str) -> dict[str, Any]:
    """Return a refused record whole: payload, position, reasons, batch, and whether a repaired one
    was landed, under which id."""
    rows = _asked(lake, "refused_record", record_id=record_id)
    if not rows:
        raise UsageError(
            "is not in quarantine",
            where=record_id,
            expected=f"a record_id of `tidemill quarantine list {lake.pipeline.pipeline}`",
        )
    record = {name: value for name, value in rows[0].items() if name != "ingest_date"}
    return {**record, "replay_id": replays.PREFIX + record_id if record["replayed"] else None}


def _asked(
    lake: Lake,
    name: str,
    since: datetime | None = None,
    reason: str | None = None,
    **values: object,
) -> list[Record]:
    """Return what a statement yields of refused records; of those since a time, or with a reason,
    where given."""
    clauses, view = ["records"], lake.pipeline.views[0]
    if lake.has(lake.tables.replays.name):
        text = statement("replayed_days", view, source=lake.pipeline.pipeline)
        (days,) = lake.ask(text, {}).rows
        if days["first_day"] is not None:
            clauses.append("replayed")
            values |= days
    if since is not None:
        clauses.append("since")
        values["since"] = since
    if reason is not None:
        clauses.append("reason")
        values |= {"reason": reason, "prefix": f"{reason}:", "prefix_length": len(reason) + 1}
    refused_ = statement("refused_records", view, clauses, source=lake.pipeline.pipeline)
    text = f"WITH refused AS (\n{refused_}\n)\n{statement(name, view)}"
    return [_in_seconds(row) for row in lake.ask(text, values).rows]


def _in_seconds(row: Record) -> Record:
    """Return a row with its times in whole seconds, as commands print them."""
    return {
        name: value.replace(microsecond=0) if isinstance(value, datetime) else value
        for name, value in row.items()
    }


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
