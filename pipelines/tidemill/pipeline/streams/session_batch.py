"""A batch of events into the table of sessions: those that it touches are made again and MERGEd.

    new events ──by key──► spans ◄── sessions that they touch, in the table
                            │
                  events of the spans ──► sessions ──differ from the table's──► MERGE, txn = batch

No event is too late: a session that it opens again, prolongs or joins with another is made of its
events once more. Sessions that are open are in the table, and are closed when the watermark, the
newest event's time less the declared lateness, has passed the time at which they end.
"""

from __future__ import annotations

import time

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.config.stream_operators.sessions import Sessions
from tidemill.config.stream_operators.stream import Stream
from tidemill.lake import times
from tidemill.lake.catalog import Lake
from tidemill.lake.tables import Table
from tidemill.pipeline.silver.frame_cache import cached
from tidemill.pipeline.streams import keyed_merge
from tidemill.pipeline.streams.keyed_merge import GONE
from tidemill.pipeline.streams.operators.input_rows import TIME
from tidemill.pipeline.streams.session_rows import GAP, session_rows, taken

FIRST, LAST = "__first", "__last"  # of a key, what its sessions may touch


def merge_sessions(batch: DataFrame, batch_id: int, *, lake: Lake, stream: Stream) -> None:
    """Bring the sessions of the events of a batch into the stream's table, once; the same batch
    again finds itself there. A batch that changes no session leaves no commit."""
    lake, started = lake.within(batch.sparkSession), time.monotonic()
    sessions, table = stream.sessions, lake.tables.streams[stream.name]
    assert sessions is not None
    before = keyed_merge.newest(lake, table, batch_id)
    if before is None:
        return
    at = lake.pipeline.events.event_time
    (row,) = times.collect(batch.agg(F.max(at).alias("newest"), F.max("batch").alias("clean")))
    if row["newest"] is None:
        return
    event_time = max(row["newest"], times.of_micros(int(before.get("newest", 0))))
    watermark = times.at(event_time - sessions.lateness)
    with cached(_spans(taken(batch, sessions, at), table, sessions, lake)) as spans:
        events = _events_of(spans, sessions, lake, row["clean"])
        made = session_rows(events, sessions).withColumn("closed", F.col("closes_at") < watermark)
        with cached(_changes(made, spans, table, sessions, lake, watermark)) as changes:
            told = {"newest": times.to_micros(event_time)}
            by = sessions.keys
            keyed_merge.bring(
                changes, batch_id, lake, table, by, "session_start", started=started, told=told
            )


def _spans(new: DataFrame, table: Table, sessions: Sessions, lake: Lake) -> DataFrame:
    """Return for each key of new events the time, both ends included, in which its sessions are
    made again: that of its events, and of the sessions which they touch."""
    keys = list(sessions.keys)
    ends = F.col(TIME) + F.make_interval(secs=F.col(GAP))
    own = new.groupBy(*keys).agg(F.min(TIME).alias(FIRST), F.max(ends).alias(LAST))
    touched = (
        lake.spark.table(table.name)
        .join(own, keys)
        .where((F.col("session_start") <= F.col(LAST)) & (F.col("closes_at") >= F.col(FIRST)))
    )
    theirs = touched.groupBy(*keys).agg(
        F.min("session_start").alias(FIRST), F.max("closes_at").alias(LAST)
    )
    both = own.unionByName(theirs).groupBy(*keys)
    return both.agg(F.min(FIRST).alias(FIRST), F.max(LAST).alias(LAST))


def _events_of(spans: DataFrame, sessions: Sessions, lake: Lake, clean: int) -> DataFrame:
    """Return the events of the spans, up to a batch of clean."""
    (bounds,) = times.collect(
        spans.agg(F.date_trunc("hour", F.min(FIRST)).alias("first"), F.max(LAST).alias("last"))
    )
    events = lake.spark.table(lake.tables.events.name).where(F.col("batch") <= clean)
    if bounds["first"] is None:
        events = events.limit(0)
    else:
        hour = F.col("event_hour")
        events = events.where(hour.between(times.at(bounds["first"]), times.at(bounds["last"])))
    rows = taken(events, sessions, lake.pipeline.events.event_time)
    inside = rows.join(spans, list(sessions.keys)).where(
        F.col(TIME).between(F.col(FIRST), F.col(LAST))
    )
    return inside.drop(FIRST, LAST)


def _changes(
    made: DataFrame,
    spans: DataFrame,
    table: Table,
    sessions: Sessions,
    lake: Lake,
    watermark: Column,
) -> DataFrame:
    """Return the rows of the table that change: sessions as they are now, those that are `GONE`,
    and those that nothing touched and that the watermark closes."""
    by = [*sessions.keys, "session_start"]
    known = lake.spark.table(table.name).drop("batch")
    near = known.join(spans, list(sessions.keys)).where(
        F.col("session_start").between(F.col(FIRST), F.col(LAST))
    )
    near = near.drop(FIRST, LAST)
    columns = [name for name in table.column_names if name != "batch"]
    new = made.select(*columns).exceptAll(near.select(*columns)).withColumn(GONE, F.lit(False))
    gone = near.join(made.select(*by), by, "left_anti").select(*columns)
    closing = known.where(~F.col("closed") & (F.col("closes_at") < watermark))
    closing = closing.join(spans.select(*sessions.keys, FIRST, LAST), list(sessions.keys), "left")
    closing = closing.where(
        F.col(FIRST).isNull() | ~F.col("session_start").between(F.col(FIRST), F.col(LAST))
    )
    closed = closing.withColumn("closed", F.lit(True)).select(*columns)
    return new.unionByName(gone.withColumn(GONE, F.lit(True))).unionByName(
        closed.withColumn(GONE, F.lit(False))
    )
