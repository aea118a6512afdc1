"""Strategies of a refresh: by which one gold is brought up to date, and why.

    recompute     read the longest window, compare every key: the reference, first build and repair
    incremental   read what entered and left the windows since gold's ledger, change those keys
    auto          incremental; once a day of as_of gold is compared with the recompute first, and a
                  sample of its keys with the accepted events
    stateful      merge what the stateful engine emitted; it alone uses this strategy, and no other

Each strategy gives the same rows. The incremental one starts from what gold's ledger says, so it is
taken only where that can be trusted; what the ledger's rules say of recompute stays as it is. And
it is taken only where it reads no more: after a long jump of as_of the rows of both are counted, by
the hours that they stand in.

An incremental refresh of a small gold is `small`: what computes its changes is interpreted. To
compile that takes longer than to run it, anew in every tick, as the times stand in it. The MERGE,
in which no value stands, is compiled once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tidemill.config.pipeline_file import Mode
from tidemill.config.settings import iso
from tidemill.features import FeatureView
from tidemill.features.windows import HOUR
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.commits.ledger import Commit, GoldState
from tidemill.lake.parameters import ask
from tidemill.lake.relations import Relation
from tidemill.lake.statements import statement
from tidemill.pipeline.silver import accepted_events
from tidemill.pipeline.silver.accepted_events import Comparison

CHECK_EVERY = timedelta(days=1)
SMALL_GOLD, SMALL_BATCH = 512 * 2**10, 100_000  # bytes; rows that came since gold's ledger


@dataclass(frozen=True)
class Strategy:
    """How a refresh computes what changes.

    `checked` is the as_of at which gold was last compared with a recompute; `recompute_reason` says
    why gold's rows cannot be built on, so that a recompute writes every value that differs, to the
    last bit of a sketch. `small`: see above.
    """

    mode: str
    checked: datetime | None
    recompute_reason: str | None = None
    drift: int = 0
    events_drift: int = 0
    small: bool = False

    def ledger_fields(self) -> dict[str, Any]:
        """Return what the ledger keeps of it."""
        return {
            "mode": self.mode,
            **({"checked": iso(self.checked)} if self.checked else {}),
            **({"why": self.recompute_reason} if self.recompute_reason else {}),
            **({"drift": self.drift} if self.drift else {}),
            **({"events_drift": self.events_drift} if self.events_drift else {}),
        }


STATEFUL = Strategy(ledger.STATEFUL, None)


def choose(
    lake: Lake,
    view: FeatureView,
    requested: Mode,
    state: GoldState,
    as_of: datetime,
    recompute_reason: str | None,
    arrived: int,
) -> Strategy:
    """Return the strategy to bring gold from its state to `as_of`.

    `recompute_reason` says why gold, or the buckets that it was made of, cannot be built on, if
    they cannot; `arrived` are the bucket rows that came since gold's state. With `auto`, a gold
    that was not checked for a day of as_of is compared with the recompute first; `drift` is then
    the number of keys that differ, and more than 0 leads to a recompute. Then a sample of its keys
    is compared
    with the accepted events; `events_drift` is the number of those that differ, which no recompute
    from the buckets can mend.
    """
    if recompute_reason or requested == "recompute":
        return Strategy("recompute", as_of, recompute_reason)
    assert state.as_of is not None and state.ledger is not None
    if reason := _reads_more(lake, view, state.as_of, state.batch, as_of):
        return Strategy("recompute", as_of, reason)
    small = _is_small(lake, view, state, arrived)
    checked = state.ledger.get("checked")
    checked = ledger.instant(checked) if checked else None
    if requested == "incremental" or (checked and abs(as_of - checked) < CHECK_EVERY):
        return Strategy("incremental", checked, small=small)
    checked_now = compare(lake, view, state.version, state.as_of, state.batch)
    if drift := checked_now.different:
        return Strategy("recompute", as_of, f"the check found {drift} keys that differ", drift)
    events_drift = accepted_events.check_sample(lake, view, state, checked_now.keys)
    return Strategy("incremental", as_of, events_drift=events_drift, small=small)


def reason_of_buckets(
    lake: Lake, view: FeatureView, state: GoldState, commits: Sequence[Commit]
) -> str | None:
    """Return why the bucket rows that gold was made of may not be the same today, else None.

    `commits` are the bucket table's newest commits. Appends of ours add rows, which the next
    refresh reads as new; anything else that changed rows since then (DELETE, RESTORE, a foreign
    write, a rebuild) was never subtracted from gold.
    """
    name = lake.tables.of(view).buckets.name
    after = int((state.ledger or {}).get("buckets", -1))
    if after < 0:
        return f"the ledger names no version of {name}"
    return ledger.changed_by_another(lake, name, after, commits)


def _reads_more(
    lake: Lake, view: FeatureView, before: datetime, batch_before: int, as_of: datetime
) -> str | None:
    """Return why an incremental refresh would read more than a recompute; None where it does not.

    Nobody counts where as_of moves by an hour at most, nor where what entered and left the windows
    is at most half of the horizon's time: the lengths of time are compared.
    """
    moved = abs(as_of - before)
    edges = moved * (len(view.windows) + 1)
    if edges * 2 <= view.horizon:
        return None
    if moved <= HOUR:
        longer = edges >= view.horizon
        return f"as_of moves by {moved}, which is not less to read" if longer else None
    low, high = min(as_of, before), max(as_of, before)
    args = {"as_of": as_of, "batch_before": batch_before, "low": low, "high": high}
    rows = ask(lake.spark, statement("rows_to_read", view), args).collect()[0]
    if rows["incremental"] <= rows["recompute"]:
        return None
    return (
        f"as_of moves by {moved}, and {rows['incremental']} bucket rows would be read "
        f"instead of {rows['recompute']}"
    )


def _is_small(lake: Lake, view: FeatureView, state: GoldState, arrived: int) -> bool:
    """Return whether gold is small, which only a folder's log tells without a query, and so is what
    arrived since its ledger."""
    size = lake.size(lake.tables.of(view).gold.name, state.version)
    return size is not None and size <= SMALL_GOLD and arrived <= SMALL_BATCH


def adds_up(view: FeatureView, state: GoldState) -> bool:
    """Return whether gold's features can be added to: none that adds up is null."""
    return view.invertible and not (state.ledger or {}).get("overflowed")


def compare(lake: Lake, view: FeatureView, version: int, as_of: datetime, batch: int) -> Comparison:
    """Compare a version of gold with the recompute at (batch, as_of)."""
    gold = Relation(lake.tables.of(view).gold.name, version)
    text, args = statement("differences", view), {"as_of": as_of, "batch": batch}
    return Comparison.of(lake.ask(text, args, {"gold_rows": gold}))
