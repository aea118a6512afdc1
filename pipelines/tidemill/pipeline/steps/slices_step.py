"""slices: what each batch of clean adds, into the online store, before any window is refreshed."""

from __future__ import annotations

import logging
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from tidemill.config.dataflow import Query
from tidemill.errors import StoreError
from tidemill.lake.catalog import Lake
from tidemill.pipeline.batch_failures import of_batch
from tidemill.pipeline.event_slices.slice_batches import SliceWork
from tidemill.pipeline.publication import address_of
from tidemill.pipeline.queries import Pipeline, Trigger

log = logging.getLogger(__name__)


def start(pipeline: Pipeline, query: Query, trigger: Trigger) -> StreamingQuery:
    """Start following the events: a new version is looked at whatever the checkpoint knows, as the
    store says what it lacks."""
    step = partial(slices_batch, lake=pipeline.lake)
    writer = pipeline.follow(query).writeStream.foreachBatch(step)
    return pipeline.named(writer, query, trigger).start()


def claim(pipeline: Pipeline, query: Query) -> None:
    """Take the checkpoint; one that is lost or was rolled back loses nothing."""
    table = pipeline.lake.tables.events.name
    identity = {
        "pipeline": pipeline.lake.pipeline.pipeline,
        "query": query.checkpoint,
        "kind": "delta",
        "table": table,
        "generation": pipeline.lake.generation,
    }
    pipeline.lake.checkpoint(query.checkpoint).claim(identity, lambda: False, lambda: -1)


def slices_batch(batch: DataFrame, batch_id: int, *, lake: Lake) -> None:
    """One batch of slices: bring the store to the newest batch of clean. Rows of `batch` are not
    read: they may be a part of one."""
    lake = lake.within(batch.sparkSession)
    said = lake.pipeline.publish
    if said is None:
        return
    for view in filter(said.of, lake.pipeline.views):
        with of_batch(lake, "slices", batch_id, lake.tables.events.name):
            try:
                SliceWork(lake, view, address_of(lake, said)).bring()
            except StoreError as error:
                if said.on_failure == "stop":
                    raise
                log.warning("slices of %s: %s; the next batch brings it", view.name, error)
