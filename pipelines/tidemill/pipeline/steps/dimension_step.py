"""dimension: changes into a dimension, refused records into its quarantine."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from tidemill.config.dataflow import Query
from tidemill.lake.catalog import Lake
from tidemill.pipeline.batch_failures import of_batch
from tidemill.pipeline.dimensions import change_batch
from tidemill.pipeline.queries import Pipeline, Trigger


def start(pipeline: Pipeline, query: Query, trigger: Trigger) -> StreamingQuery:
    """Start keeping a dimension."""
    step = partial(dimension_batch, lake=pipeline.lake, name=str(query.dimension))
    writer = pipeline.follow(query).writeStream.foreachBatch(step)
    return pipeline.named(writer, query, trigger).start()


def dimension_batch(batch: DataFrame, batch_id: int, *, lake: Lake, name: str) -> None:
    """One batch of a dimension; any frame of bronze rows and any id."""
    table = lake.tables.dimensions[name].rows.name
    with of_batch(lake, f"dimension_{name}", batch_id, table):
        change_batch.apply(batch, batch_id, lake=lake, dimension=lake.pipeline.dimension(name))
