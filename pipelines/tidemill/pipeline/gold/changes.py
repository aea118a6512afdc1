"""The rows of gold that change, by each strategy.

    recompute:    buckets ──features at as_of──┐
                  gold ────────────────────────┴─ full outer diff ─┐
    incremental:  buckets that entered or left ──their sums──┐     ├─► changed keys
                  gold of those keys ────────────────────────┴─────┤
    stateful:     what the state emitted ──diff with gold──────────┘

Each gives the same rows: one per changed keys, its new values, and `__action`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.commits.failpoints import reach
from tidemill.lake.commits.ledger import GoldState
from tidemill.lake.parameters import ask, literal
from tidemill.lake.schema.verification import has_other_keys
from tidemill.lake.session.session import WITHOUT_BROADCASTS, interpreted
from tidemill.lake.session.temporary_conf import temporary_conf
from tidemill.lake.statements import statement
from tidemill.pipeline.gold import overflow
from tidemill.pipeline.gold.context import (
    Changes,
    Emission,
    RefreshContext,
    RefreshPlan,
    RefreshRequest,
)
from tidemill.pipeline.gold.strategy import adds_up
from tidemill.pipeline.row_writes.frame_cache import cached, kept_for_merge
from tidemill.pipeline.silver import hour_buckets
from tidemill.pipeline.silver.hour_buckets import Hours


@contextmanager
def compute_changes(
    context: RefreshContext, plan: RefreshPlan, request: RefreshRequest
) -> Iterator[Changes]:
    """Compute the rows that differ from gold, and count them; kept until the context ends.

    Gold is read at the version of the plan's state. Were it read as the newest, the MERGE's commit
    would have Spark plan what is cached here once more, for nothing.
    """
    started, view = time.monotonic(), context.view
    with ExitStack() as cleanup:
        if plan.strategy.small:  # of the MERGE too
            cleanup.enter_context(temporary_conf(context.lake.spark, WITHOUT_BROADCASTS))
        with interpreted(context.lake.spark) if plan.strategy.small else nullcontext():
            if plan.replaces_columns:
                rows = cleanup.enter_context(cached(_every_row(context, plan)))
                counts, overflowed = {"insert": rows.count()}, overflow.by_feature(view, rows)
            else:
                rows = _changed_rows(context, plan, request, cleanup)
                counts, overflowed = overflow.counted(rows, view)
                reach("refresh.changes_computed")
        yield Changes(rows, counts, overflowed, round(time.monotonic() - started, 3))


def _changed_rows(
    context: RefreshContext, plan: RefreshPlan, request: RefreshRequest, cleanup: ExitStack
) -> DataFrame:
    """Return the changed keys by the plan's strategy, kept until `cleanup`."""
    if request.emission:
        rows = emitted_changes(context, plan.state, request.emission)
    elif plan.strategy.mode == "recompute":
        rows = _recomputed(context, plan)
    else:
        rows = _incremental(context, plan)
    # As a column of the rows: a time within the MERGE's own code would be compiled in each refresh.
    updated_at = F.expr(literal(plan.as_of))
    rows = rows.withColumn("updated_at", updated_at)
    return cleanup.enter_context(kept_for_merge(rows, context.lake))


def _recomputed(context: RefreshContext, plan: RefreshPlan) -> DataFrame:
    return changes_by_recompute(
        context.lake,
        context.view,
        plan.as_of,
        plan.batch,
        plan.hours,
        strictly=bool(plan.strategy.recompute_reason),
        version=plan.state.version,
    )


def _incremental(context: RefreshContext, plan: RefreshPlan) -> DataFrame:
    """Return the changed keys, from the bucket rows that moved: their sums added to gold where
    features add up, else those keys computed from all of their buckets.

    The statement names the moved keys twice; Spark reads their buckets once, as the second reads
    what the first has shuffled.
    """
    lake, view, state = context.lake, context.view, plan.state
    rows = moved_keys(lake, view, state, plan.as_of, plan.batch)
    frames = {f"{view.name}_moved": rows}
    name = "incremental" if adds_up(view, state) else "affected"
    return _over_horizon(
        name, lake, view, plan.as_of, plan.batch, plan.hours, frames, version=state.version
    )


def _every_row(context: RefreshContext, plan: RefreshPlan) -> DataFrame:
    """Return all of gold with the columns that the view declares, of which it holds others. Its
    rows stay, empty where no event counts, unless they are those of other keys."""
    lake, gold = context.lake, context.lake.tables.of(context.view).gold
    if has_other_keys(lake.metadata(gold.name), gold):
        keys = (f"`{key}` {context.view.types[key]}" for key in context.view.keys)
        standing = lake.spark.createDataFrame([], ", ".join(keys))
    else:
        standing = lake.spark.table(gold.name).select(*context.view.keys)
    frames = {f"{context.view.name}_standing": standing}
    rows = _over_horizon("anew", lake, context.view, plan.as_of, plan.batch, None, frames)
    return rows.select(
        *(F.col(c.name).alias(c.name, metadata={"comment": c.comment}) for c in gold.columns)
    )


def emitted_changes(context: RefreshContext, state: GoldState, emission: Emission) -> DataFrame:
    """Return the keys that the state emitted and whose values gold does not hold."""
    view = context.view
    text = statement("emitted", view, version=state.version)
    frames = {f"{view.name}_emitted": overflow.named(emission.rows, view)}
    return ask(context.lake.spark, text, {"whole": emission.whole}, frames)


def changes_by_recompute(
    lake: Lake,
    view: FeatureView,
    as_of: datetime,
    batch: int,
    by_hours: Hours | None = None,
    *,
    strictly: bool = False,
    version: int | None = None,
) -> DataFrame:
    """Return the keys whose features differ from gold, with their new values and the action to
    take; whole hours are read from `by_hours` where given. `strictly` and `version`: see
    `statement`."""
    return _over_horizon(
        "changes", lake, view, as_of, batch, by_hours, strictly=strictly, version=version
    )


def moved_keys(
    lake: Lake, view: FeatureView, state: GoldState, as_of: datetime, batch: int
) -> DataFrame:
    """Return the keys of which a bucket row entered or left a window since gold's ledger, with what
    to add to each feature where features add up."""
    assert state.as_of is not None
    args = {
        "as_of": as_of,
        "batch": batch,
        "as_of_before": state.as_of,
        "batch_before": state.batch,
        "low": min(as_of, state.as_of),
        "high": max(as_of, state.as_of),
    }
    name = "delta" if adds_up(view, state) else "affected_keys"
    return ask(lake.spark, statement(name, view), args)


def _over_horizon(
    name: str,
    lake: Lake,
    view: FeatureView,
    as_of: datetime,
    batch: int,
    by_hours: Hours | None,
    frames: Mapping[str, DataFrame] | None = None,
    *,
    strictly: bool = False,
    version: int | None = None,
) -> DataFrame:
    args: dict[str, Any] = {"as_of": as_of, "batch": batch}
    frames = dict(frames or {})
    if by_hours:
        frames |= hour_buckets.frames(lake, view, by_hours)
        args["hours"] = by_hours.batch
    text = statement(name, view, by_hours=bool(by_hours), strictly=strictly, version=version)
    return ask(lake.spark, text, args, frames)
