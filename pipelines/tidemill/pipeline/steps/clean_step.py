"""clean: bronze into events and quarantine."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from tidemill.config.dataflow import Query
from tidemill.lake.catalog import Lake
from tidemill.pipeline.batch_failures import of_batch
from tidemill.pipeline.queries import Pipeline, Trigger
from tidemill.pipeline.silver import clean as silver
from tidemill.pipeline.silver.known_events import KnownEvents
from tidemill.pipeline.silver.lookup import Readings


def start(pipeline: Pipeline, query: Query, trigger: Trigger) -> StreamingQuery:
    """Start cleaning what bronze gets."""
    step = partial(clean_batch, lake=pipeline.lake, readings=Readings(), known=KnownEvents())
    writer = pipeline.follow(query).writeStream.foreachBatch(step)
    return pipeline.named(writer, query, trigger).start()


def clean_batch(
    batch: DataFrame,
    batch_id: int,
    *,
    lake: Lake,
    readings: Readings | None = None,
    known: KnownEvents | None = None,
) -> None:
    """One batch of clean; any frame of bronze rows and any id."""
    with of_batch(lake, "clean", batch_id, lake.tables.events.name):
        silver.clean(batch, batch_id, lake=lake, readings=readings, known=known)
