"""state: a view's arrivals, brought to now, into its state, and what that emits into gold."""

from __future__ import annotations

from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from tidemill.config.dataflow import Query
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.pipeline.publication import publish_view
from tidemill.pipeline.queries import ONCE, Pipeline, Trigger
from tidemill.pipeline.stateful import engine
from tidemill.pipeline.view_refresh import WALL, arrive_view

EVERY_FILE = 2**31 - 1


def start(pipeline: Pipeline, query: Query, trigger: Trigger) -> StreamingQuery:
    """Start keeping a view's state."""
    lake, view = pipeline.lake, _view(pipeline, query)
    if pipeline.refreshes:
        arrive_view(lake, view.name, pipeline.clock, pipeline.follows)
    step: Any = partial(state_batch, lake=lake, view_name=view.name)
    idle = pipeline.follows == WALL and trigger != ONCE
    with engine.state_kept(lake.spark, idle_batches=idle):
        emitted = engine.emitted(_arrivals(pipeline, query), view, pipeline.follows)
        writer = emitted.writeStream.outputMode("update").foreachBatch(step)
        return pipeline.named(writer, query, trigger).start()


def claim(pipeline: Pipeline, query: Query) -> None:
    """Take the checkpoint of the view's state, which is made anew where it cannot be built on."""
    engine.claim(pipeline.lake, _view(pipeline, query))


def state_batch(batch: DataFrame, batch_id: int, *, lake: Lake, view_name: str) -> None:
    """One batch of state: merge what it emitted into gold, and publish it."""
    engine.merge_batch(batch, batch_id, lake=lake, view_name=view_name)
    publish_view(lake.within(batch.sparkSession), lake.pipeline.view(view_name))


def _view(pipeline: Pipeline, query: Query) -> FeatureView:
    return pipeline.definition.view(str(query.view))


def _arrivals(pipeline: Pipeline, query: Query) -> DataFrame:
    """Whole commits, as a batch's rows count together; maintenance may delete what was read."""
    (table,) = pipeline.lake.tables_of(query, (query.reads,))
    reader = pipeline.lake.spark.readStream.option("maxFilesPerTrigger", EVERY_FILE)
    return reader.option("skipChangeCommits", "true").table(table)
