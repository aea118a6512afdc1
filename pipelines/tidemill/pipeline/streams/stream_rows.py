"""The rows of a stream: its operator over the events, as a streaming frame."""

from __future__ import annotations

from contextlib import AbstractContextManager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.config.stream_operators.stream import Stream
from tidemill.lake.session.temporary_conf import temporary_conf
from tidemill.pipeline.stateful.engine import PROVIDER
from tidemill.pipeline.streams.distinct_rows import distinct_rows
from tidemill.pipeline.streams.joined import joined

RESULT = "tidemill_result"  # what Spark calls the counts of the rows that come out
OUT, MATCHED = "rows", "matched"


def stream_rows(events: DataFrame, stream: Stream, time: str) -> DataFrame:
    """Return the stream's rows, with the columns of its table but `batch` and `event_hour`; Spark's
    progress counts them, and those that are pairs, as `RESULT`."""
    if stream.join:
        rows = joined(events, stream.join, time)
        return rows.observe(RESULT, F.count("*").alias(OUT), F.count_if("matched").alias(MATCHED))
    assert stream.distinct is not None
    rows = distinct_rows(events, stream.distinct, time)
    return rows.observe(RESULT, F.count("*").alias(OUT))


def settings(spark: SparkSession, stream: Stream) -> AbstractContextManager[None]:
    """Let a query that starts now keep its state in RocksDB, go by the stream's policy, and have a
    batch without rows too, when the watermark moved: what stayed alone appears then."""
    policy = stream.join.policy if stream.join else "min"
    return temporary_conf(
        spark,
        {
            "spark.sql.streaming.stateStore.providerClass": PROVIDER,
            "spark.sql.streaming.noDataMicroBatches.enabled": "true",
            "spark.sql.streaming.multipleWatermarkPolicy": policy,
        },
    )
