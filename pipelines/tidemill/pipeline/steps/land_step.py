"""land: records, as they come, into bronze, by Spark's own Delta sink; of a dimension's source into
the dimension's."""

from __future__ import annotations

from pyspark.sql.streaming.query import StreamingQuery

from tidemill.config.dataflow import Query
from tidemill.pipeline import bronze
from tidemill.pipeline.queries import Pipeline, Trigger


def start(pipeline: Pipeline, query: Query, trigger: Trigger) -> StreamingQuery:
    """Start landing what the source has."""
    records = pipeline.source_of(query).stream(pipeline.lake.spark)
    stamped = bronze.stamped(records, pipeline.definition, pipeline.clock)
    writer = stamped.writeStream.format("delta").outputMode("append")
    (table,) = pipeline.lake.tables_of(query, query.writes)
    return pipeline.named(writer, query, trigger).toTable(table)
