"""What the state reads: a table of what is new to it, which follows the buckets.

    buckets ──rows with batch in (b0, b]────────────────┐
            ──keys that were live at T0 (event clock)───┼─► arrivals {batch b, as_of T} ──► state
    clock ──one row without keys────────────────────────┘

Each append says how far it has read, as gold does. So the first one brings the whole of the longest
window, and one after batches without an append brings them all.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile

from tidemill.config.settings import iso
from tidemill.errors import LedgerError
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger, writer
from tidemill.lake.commits.ledger import RECENT, Commit
from tidemill.lake.parameters import ask
from tidemill.lake.schema import creation
from tidemill.lake.statements import statement

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Arrived:
    """Where the arrivals of a view stand, the table's version, and that of the buckets they were
    read from; no such version where nothing has arrived."""

    batch: int
    as_of: datetime | None
    version: int
    buckets: int | None


def arrived(lake: Lake, view: FeatureView) -> Arrived:
    """Return where the arrivals stand, from the table's history since it was made, or made again.

    LedgerError when that history is gone, which says nothing of what has arrived.
    """
    name = lake.tables.of(view).arrivals.name
    commits = lake.commits(name)
    if len(commits) == RECENT and not any(ledger.appends(commits, lake.generation)):
        commits = lake.commits(name, None)
    since_made = list(takewhile(lambda commit: not commit.makes_table, commits))
    for commit in ledger.appends(since_made, lake.generation):
        assert commit.ledger is not None
        fields = commit.ledger
        as_of = ledger.instant(fields["as_of"])
        return Arrived(int(fields["batch"]), as_of, commits[0].version, int(fields["buckets"]))
    if len(since_made) == len(commits):
        raise _distrusted(f"the history of {name} is gone", name)
    return Arrived(-1, None, commits[0].version, None)


def check(lake: Lake, view: FeatureView, state: Arrived, buckets: Sequence[Commit]) -> None:
    """Raise LedgerError when bucket rows that have arrived may not be the same today: `buckets` are
    the bucket table's newest commits."""
    name = lake.tables.of(view).buckets.name
    if state.buckets is None:
        return
    if why := ledger.changed_by_another(lake, name, state.buckets, buckets):
        raise _distrusted(why, name)


def _distrusted(why: str, table: str) -> LedgerError:
    expected = "run again: the state is then made anew from the buckets"
    return LedgerError(why, where=table, expected=expected)


def arrive(
    lake: Lake,
    view: FeatureView,
    *,
    as_of: datetime | None,
    batch: int,
    buckets: Sequence[Commit],
) -> bool:
    """Bring the arrivals to the buckets with `batch <= batch` at `as_of`, in one commit; tell
    whether there was something to bring.

    Neither is ever lowered. Buckets that no window holds at as_of do not arrive. With the event
    clock each live key gets a tick, so that its windows pass; with the wall clock timers do that.
    `buckets` are the bucket table's newest commits; LedgerError when they are not all ours.
    """
    if as_of is None:
        return False
    state, table = arrived(lake, view), lake.tables.of(view).arrivals
    check(lake, view, state, buckets)
    goal = max(as_of, state.as_of or as_of), max(batch, state.batch)
    if goal == (state.as_of, state.batch):
        return False
    args = {
        "as_of": goal[0],
        "batch": goal[1],
        "as_of_before": state.as_of or goal[0],
        "batch_before": state.batch,
        "ticks": lake.pipeline.clock == "event",
    }
    ledger_fields = {
        "generation": lake.generation,
        "batch": goal[1],
        "as_of": iso(goal[0]),
        "buckets": buckets[0].version,
    }
    rows = ask(lake.spark, statement("arrivals", view), args).select(*table.column_names)
    writer.write(rows, table.name, ledger_fields, (lake.app_id(table), state.version + 1))
    log.info("%s: batch %d at %s", table.name, goal[1], ledger_fields["as_of"])
    return True


def begin_anew(lake: Lake, view: FeatureView) -> None:
    """Empty the arrivals, so that the next ones bring the whole of the longest window again."""
    table = lake.tables.of(view).arrivals
    if not lake.is_as_made(table.name):
        creation.create(lake, table, replace=True)
