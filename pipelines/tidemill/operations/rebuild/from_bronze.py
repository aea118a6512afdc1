"""Rebuild from bronze: clean's and feature's tables and checkpoints made again, under a new
generation.

    forget the checkpoints ─► empty the silver tables ─► clean ─► buckets ─► one refresh of gold

What was never landed of a dimension is landed first: events are looked up in it, and a dimension
that was declared for events that are there already has no bronze yet.

The way out of a lost checkpoint. Bronze stays, and so does gold: readers see the old rows until one
MERGE brings in the rows that differ. A rebuild that dies half-way is run again; once its tables are
empty `run` finishes it, as it would have, before it does anything else.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from tidemill.config.dataflow import Query
from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Place
from tidemill.errors import LakeError
from tidemill.lake import catalog as lakes
from tidemill.lake import tables
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.commits.failpoints import reach
from tidemill.lake.integrity import interrupted_rebuilds
from tidemill.lake.open import open_for_writing
from tidemill.lake.schema import creation
from tidemill.lake.schema.verification import check_whose
from tidemill.pipeline.connection import Opening, source_of_dimension, writing_session
from tidemill.pipeline.gold import refresh as gold
from tidemill.pipeline.observer import Callback, Observer, Tell
from tidemill.pipeline.queries import Pipeline
from tidemill.pipeline.runner import Recorder, Stop, finish
from tidemill.pipeline.silver import minute_buckets
from tidemill.pipeline.stateful import state_input
from tidemill.pipeline.totals import Totals
from tidemill.sources import Source
from tidemill.sources.null_source import Absent


def rebuild(opening: Opening, definition: PipelineDefinition, tell: Tell) -> dict[str, Any]:
    """Rebuild the pipeline's lake from bronze; return the totals of `run`, and the new
    generation. The source is not read, and need not be known; a dimension's is, that was never
    landed."""
    lakes.check_root(opening.place)
    with writing_session(opening, f"tidemill rebuild {definition.pipeline}") as spark:
        return rebuild_held(spark, opening, definition, tell)


def rebuild_held(
    spark: SparkSession, opening: Opening, definition: PipelineDefinition, tell: Tell
) -> dict[str, Any]:
    """Rebuild as `rebuild` does; the caller holds the lake."""
    started, stop = time.monotonic(), Stop()
    feeds = _never_landed(Lake(lambda: spark, opening.place, definition), opening)
    lake = renew(spark, opening.place, definition)
    pipeline = Pipeline(lake, Absent(), opening.clock, definition.clock, feeds=feeds)
    with stop.on_signals():
        totals = from_bronze(pipeline, stop, [Callback(tell)])
    return {
        **totals.summary(pipeline, time.monotonic() - started),
        "generation": lake.generation,
    }


def _never_landed(lake: Lake, opening: Opening) -> dict[str, Source]:
    """Return the sources of the dimensions of which nothing was landed yet."""
    return {
        one.name: source_of_dimension(one, lake.pipeline, opening)
        for one in lake.pipeline.dimensions
        if lake.checkpoint(f"land_{one.name}").finished() < 0
    }


def renew(spark: SparkSession, place: Place, pipeline: PipelineDefinition) -> Lake:
    """Return the lake with empty silver tables of a new generation, and no checkpoints for them.

    Everything is checked before anything is touched. Stopped before the last table was emptied, the
    lake is refused by every command but this one: a checkpoint is lost, or the tables are of two
    generations.
    """
    lakes.check_root(place)
    lakes.register(spark, place)
    declared = tables.of(pipeline)
    bronze = declared.bronze.name
    lake = Lake(lambda: spark, place, pipeline, creation.new_generation())
    if not lake.has(bronze):
        raise LakeError(f"has no {bronze} to rebuild from", where=str(place), expected="a lake")
    check_whose(lake)
    for query in pipeline.queries:
        if query.is_fed:
            continue
        lake.checkpoint(query.checkpoint).forget()
        reach("renew.checkpoint_forgotten")
    gold_tables = [view.gold for view in declared.views.values()]
    for table in declared.required:
        if table.generational and table not in gold_tables:
            creation.create(lake, table, replace=True)
            reach("renew.table_emptied")
    return open_for_writing(spark, place, pipeline)


def from_bronze(pipeline: Pipeline, stop: Stop, observers: Sequence[Observer] = ()) -> Totals:
    """Run clean and feature over all of bronze, gold refreshed once at the end, from the state
    where that is the engine; return what was done."""
    lake, feeds = pipeline.lake, pipeline.feeds
    graph = [
        query
        for query in pipeline.graph
        if not query.is_fed
        or (query.dimension in feeds and lake.checkpoint(query.checkpoint).finished() < 0)
    ]
    return _through(pipeline, stop, observers, graph)


def whole(pipeline: Pipeline, stop: Stop, observers: Sequence[Observer] = ()) -> Totals:
    """Run every query over all that there is, the source's too, as `from_bronze` does."""
    return _through(pipeline, stop, observers, pipeline.graph)


def _through(
    pipeline: Pipeline, stop: Stop, observers: Sequence[Observer], graph: Sequence[Query]
) -> Totals:
    queries = [query.checkpoint for query in graph if not query.per_view]
    pipeline.claim((*queries, *pipeline.states))
    recorder = Recorder(pipeline, observers)
    quiet = replace(pipeline, refreshes="never")
    for query in queries:
        if not stop:
            finish(query, quiet, stop, recorder)
    if not stop:
        for view in pipeline.definition.views:
            refresh_whole(pipeline, view.name)
    for query in pipeline.states:
        if not stop:
            finish(query, quiet, stop, recorder)
    recorder.record()
    return recorder.totals


def finished(pipeline: Pipeline, stop: Stop, observers: Sequence[Observer] = ()) -> Totals:
    """Finish a rebuild from bronze that was interrupted, if there is one; return what was done."""
    if not interrupted_rebuilds.from_bronze(pipeline.lake):
        return Totals()
    return from_bronze(pipeline, stop, observers)


def refresh_whole(pipeline: Pipeline, name: str) -> None:
    """Refresh gold of tables that were all made again; without a single bucket, at the as_of it
    had, so that its rows become empty."""
    lake, view = pipeline.lake, pipeline.definition.view(name)
    buckets = minute_buckets.bucketed(lake, view)
    as_of = minute_buckets.event_as_of(buckets, view)
    if pipeline.follows == "wall":
        as_of = pipeline.clock.end_of(view.bucket_length)
    if as_of is None:
        commits = lake.commits(lake.tables.of(view).gold.name, None)
        as_of = next((ledger.instant(c.ledger["as_of"]) for c in commits if c.ledger), None)
    if pipeline.states:
        state_input.arrive(lake, view, as_of=as_of, batch=buckets.batch, buckets=buckets.commits)
        return
    gold.refresh(lake, view, as_of=as_of, batch=buckets.batch, buckets=buckets.commits)
