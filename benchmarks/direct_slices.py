"""`tidemill`, with slices that read the source themselves instead of the events: what freshness
could be without the two hops of Delta in between (see docs/decisions/0082).

    source ──parse, rules──► slices of its own batches ──► the online store

A try that `freshness.py --slices` measures, not something to run: duplicates count each
time that they come, and dimensions' values are missing.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from tidemill.cli import main
from tidemill.config.dataflow import Query
from tidemill.lake.catalog import Lake
from tidemill.online.open_store import open_store
from tidemill.pipeline import bronze
from tidemill.pipeline.event_slices.slice_batches import SliceWork, state_of
from tidemill.pipeline.event_slices.slice_writer import SliceWriter
from tidemill.pipeline.publication import address_of
from tidemill.pipeline.queries import Pipeline, Trigger
from tidemill.pipeline.silver import judged_batch, validation
from tidemill.pipeline.steps import slices_step


def start(pipeline: Pipeline, query: Query, trigger: Trigger) -> StreamingQuery:
    """Start following the source."""
    lake = pipeline.lake
    records = bronze.stamped(pipeline.source.stream(lake.spark), lake.pipeline, pipeline.clock)
    writer = records.writeStream.foreachBatch(lambda rows, n: add(lake, rows, n))
    return pipeline.named(writer, query, trigger).start()


def add(lake: Lake, records: DataFrame, batch: int) -> None:
    """Write what a batch of the source adds, and that it is whole."""
    lake = lake.within(records.sparkSession)
    said, (view,) = lake.pipeline.publish, lake.pipeline.views
    assert said is not None
    work = SliceWork(lake, view, address_of(lake, said))
    valid = validation.judge(records, lake.pipeline).where("size(reasons) = 0")
    events = judged_batch.with_batch(valid, batch, lake)
    store = open_store(work.address, writes=True)
    try:
        seen = state_of(store, view.name)
        state = work._state(seen, 0)
        newest = SliceWriter(work.address, state).add(events, batch)
        end = newest + timedelta(minutes=1) if newest else state.newest
        now, newest = datetime.now(timezone.utc), max(state.newest, end)
        store.advance_slices(replace(state, through=batch, newest=newest, visible_at=now), seen)
    finally:
        store.close()


if __name__ == "__main__":
    slices_step.start = start
    main()
