"""The plan of a refresh: whether there is anything to do, and by which strategy.

A refresh is due when (batch, as_of) moved, and when gold's rows, or the bucket rows that they were
made of, cannot be trusted: then always, even where no key will change.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from tidemill.errors import LedgerError
from tidemill.lake.commits import ledger
from tidemill.lake.commits.ledger import Commit, GoldState
from tidemill.lake.schema.verification import difference
from tidemill.pipeline.gold import strategy
from tidemill.pipeline.gold.changes import emitted_changes
from tidemill.pipeline.gold.context import Emission, RefreshContext, RefreshPlan, RefreshRequest
from tidemill.pipeline.gold.strategy import STATEFUL, Strategy
from tidemill.pipeline.silver import hour_buckets
from tidemill.pipeline.silver.hour_buckets import Hours

log = logging.getLogger(__name__)


def plan_refresh(
    context: RefreshContext, state: GoldState, request: RefreshRequest
) -> RefreshPlan | None:
    """Return how to bring gold from `state` to what is requested; None when it holds that.

    LedgerError for an emission of the stateful engine where gold is not as the state left it.
    """
    if request.emission:
        plan = _plan_emission(context, state, request, request.emission)
    else:
        plan = _plan_from_buckets(context, state, request)
    if plan is None or not state.recompute_reason:
        return plan
    declared = context.lake.tables.of(context.view).gold
    return replace(plan, replaces_columns=bool(difference(context.lake, declared)))


def _plan_from_buckets(
    context: RefreshContext, state: GoldState, request: RefreshRequest
) -> RefreshPlan | None:
    lake, view = context.lake, context.view
    commits = context.bucket_commits or lake.commits(context.buckets)
    buckets_changed = strategy.reason_of_buckets(lake, view, state, commits)
    reason = request.force or state.recompute_reason or buckets_changed
    target = request.target(state)
    if target is None:
        return None
    if target == (state.as_of, state.batch) and not _must_recompute(
        request, state, buckets_changed
    ):
        return None
    as_of, batch = target
    arrived = request.arrived(state, commits)
    chosen = strategy.choose(lake, view, lake.pipeline.refresh, state, as_of, reason, arrived)
    _log_recompute(context.gold, chosen)
    hours = None if request.force else _usable_hours(context, state, chosen, batch, commits)
    return RefreshPlan(state, as_of, batch, chosen, hours, commits[0].version)


def _must_recompute(request: RefreshRequest, state: GoldState, buckets_changed: str | None) -> bool:
    """Return whether gold is recomputed where neither batch nor as_of moved. A bucket log that was
    only cleaned is no reason: what gold holds cannot be added to then, but it is right."""
    if request.force or state.recompute_reason:
        return True
    return bool(buckets_changed and not ledger.is_gone(buckets_changed))


def _usable_hours(
    context: RefreshContext,
    state: GoldState,
    chosen: Strategy,
    batch: int,
    commits: Sequence[Commit],
) -> Hours | None:
    """Return the hour buckets to read; None where there are none, none is needed, or gold was found
    wrong."""
    added = chosen.mode == "incremental" and strategy.adds_up(context.view, state)
    if added or chosen.drift:
        return None
    return hour_buckets.usable(context.lake, context.view, batch, commits)


def _plan_emission(
    context: RefreshContext, state: GoldState, request: RefreshRequest, emission: Emission
) -> RefreshPlan | None:
    target = request.target(state)
    assert target is not None
    reached = state.kept_by_state and target == (state.as_of, state.batch)
    if reached and emitted_changes(context, state, emission).isEmpty():
        return None
    if not (state.kept_by_state or emission.whole or _never_refreshed(context, state)):
        raise _not_kept(context.gold, state)
    as_of, batch = target
    return RefreshPlan(state, as_of, batch, STATEFUL)


def _never_refreshed(context: RefreshContext, state: GoldState) -> bool:
    """Return whether gold is as it was made: a query that began before there was any bucket has had
    a first batch of nothing."""
    return state.ledger is None and context.lake.spark.table(context.gold).isEmpty()


def _not_kept(gold: str, state: GoldState) -> LedgerError:
    mode = (state.ledger or {}).get("mode")
    return LedgerError(
        f"is not as the state left it: {state.recompute_reason or f'refreshed by {mode}'}",
        where=gold,
        expected="run again: the state is then made anew from the buckets",
    )


def _log_recompute(gold: str, chosen: Strategy) -> None:
    if chosen.drift:
        log.error(
            "%s was wrong in %d keys and is recomputed; please report this", gold, chosen.drift
        )
    elif chosen.recompute_reason:
        log.info("%s is recomputed: %s", gold, chosen.recompute_reason)
    if chosen.events_drift:
        log.error(
            "%s differs from the accepted events in %d of the keys compared: buckets are wrong; "
            "`tidemill reconcile --from events` says how to mend them",
            gold,
            chosen.events_drift,
        )
