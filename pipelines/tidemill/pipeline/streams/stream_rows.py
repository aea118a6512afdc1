"""The rows of a stream: its operator over the events, as a streaming frame or as a batch."""

from __future__ import annotations

from contextlib import AbstractContextManager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.config.stream_operators.inputs import EVENTS
from tidemill.config.stream_operators.stream import Stream, pair_types
from tidemill.config.stream_operators.window_totals import Totals
from tidemill.features import FeatureView
from tidemill.lake.session.temporary_conf import temporary_conf
from tidemill.pipeline.stateful.engine import PROVIDER
from tidemill.pipeline.streams.operators.distinct_rows import distinct_rows
from tidemill.pipeline.streams.operators.input_rows import TIME, input_rows, observed
from tidemill.pipeline.streams.operators.joined import joined
from tidemill.pipeline.streams.operators.processed import processed
from tidemill.pipeline.streams.operators.windowed import windowed

RESULT = "tidemill_result"  # what Spark calls the counts of the rows that come out
OUT, MATCHED = "rows", "matched"


def stream_rows(events: DataFrame, stream: Stream, view: FeatureView) -> DataFrame:
    """Return the stream's rows, with the columns of its table but `batch`, from events with the
    schema and time of a view; a stream's progress counts them, and pairs, as `RESULT`. Of a batch
    of events joins and totals give what a stream would that drops none of them."""
    time, counts = view.event_time, [F.count("*").alias(OUT)]
    if stream.join:
        rows = joined(events, stream.join, time)
        rows = observed(rows, RESULT, *counts, F.count_if("matched").alias(MATCHED))
        if stream.totals:
            types = pair_types(stream.join, view.types)
            return windowed(rows, stream.totals, f"{stream.totals.of}_at", types)
    elif stream.totals:
        rows = input_rows(events, EVENTS, stream.totals.input, time, _read(stream.totals, view))
        return observed(windowed(rows, stream.totals, TIME, view.types), RESULT, *counts)
    elif stream.process:
        rows = observed(processed(events, stream.process, view), RESULT, *counts)
    else:
        assert stream.distinct is not None
        rows = observed(distinct_rows(events, stream.distinct, time), RESULT, *counts)
    return rows.withColumn("event_hour", F.date_trunc("hour", time))


def _read(totals: Totals, view: FeatureView) -> list[str]:
    """Return the events' columns that totals read."""
    calls = [call for call in totals.compute.values() if not isinstance(call, str)]
    columns = [*totals.keys, *(column for call in calls for column in call.values())]
    return [name for name in dict.fromkeys(columns) if name in view.event_schema]


def output_mode(stream: Stream) -> str:
    """Return what Spark gives in a batch: rows that are known for sure, or those that change."""
    return "update" if stream.merges else "append"


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
