"""The bronze layer: records as they came, and where they came from."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Clock
from tidemill.lake import tables, times


def stamped(records: DataFrame, pipeline: PipelineDefinition, clock: Clock) -> DataFrame:
    """Return a source's records with `ingested_at`, the batch's time, in the bronze table's
    columns.

    Written through Spark's own Delta sink, so the time is written once: a batch that is run again
    after a crash is skipped by Delta, and every age that is checked later is counted from the same
    moment.
    """
    now = times.at(clock.at) if clock.at else F.current_timestamp()
    return (
        records.withColumn("ingested_at", now)
        .withColumn("ingest_date", F.to_date("ingested_at"))
        .select(*tables.of(pipeline).bronze.column_names)
    )
