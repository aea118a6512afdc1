"""A batch of a stream's rows into its table once, whatever died when: appended, or MERGEd."""

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
from tidemill.lake.parameters import beside_code
from tidemill.pipeline.row_writes.frame_cache import cached, kept_for_merge
from tidemill.pipeline.streams import keyed_merge

log = logging.getLogger(__name__)


def append_rows(batch: DataFrame, batch_id: int, *, lake: Lake, stream: Stream) -> None:
    """Append the rows that the stream's operator gave in a batch; the same batch again finds them
    there. A batch without rows leaves no commit. Raises LedgerError when the batch id was used for
    other rows."""
    lake, started = lake.within(batch.sparkSession), time.monotonic()
    table = lake.tables.streams[stream.name]
    rows = batch.withColumn("batch", beside_code(batch_id, batch.columns[0]))
    # Read again, the rows would be computed from the state once more, and counted twice.
    with cached(rows) as rows:
        matched = F.count_if("matched") if "matched" in table.column_names else F.lit(None)
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


def merge_rows(batch: DataFrame, batch_id: int, *, lake: Lake, stream: Stream) -> None:
    """MERGE the windows that changed in a batch, each as it is now, by keys and start."""
    lake, started = lake.within(batch.sparkSession), time.monotonic()
    table, totals = lake.tables.streams[stream.name], stream.totals
    assert totals is not None
    if keyed_merge.newest(lake, table, batch_id) is None:
        return
    with kept_for_merge(batch.withColumn(keyed_merge.GONE, F.lit(False)), lake) as rows:
        by = totals.keys
        keyed_merge.bring(rows, batch_id, lake, table, by, "window_start", started=started)
