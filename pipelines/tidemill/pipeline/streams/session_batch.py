"""A batch of events into the table of sessions: those that it touches are made again and MERGEd.

    new events ──by key──► spans ◄── sessions that they touch, in the table
                            │
                  events of the spans ──► sessions ──differ from the table's──► MERGE, txn = batch

No event is too late: a session that it opens again, prolongs or joins with another is made of its
events once more. Sessions that are open are in the table, and are closed when the watermark, the
newest event's time less the declared lateness, has passed the time at which they end.

Of events and sessions the hours that a batch touches are read, and what may be open since the
watermark of the newest commit. Whole hours, as they stand in code, which is compiled when they
change; what changes with each batch stands beside it.
"""

from __future__ import annotations

import time

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.config.stream_operators.sessions import Sessions
from tidemill.config.stream_operators.stream import Stream
from tidemill.lake import times
from tidemill.lake.catalog import Lake
from tidemill.lake.parameters import beside_code
from tidemill.lake.tables import Table
from tidemill.pipeline.row_writes.frame_cache import kept_for_merge
from tidemill.pipeline.streams import keyed_merge
from tidemill.pipeline.streams.keyed_merge import GONE, HourRange, whole_hours
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
    ends = F.min(at).alias("oldest"), F.max(at).alias("newest"), F.max("batch").alias("clean")
    (row,) = times.collect(batch.agg(*ends))
    if row["newest"] is None:
        return
    event_time = max(row["newest"], times.of_micros(int(before.get("newest", 0))))
    watermark = times.to_micros(event_time - sessions.lateness)
    hours = whole_hours(row["oldest"], row["newest"] + sessions.longest_gap)
    new = taken(batch, sessions, at)
    with kept_for_merge(_spans(new, _of_hours(table, hours, lake), sessions), lake) as spans:
        (of,) = times.collect(spans.agg(F.min(FIRST).alias("first"), F.max(LAST).alias("last")))
        if of["first"] is not None:  # else the batch has none of its events, but may close some
            hours = whole_hours(of["first"], of["last"])
        passed = _passed(watermark, sessions)
        events = _events_of(spans, hours, sessions, lake, row["clean"])
        made = session_rows(events, sessions).withColumn("closed", passed)
        near = (
            _of_hours(table, hours, lake)
            .join(spans, list(sessions.keys))
            .where(F.col("session_start").between(F.col(FIRST), F.col(LAST)))
        )
        open_ = _open(table, before.get("watermark"), lake).where(passed)
        with kept_for_merge(_changes(made, near, open_, spans, table, sessions), lake) as changes:
            told = {"newest": times.to_micros(event_time), "watermark": watermark}
            by = sessions.keys
            keyed_merge.bring(
                changes, batch_id, lake, table, by, "session_start", started=started, told=told
            )


def _of_hours(table: Table, hours: HourRange, lake: Lake) -> DataFrame:
    """Return the sessions that are in some hours, if with one end."""
    begun, ended = map(times.at, hours)
    known = lake.spark.table(table.name).drop("batch")
    return known.where((F.col("session_start") <= ended) & (F.col("closes_at") >= begun))


def _open(table: Table, watermark: int | None, lake: Lake) -> DataFrame:
    """Return the sessions that are not closed; none of them ends before the watermark of the newest
    commit, None where it does not say it."""
    known = lake.spark.table(table.name).drop("batch")
    if watermark is not None:
        at = times.of_micros(watermark)
        begun, _ = whole_hours(at, at)
        known = known.where(F.col("closes_at") >= times.at(begun))
    return known.where(~F.col("closed"))


def _passed(watermark: int, sessions: Sessions) -> Column:
    """Return the condition of a session to end before the watermark."""
    return F.col("closes_at") < F.timestamp_micros(beside_code(watermark, sessions.keys[0]))


def _spans(new: DataFrame, known: DataFrame, sessions: Sessions) -> DataFrame:
    """Return for each key of new events the time, both ends included, in which its sessions are
    made again: that of its events, and of the sessions which they touch, which are `known`."""
    keys = list(sessions.keys)
    ends = F.col(TIME) + F.make_interval(secs=F.col(GAP))
    own = new.groupBy(*keys).agg(F.min(TIME).alias(FIRST), F.max(ends).alias(LAST))
    touched = known.join(own, keys).where(
        (F.col("session_start") <= F.col(LAST)) & (F.col("closes_at") >= F.col(FIRST))
    )
    theirs = touched.groupBy(*keys).agg(
        F.min("session_start").alias(FIRST), F.max("closes_at").alias(LAST)
    )
    both = own.unionByName(theirs).groupBy(*keys)
    return both.agg(F.min(FIRST).alias(FIRST), F.max(LAST).alias(LAST))


def _events_of(
    spans: DataFrame, hours: HourRange, sessions: Sessions, lake: Lake, clean: int
) -> DataFrame:
    """Return the events of the spans, which lie in these hours, up to a batch of clean."""
    begun, ended = map(times.at, hours)
    events = lake.spark.table(lake.tables.events.name)
    events = events.where(F.col("event_hour").between(begun, ended))
    events = events.where(F.col("batch") <= beside_code(clean, "record_id"))
    rows = taken(events, sessions, lake.pipeline.events.event_time)
    inside = rows.join(spans, list(sessions.keys)).where(
        F.col(TIME).between(F.col(FIRST), F.col(LAST))
    )
    return inside.drop(FIRST, LAST)


def _changes(
    made: DataFrame,
    near: DataFrame,
    closing: DataFrame,
    spans: DataFrame,
    table: Table,
    sessions: Sessions,
) -> DataFrame:
    """Return the rows of the table that change: sessions as they are now, those `near` that are
    `GONE`, and those of `closing`, which the watermark closes, that nothing touched."""
    by = [*sessions.keys, "session_start"]
    near = near.drop(FIRST, LAST)
    columns = [name for name in table.column_names if name != "batch"]
    new = made.select(*columns).exceptAll(near.select(*columns)).withColumn(GONE, F.lit(False))
    gone = near.join(made.select(*by), by, "left_anti").select(*columns)
    closing = closing.join(spans.select(*sessions.keys, FIRST, LAST), list(sessions.keys), "left")
    closing = closing.where(
        F.col(FIRST).isNull() | ~F.col("session_start").between(F.col(FIRST), F.col(LAST))
    )
    closed = closing.withColumn("closed", F.lit(True)).select(*columns)
    return new.unionByName(gone.withColumn(GONE, F.lit(True))).unionByName(
        closed.withColumn(GONE, F.lit(False))
    )
