"""Why rows of a stream are not what the events say.

    late         an event came behind the watermark, and the stream dropped it
    waiting      the stream brings it yet: it has not read so far, or its watermark has not come
    unexplained  neither: another has written to the table, or lost something of it

Which events came late is told by the events table: those that were older, when their batch came,
than what had been seen before by more than the watermark.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.config.stream_operators.stream import Stream, pair_types
from tidemill.lake.catalog import Lake
from tidemill.lake.parameters import ask
from tidemill.lake.statements import statement
from tidemill.lake.times import of_micros
from tidemill.pipeline.streams.operators.joined import joined
from tidemill.pipeline.streams.operators.windowed import windowed
from tidemill.pipeline.streams.stream_rows import stream_rows

LATE, WAITING, UNEXPLAINED = "late", "waiting", "unexplained"
CAUSE, WHAT, AT = "__cause", "__what", "__at"
MISSING = "missing"


def late_records(lake: Lake, stream: Stream, first: datetime) -> DataFrame:
    """Return the records of events, from a time on, that came behind the stream's watermark."""
    events = lake.pipeline.events
    text = statement("late_records", events, source=lake.pipeline.pipeline)
    seconds = int(stream.lateness.total_seconds())
    return ask(lake.spark, text, {"first": first, "seconds": seconds})


def counted(
    lake: Lake,
    stream: Stream,
    different: DataFrame,
    events: DataFrame,
    late: DataFrame,
    after: timedelta,
) -> dict[str, int]:
    """Return how many rows are different, by cause. `different` has the columns that tell a row,
    `AT`, its time, and `WHAT`; `events` are those that the rows follow from, `late` the records of
    late ones; a row is known `after` its time at the latest."""
    if stream.totals is None:
        told = _pairs_of_late(stream, different, late)
    else:
        told = _windows_of_late(lake, stream, events, late)
    keys = [name for name in told.columns if name != CAUSE]
    same = F.lit(True)
    for name in keys:
        same &= F.col(f"different.{name}").eqNullSafe(F.col(f"told.{name}"))
    rows = different.alias("different").join(told.alias("told"), same, "left")
    waits = F.expr(_is_waiting(lake, stream, after))
    cause = F.coalesce(CAUSE, F.when(waits, WAITING).otherwise(UNEXPLAINED)).alias("cause")
    counts = rows.select(cause).groupBy("cause").count().collect()
    return {row["cause"]: row["count"] for row in sorted(counts)}


def _pairs_of_late(stream: Stream, different: DataFrame, late: DataFrame) -> DataFrame:
    """Return the different rows in which a late event is, and those that share an event with one:
    the order that has been alone, as its payment came late."""
    assert stream.join is not None
    columns = [f"{side.name}_record_id" for side in stream.join.sides]
    records = F.explode(F.array_compact(F.array(*columns))).alias("record_id")
    held = different.select("event_id", records)
    of_late = held.join(late, "record_id", "left_semi").select("event_id").distinct()
    shared = held.join(of_late, "event_id", "left_semi").select("record_id").distinct()
    found = held.join(shared, "record_id", "left_semi").select("event_id").distinct()
    return found.withColumn(CAUSE, F.lit(LATE))


def _windows_of_late(lake: Lake, stream: Stream, events: DataFrame, late: DataFrame) -> DataFrame:
    """Return the windows in which a late event counts, or a pair with one."""
    view, totals = lake.pipeline.events, stream.totals
    assert totals is not None
    if stream.join is None:
        of_late = events.join(late, "record_id", "left_semi")
        windows = stream_rows(of_late, stream, view)
    else:
        pairs, ids = joined(events, stream.join, view.event_time), late.select("record_id")
        held = [
            pairs.join(ids.withColumnRenamed("record_id", name), name, "left_semi")
            for name in (f"{side.name}_record_id" for side in stream.join.sides)
        ]
        of_late = held[0].unionByName(held[1])
        types = pair_types(stream.join, view.types)
        windows = windowed(of_late, totals, f"{totals.of}_at", types)
    keys = [*totals.result_keys, "window_start"]
    return windows.select(*keys).distinct().withColumn(CAUSE, F.lit(LATE))


def _is_waiting(lake: Lake, stream: Stream, after: timedelta) -> str:
    """Return the condition for a different row to be one that the stream brings by itself."""
    checkpoint = lake.checkpoint(f"stream_{stream.name}")
    offset, newest = checkpoint.offset(), lake.commits(lake.tables.events.name, 1)[0].version
    if offset is None or offset.within or offset.version <= newest:
        return "TRUE"
    watermark = checkpoint.watermark()
    if watermark is None:
        return "TRUE"
    until = of_micros(watermark * 1000) - after
    micros = int(until.timestamp()) * 1_000_000
    return f"{WHAT} = '{MISSING}' AND unix_micros({AT}) >= {micros}"
