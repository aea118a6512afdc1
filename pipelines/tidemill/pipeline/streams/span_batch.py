"""A batch of events into the table of first and last ones: by MERGE, whatever order they come in.

    events ──by key──► first, last ──with the table's──► least, greatest ──MERGE, txn = batch

A least and a greatest are the same however often an event is taken in, so a batch that comes again,
or a late one, does no harm.
"""

from __future__ import annotations

import time

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.config.stream_operators.span import Span
from tidemill.config.stream_operators.stream import Stream
from tidemill.lake.catalog import Lake
from tidemill.lake.tables import Table
from tidemill.pipeline.row_writes.frame_cache import kept_for_merge
from tidemill.pipeline.streams import keyed_merge
from tidemill.pipeline.streams.operators.input_rows import TIME, is_taken


def merge_spans(batch: DataFrame, batch_id: int, *, lake: Lake, stream: Stream) -> None:
    """Bring the first and last events of a batch into the stream's table, once. A batch that
    changes nothing leaves no commit."""
    lake, started = lake.within(batch.sparkSession), time.monotonic()
    span, table = stream.span, lake.tables.streams[stream.name]
    assert span is not None
    if keyed_merge.newest(lake, table, batch_id) is None:
        return
    with kept_for_merge(_changes(batch, span, table, lake), lake) as changes:
        keyed_merge.bring(changes, batch_id, lake, table, span.keys, started=started)


def _changes(batch: DataFrame, span: Span, table: Table, lake: Lake) -> DataFrame:
    """Return the rows of the table that are new, or other than they were."""
    at, keys = lake.pipeline.events.event_time, list(span.keys)
    rows = batch.withColumn(TIME, F.col(at)).where(is_taken(span))
    event = F.struct(TIME, "record_id", *span.columns)
    new = rows.groupBy(*keys).agg(F.min(event).alias("__first"), F.max(event).alias("__last"))
    known = lake.spark.table(table.name).alias("known")
    same = F.lit(True)
    for key in keys:
        same = same & F.col(f"known.{key}").eqNullSafe(F.col(f"new.{key}"))
    both = new.alias("new").join(known, same, "left")
    told = both.select(
        *(F.col(f"new.{key}").alias(key) for key in keys),
        _end(span, "first", "least").alias("__first"),
        _end(span, "last", "greatest").alias("__last"),
        F.col("known.first_record_id").alias("__known_first"),
        F.col("known.last_record_id").alias("__known_last"),
    )
    changed = told.where(
        ~F.col("__known_first").eqNullSafe(F.col("__first.record_id"))
        | ~F.col("__known_last").eqNullSafe(F.col("__last.record_id"))
    )
    return changed.select(
        *keys,
        *(F.col(f"__{end}.{TIME}").alias(f"{end}_at") for end in ("first", "last")),
        *(F.col(f"__{end}.record_id").alias(f"{end}_record_id") for end in ("first", "last")),
        *(
            F.col(f"__{end}.{name}").alias(f"{end}_{name}")
            for name in span.columns
            for end in ("first", "last")
        ),
        F.lit(False).alias(keyed_merge.GONE),
    )


def _end(span: Span, end: str, which: str) -> Column:
    """Return the first or last event of the batch and of the table, as a struct."""
    stored = F.struct(
        F.col(f"known.{end}_at").alias(TIME),
        F.col(f"known.{end}_record_id").alias("record_id"),
        *(F.col(f"known.{end}_{name}").alias(name) for name in span.columns),
    )
    known = F.when(F.col(f"known.{end}_at").isNotNull(), stored)
    new = F.col(f"new.__{end}")
    return F.least(new, known) if which == "least" else F.greatest(new, known)
