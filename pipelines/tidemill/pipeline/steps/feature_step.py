"""feature: events into each view's buckets, then gold, or the arrivals of its state, brought up to
date with them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from tidemill.config.dataflow import Query
from tidemill.config.settings import Clock
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.integrity import coverage
from tidemill.pipeline import queries
from tidemill.pipeline.batch_failures import of_batch
from tidemill.pipeline.publication import publish_view
from tidemill.pipeline.queries import Pipeline, Trigger
from tidemill.pipeline.row_writes.frame_cache import cached
from tidemill.pipeline.silver import minute_buckets
from tidemill.pipeline.view_refresh import arrive_view, refresh_view


def start(pipeline: Pipeline, query: Query, trigger: Trigger) -> StreamingQuery:
    """Start bringing events into buckets and gold."""
    lake = pipeline.lake
    step = partial(append_batch, lake=lake)
    if pipeline.refreshes != "never":
        batch = filling_batch if pipeline.refreshes == "last batch" else feature_batch
        step = partial(batch, lake=lake, clock=pipeline.clock, follows=pipeline.follows)
    writer = pipeline.follow(query).writeStream.foreachBatch(step)
    return pipeline.named(writer, query, trigger).start()


def claim(pipeline: Pipeline, query: Query) -> None:
    """Take the checkpoint, and record which views take part in its next batches."""
    queries.claim(pipeline, query)
    coverage.take_part(pipeline.lake)


def feature_batch(
    batch: DataFrame, batch_id: int, *, lake: Lake, clock: Clock, follows: str
) -> None:
    """One batch of feature: append each view's buckets, refresh its gold and publish it, or bring
    the arrivals from which the state will."""
    lake = lake.within(batch.sparkSession)
    bring = arrive_view if lake.pipeline.engine == "stateful" else refresh_view
    with _read_once(batch, lake.pipeline.views) as events:
        for view in lake.pipeline.views:
            with of_batch(lake, "feature", batch_id, lake.tables.of(view).buckets.name):
                buckets = minute_buckets.bucket(events, batch_id, lake=lake, view=view)
            with of_batch(lake, "feature", batch_id, lake.tables.of(view).gold.name):
                bring(lake, view.name, clock, follows, buckets)
            if lake.pipeline.engine != "stateful":
                publish_view(lake, view)


def filling_batch(
    batch: DataFrame, batch_id: int, *, lake: Lake, clock: Clock, follows: str
) -> None:
    """One batch of those that fill gold for the first time: without the refresh while more events
    wait, which only a folder tells."""
    if _more_wait(lake, batch_id):
        append_batch(batch, batch_id, lake=lake)
    else:
        feature_batch(batch, batch_id, lake=lake, clock=clock, follows=follows)


def append_batch(batch: DataFrame, batch_id: int, *, lake: Lake) -> None:
    """One batch of feature without the refresh: append each view's buckets."""
    with _read_once(batch, lake.pipeline.views) as events:
        for view in lake.pipeline.views:
            with of_batch(lake, "feature", batch_id, lake.tables.of(view).buckets.name):
                minute_buckets.bucket(events, batch_id, lake=lake, view=view)


def _more_wait(lake: Lake, batch_id: int) -> bool:
    newest = lake.newest_version(lake.tables.events.name)
    if newest is None:
        return False
    offset = lake.checkpoint("feature").offset(batch_id)
    return offset is not None and not offset.is_past(newest)


def _read_once(batch: DataFrame, views: Sequence[FeatureView]) -> AbstractContextManager[DataFrame]:
    """Keep a batch's events while several views read them; one view keeps what it makes of them."""
    return cached(batch) if len(views) > 1 else nullcontext(batch)
