"""`bucket` makes minute buckets of events.

    events batch ──cut to minutes──► buckets      (append, txn = batch)

It takes any frame and any batch id and may be called again with both after a crash at any point:
what stands is verified, what is missing is written.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from tidemill.config.settings import iso, parse_time
from tidemill.features import FeatureView
from tidemill.lake.append import append, digest
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.commits.failpoints import reach
from tidemill.lake.parameters import ask
from tidemill.lake.statements import statement
from tidemill.lake.tables import Table
from tidemill.lake.times import of_epoch
from tidemill.pipeline.row_writes.frame_cache import cached

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Bucketed:
    """What the bucket table holds after a batch: its newest batch and the start of its newest
    bucket, and the rows that the batch added; and, as they were read before the batch, its newest
    commits and append."""

    batch: int
    newest: datetime | None
    commits: Sequence[ledger.Commit]
    append: ledger.Commit | None
    rows: int = 0
    seconds: float = 0.0


def bucket(batch: DataFrame, batch_id: int, *, lake: Lake, view: FeatureView) -> Bucketed:
    """Append the batch's minute buckets, once, with the running newest bucket in the same commit.

    An empty batch appends nothing. Raises LedgerError when the batch id was used for other rows.
    """
    lake = lake.within(batch.sparkSession)
    started = time.monotonic()
    table, before = lake.tables.of(view).buckets, bucketed(lake, view)
    with ExitStack() as kept:
        rows = kept.enter_context(cached(_buckets(batch, batch_id, view)))
        fields, overflowed = _told_of_buckets(rows, table, view, before)
        if overflowed:
            rows = kept.enter_context(cached(_apart(rows, batch, batch_id, view)))
            fields, _ = _told_of_buckets(rows, table, view, before)
        reach("feature.buckets_computed")
        if not fields["events"]:
            return replace(before, seconds=time.monotonic() - started)
        stands = append(lake, table, rows, batch_id, fields, before.append)
        appended = stands.ledger
    reach("feature.buckets_written")
    log.info("feature batch %d: %d events, %s", batch_id, fields["events"], fields["digest"])
    newest = max(filter(None, (before.newest, _time(appended.get("newest")))), default=None)
    seconds = time.monotonic() - started
    return replace(
        before,
        batch=max(batch_id, before.batch),
        newest=newest,
        rows=int(fields["buckets"]) if stands.written else 0,
        seconds=seconds,
    )


def buckets_of(events: DataFrame, batch_id: int, view: FeatureView) -> DataFrame:
    """Return one row per keys and minute, with the columns of the bucket table and `__events`, a
    count; one row per event where a sum of theirs does not fit."""
    rows, overflowed = _buckets(events, batch_id, view), broken(view)
    if not overflowed or rows.where(overflowed).isEmpty():
        return rows
    return _apart(rows, events, batch_id, view)


def broken(view: FeatureView) -> str:
    """Return the condition of a row of buckets to hold a sum that does not fit; empty where the
    view adds nothing up."""
    return " OR ".join(f"{p.name} IS NULL" for p in view.partials if p.part.adds)


def _buckets(events: DataFrame, batch_id: int, view: FeatureView) -> DataFrame:
    text = statement("buckets", view)
    return ask(events.sparkSession, text, {"batch": batch_id}, {"batch_events": events})


def _apart(rows: DataFrame, events: DataFrame, batch_id: int, view: FeatureView) -> DataFrame:
    """Return the rows with a row of its own for each event of a bucket that does not fit."""
    at, overflowed = [*view.keys, "bucket_start"], broken(view)
    text = statement("event_buckets", view)
    each = ask(events.sparkSession, text, {"batch": batch_id}, {"batch_events": events})
    apart = each.join(rows.where(overflowed).select(*at), at, "left_semi")
    return rows.where(f"NOT ({overflowed})").unionByName(apart.select(*rows.columns))


def bucketed(lake: Lake, view: FeatureView) -> Bucketed:
    """Return what the bucket table says it holds; from its rows when its log says nothing."""
    name = lake.tables.of(view).buckets.name
    commits = lake.commits(name)
    newest = ledger.newest_append(lake, name, lake.generation, commits)
    if newest is not None and newest.ledger is not None:
        fields = newest.ledger
        return Bucketed(int(fields["batch"]), _time(fields.get("newest")), commits, newest)
    row = lake.spark.table(name).agg(F.max("batch"), _epoch(F.max("bucket_start"))).collect()[0]
    return Bucketed(-1 if row[0] is None else row[0], of_epoch(row[1]), commits, newest)


def _told_of_buckets(
    rows: DataFrame, table: Table, view: FeatureView, before: Bucketed
) -> tuple[dict[str, Any], int]:
    """Return the ledger of bucket rows, and how many of them hold a sum that does not fit."""
    row: Row = rows.agg(
        F.coalesce(F.sum("__events"), F.lit(0)).alias("events"),
        F.count("*").alias("buckets"),
        digest(table).alias("digest"),
        _epoch(F.max("bucket_start")).alias("newest"),
        F.count_if(F.expr(broken(view) or "FALSE")).alias("overflowed"),
    ).collect()[0]
    newest = max(filter(None, (before.newest, of_epoch(row["newest"]))), default=None)
    fields = {name: row[name] for name in ("events", "buckets", "digest")}
    return {**fields, "newest": newest and iso(newest)}, row["overflowed"]


def _epoch(time_column: Column) -> Column:
    return F.unix_seconds(time_column)


def _time(text: str | None) -> datetime | None:
    return parse_time(text) if text else None


def event_as_of(buckets: Bucketed, view: FeatureView) -> datetime | None:
    """Return the event clock's time: the end of the newest bucket, None without any."""
    return buckets.newest + view.bucket_length if buckets.newest else None
