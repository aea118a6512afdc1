"""Refresh: bring a view's gold to a batch of its buckets and a point in time, in one commit.

    read_state ───► plan_refresh ───► compute_changes ───► merge_changes
    gold's ledger   which strategy    rows that differ     one commit: rows, ledger, transaction

Gold says in the MERGE's own commit what it holds, so that gold = F(buckets where batch <= b, as_of)
for every version with a ledger, whatever died when.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame

from tidemill.config.settings import iso
from tidemill.errors import LedgerError
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.commits.ledger import Commit, GoldState
from tidemill.pipeline.gold.changes import compute_changes
from tidemill.pipeline.gold.context import Emission, RefreshContext, RefreshPlan, RefreshRequest
from tidemill.pipeline.gold.merge import merge_changes
from tidemill.pipeline.gold.plan import plan_refresh

log = logging.getLogger(__name__)

ATTEMPTS = 3
OTHERS = 3  # lost against commits that move no row, as maintenance's, count as one lost attempt


@dataclass(frozen=True)
class Refreshed:
    """Gold after a refresh; `committed` is False when it already held this batch and as_of."""

    view: str
    as_of: datetime | None
    mode: str
    batch: int
    keys_changed: int
    committed: bool
    seconds: float


def refresh(
    lake: Lake,
    view: FeatureView,
    *,
    as_of: datetime | None,
    batch: int,
    buckets: Sequence[Commit] = (),
    force: str | None = None,
    not_below: bool = False,
    spent: Mapping[str, float] | None = None,
    appended: int = 0,
) -> Refreshed:
    """Bring gold to the buckets with `batch <= batch` at `as_of`, in one commit, by the strategy
    that the pipeline asks for and the ledgers allow (see `strategy`).

    A commit is made when batch or as_of moved, or when the rows cannot be trusted (no readable
    ledger, RESTORE, another's change or a rebuild, of gold or of the buckets, another definition,
    `force`), and then always, even with no changed key. batch is never lowered; as_of only with
    `not_below` False. When another commit wins the race, the ledger is read again and the rest, if
    any, is done; after three lost refreshes LedgerError. `buckets` are the bucket table's newest
    commits, read where not given; `spent` are seconds of earlier steps, kept in the ledger,
    `appended` the bucket rows that this batch added to those commits. An as_of of None (no bucket
    yet) does nothing.
    """
    request = RefreshRequest(as_of, batch, force, not_below, spent or {}, appended)
    return _refresh(lake, view, request, buckets)


def merge_emitted(
    lake: Lake, view: FeatureView, emitted: DataFrame, *, as_of: datetime, batch: int, whole: bool
) -> Refreshed:
    """Merge what the state emitted, the values of the keys that changed, as the refresh to (batch,
    as_of).

    The state knows what it emitted last, not what gold holds. So gold must be as the last merge
    left it, unless the state is new (`whole`) and emits every key: then gold is compared with all
    of them. Otherwise LedgerError. The same rows again, after a crash, are found merged.
    """
    emission = Emission(emitted, whole)
    request = RefreshRequest(as_of, batch, not_below=not whole, emission=emission)
    return _refresh(lake, view, request, ())


def _refresh(
    lake: Lake, view: FeatureView, request: RefreshRequest, buckets: Sequence[Commit]
) -> Refreshed:
    started = time.monotonic()
    attempt, lost = 0, 0
    while lost < ATTEMPTS * OTHERS:
        context = RefreshContext(lake, view, buckets if not attempt else ())
        state = read_state(context)
        plan = plan_refresh(context, state, request)
        if plan is None:
            return _unchanged(view, state, started)
        with compute_changes(context, plan, request) as changes:
            changed = merge_changes(context, plan, request, changes)
        if changed is not None:
            log.info("%s: %d keys changed at %s", view.name, changed, iso(plan.as_of))
            return _refreshed(view, plan, changed, started)
        attempt += 1
        lost += OTHERS if lake.commits(context.gold, 1)[0].moves_data else 1
        log.info("%s: another commit won, attempt %d", context.gold, attempt)
    raise LedgerError(
        f"{attempt} refreshes in a row lost against another writer",
        where=lake.tables.of(view).gold.name,
        expected="one writer: stop the other",
    )


def read_state(context: RefreshContext) -> GoldState:
    """Return what gold holds, from its ledger."""
    return context.lake.gold_state(context.view)


def _refreshed(view: FeatureView, plan: RefreshPlan, changed: int, started: float) -> Refreshed:
    seconds = time.monotonic() - started
    return Refreshed(view.name, plan.as_of, plan.strategy.mode, plan.batch, changed, True, seconds)


def _unchanged(view: FeatureView, state: GoldState, started: float) -> Refreshed:
    mode = str((state.ledger or {}).get("mode", "recompute"))
    seconds = time.monotonic() - started
    return Refreshed(view.name, state.as_of, mode, state.batch, 0, False, seconds)
