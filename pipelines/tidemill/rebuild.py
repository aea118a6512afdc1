"""Rebuild from bronze: clean's and feature's tables and checkpoints made again, under a new
generation.

    forget the checkpoints ─► empty the silver tables ─► clean ─► buckets ─► one refresh of gold

The way out of a lost checkpoint. Bronze stays, and so does gold: readers see the old rows until one
MERGE brings in the rows that differ. A rebuild that dies half-way is run again, or carried on by
`run` once its tables are empty.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from tidemill import arrivals, gold, ledger, making, silver, stateful, tables
from tidemill import lake as lakes
from tidemill.batches import BatchRow
from tidemill.errors import LakeError
from tidemill.features.definition import PipelineDefinition
from tidemill.lake import Lake
from tidemill.opening import Opening, source_of, writing_session
from tidemill.pipeline import Pipeline
from tidemill.running import Stop, Tell, Watch, finish, summary
from tidemill.settings import Place


def rebuild(opening: Opening, definition: PipelineDefinition, tell: Tell) -> dict[str, Any]:
    """Rebuild the pipeline's lake from bronze; yield the totals of `run`, and the new
    generation."""
    started, stop = time.monotonic(), Stop()
    lakes.check_root(opening.place)
    with writing_session(opening, f"tidemill rebuild {definition.pipeline}") as spark:
        lake = renew(spark, opening.place, definition)
        pipeline = Pipeline(lake, source_of(definition, opening), opening.clock, definition.clock)
        with stop.on_signals():
            rows = from_bronze(pipeline, stop, tell)
        return {
            **summary(pipeline, rows, time.monotonic() - started),
            "generation": lake.generation,
        }


def renew(spark: SparkSession, place: Place, pipeline: PipelineDefinition) -> Lake:
    """Yield the lake with empty silver tables of a new generation, and no checkpoints for them."""
    lakes.check_root(place)
    lakes.register(spark, place)
    bronze = tables.bronze(pipeline).name
    if not spark.catalog.tableExists(bronze):
        raise LakeError(f"has no {bronze} to rebuild from", where=str(place), expected="a lake")
    generation = making.new_generation()
    for query in ("clean", "feature", *map(stateful.query_of, pipeline.views)):
        Lake(spark, place, pipeline, generation, "").checkpoint(query).forget()
    gold_tables = {tables.features(view).name for view in pipeline.views}
    for table in tables.of(pipeline):
        if table.generational and table.name not in gold_tables:
            making.create(spark, place, pipeline, table, generation, replace=True)
    return lakes.open_for_writing(spark, place, pipeline)


def from_bronze(pipeline: Pipeline, stop: Stop, tell: Tell) -> list[BatchRow]:
    """Run clean and feature over all of bronze, gold refreshed once at the end, from the state
    where that is the engine; yield what was done."""
    queries = ("clean", "feature")
    pipeline.claim((*queries, *pipeline.states))
    watch = Watch(pipeline, tell)
    quiet = replace(pipeline, refreshes=False)
    for query in queries:
        if not stop:
            finish(query, quiet, stop, watch)
    if not stop:
        for view in pipeline.definition.views:
            _refresh(pipeline, view.name)
    for query in pipeline.states:
        if not stop:
            finish(query, quiet, stop, watch)
    watch.record()
    return watch.rows


def _refresh(pipeline: Pipeline, name: str) -> None:
    """Refresh gold; without a single bucket, at the as_of it had, so that its rows become empty."""
    lake, view = pipeline.lake, pipeline.definition.view(name)
    there = silver.bucketed(lake, view)
    as_of = silver.event_as_of(there, view)
    if pipeline.follows == "wall":
        as_of = pipeline.clock.end_of(view.bucket_length)
    if as_of is None:
        found = lake.commits(tables.features(view).name, None)
        as_of = next((ledger.instant(c.ledger["as_of"]) for c in found if c.ledger), None)
    if pipeline.states:
        arrivals.arrive(lake, view, as_of=as_of, batch=there.batch, buckets=there.commits)
        return
    gold.refresh(lake, view, as_of=as_of, batch=there.batch, buckets=there.commits)
