"""Rebuild of a part from the silver events: some features, some keys, or what came since a time.

    --features   the buckets lack a partial: columns are added, and rows that hold only them
    --keys       the buckets of these keys are replaced, in the views whose keys they are
    --since      the buckets from a time on are replaced
    --views      all buckets of a view that lacks events (see `coverage`) are replaced

Each goes a day of events at a time, and is gone on with where it was killed. Features are added to
the bucket table itself (see `new_features`); until they are through, a view that needs them is
refused. The others are made beside it and replaced in one commit (see `replacement`), so nobody
reads half of them. Every such commit has a ledger that says `rebuild`: what
was made of the rows before it (gold, hours, arrivals) is made again by whoever writes next. At the
end gold is recomputed, in one commit.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.errors import UsageError
from tidemill.lake import catalog as lakes
from tidemill.operations.rebuild import backfill_rows
from tidemill.operations.rebuild.new_features import add_features
from tidemill.operations.rebuild.replacement import replace_buckets
from tidemill.operations.rebuild.work import Work
from tidemill.pipeline import batch_log
from tidemill.pipeline.queries import Pipeline
from tidemill.pipeline.totals import Totals
from tidemill.pipeline.view_refresh import refresh_view


def rebuild(work: Work, spark: SparkSession) -> dict[str, Any]:
    """Rebuild the part in a lake that the caller holds; return the totals of `run`, and the bucket
    rows written."""
    started = time.monotonic()
    _refuse_stateful(work.definition)
    keys = backfill_rows.checked_keys(work.definition.views, work.wanted.keys)
    work = replace(work, wanted=replace(work.wanted, keys=keys))
    for name in work.wanted.views:
        work.definition.view(name)
    lakes.register(spark, work.opening.place)
    with work.stop.on_signals():
        lake, rows = add_features(work) if work.wanted.features else replace_buckets(work)
        pipeline = work.pipeline(lake)
        _refresh(work, pipeline)
    summary = Totals().summary(pipeline, time.monotonic() - started)
    return {**summary, "buckets": rows}


def _refresh(work: Work, pipeline: Pipeline) -> None:
    for view in work.ready(pipeline.lake):
        refresh_view(
            pipeline.lake,
            view.name,
            pipeline.clock,
            pipeline.follows,
            force="rebuild of a part",
        )
    batch_log.record(pipeline.lake)


def _refuse_stateful(definition: PipelineDefinition) -> None:
    if definition.engine == "stateful":
        raise UsageError(
            "engine: stateful keeps its values in state, which has no parts to rebuild",
            where="rebuild",
            expected="--from bronze",
        )
