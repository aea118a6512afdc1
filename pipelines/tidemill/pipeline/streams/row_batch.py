"""A batch of a stream's rows, appended to its table once, whatever died when."""

from __future__ import annotations

import logging
import time

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.config.stream_operators.stream import Stream
from tidemill.lake.append import append, digest
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.commits.failpoints import reach
from tidemill.pipeline.silver.frame_cache import cached

log = logging.getLogger(__name__)


def append_rows(batch: DataFrame, batch_id: int, *, lake: Lake, stream: Stream) -> None:
    """Append the rows that the stream's operator gave in a batch; the same batch again finds them
    there. A batch without rows leaves no commit. Raises LedgerError when the batch id was used for
    other rows."""
    lake, started = lake.within(batch.sparkSession), time.monotonic()
    table, at = lake.tables.streams[stream.name], lake.pipeline.events.event_time
    rows = batch.select(
        "*",
        F.lit(batch_id).cast("bigint").alias("batch"),
        F.date_trunc("hour", at).alias("event_hour"),
    )
    # Read again, the rows would be computed from the state once more, and counted twice.
    with cached(rows) as rows:
        matched = F.count_if("matched") if stream.join else F.lit(None)
        row = rows.agg(
            F.count("*").alias("accepted"), matched.alias("matched"), digest(table).alias("digest")
        ).collect()[0]
        if not row["accepted"]:
            return
        reach("stream.counted")
        told = {name: row[name] for name in ("accepted", "matched", "digest")}
        seconds = {"stream": round(time.monotonic() - started, 3)}
        newest = ledger.newest_append(lake, table.name, lake.generation)
        fields = {**{k: v for k, v in told.items() if v is not None}, "seconds": seconds}
        append(lake, table, rows, batch_id, fields, newest)
    reach("stream.appended")
    log.info("stream %s batch %d: %d rows", stream.name, batch_id, row["accepted"])
