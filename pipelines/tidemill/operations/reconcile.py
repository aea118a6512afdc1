"""Reconcile: is gold what the buckets say, and what the accepted events say?

Any version with a ledger can be compared with the buckets, at any time; with the events for as long
as feature's checkpoint tells which of them it had read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from tidemill.config.settings import iso
from tidemill.errors import LakeError, UsageError
from tidemill.features import FeatureView
from tidemill.features.suggestions import did_you_mean
from tidemill.features.windows import BEGINNING
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.relations import Relation
from tidemill.pipeline import batch_log
from tidemill.pipeline.gold import refresh as gold
from tidemill.pipeline.gold import strategy
from tidemill.pipeline.silver import accepted_events, minute_buckets

Source = Literal["buckets", "events"]
SOURCES: tuple[Source, ...] = ("buckets", "events")


@dataclass(frozen=True)
class Reconciled:
    """How many keys are not empty on either side, how many of them have an unequal feature, and
    which engine compared them; None where there was nothing to compare."""

    view: str
    as_of: str | None
    batch: int
    gold_version: int
    keys: int
    different: int
    engine: str | None = None


def reconcile(
    lake: Lake, view: FeatureView, version: int | None = None, *, source: Source = "buckets"
) -> Reconciled:
    """Compare a version of gold (the newest, by default) with the recompute at that version's
    ledger, from the buckets or from the accepted events.

    Raises LakeError for a version without a ledger, and when it can no longer be said which events
    feature had read by then. A gold that was never refreshed has 0
    differences when it is empty.
    """
    name = lake.tables.of(view).gold.name
    if version is None:
        state = lake.gold_state(view)
        ledger_fields, at = state.ledger, state.version
    else:
        ledger_fields, at = _ledger_of(lake, name, version), version
    if ledger_fields is None:
        gold = {"gold_rows": Relation(name, at)}
        rows = lake.ask("SELECT count(*) AS keys FROM gold_rows", {}, gold)
        left = rows.rows[0]["keys"]
        return Reconciled(view.name, None, -1, at, left, left)
    as_of, batch = ledger.instant(ledger_fields["as_of"]), int(ledger_fields["batch"])
    compare = accepted_events.compare if source == "events" else strategy.compare
    compared = compare(lake, view, at, as_of, batch)
    return Reconciled(view.name, iso(as_of), batch, at, **vars(compared))


def repaired(lake: Lake, view: FeatureView) -> dict[str, Any]:
    """Recompute gold where it differs, or where another writer changed it; return the comparison
    after it, and `repaired`, the keys changed. UsageError with the stateful engine, which cannot
    recompute."""
    if lake.pipeline.engine == "stateful":
        raise UsageError(
            "engine: stateful cannot recompute what is different",
            where="--repair",
            expected=f"`tidemill rebuild {lake.pipeline.command_name} --from bronze`",
        )
    before = reconcile(lake, view)
    if not before.different and not lake.gold_state(view).recompute_reason:
        return {**vars(before), "repaired": 0}
    buckets = minute_buckets.bucketed(lake, view)
    as_of = (
        ledger.instant(before.as_of) if before.as_of else minute_buckets.event_as_of(buckets, view)
    )
    batch = before.batch if before.as_of else buckets.batch
    done = gold.refresh(
        lake, view, as_of=as_of, batch=batch, buckets=buckets.commits, force="repair"
    )
    batch_log.record(lake)
    return {**vars(reconcile(lake, view)), "repaired": done.keys_changed}


def from_events(lake: Lake, view: FeatureView, *, repair: bool = False) -> dict[str, Any]:
    """Return the comparison with the accepted events, after a repair from the buckets where that is
    wanted. Where they differ then, the buckets are wrong, and `mend` is the command that makes them
    again."""
    done = {"repaired": repaired(lake, view)["repaired"]} if repair else {}
    comparison = reconcile(lake, view, source="events")
    result = {**vars(comparison), "from": "events", **done}
    return {**result, "mend": _rebuild(lake, view, comparison)} if comparison.different else result


def mended_since(view: FeatureView, as_of: datetime) -> datetime:
    """Return the hour from which on the view's buckets have to be right for gold to be so."""
    return max(as_of - view.horizon, BEGINNING).replace(minute=0, second=0)


def check(source: str, version: int | None, repair: bool) -> None:
    """Refuse what cannot be compared, before anything is read."""
    if source not in SOURCES:
        hint = did_you_mean(source, SOURCES)
        raise UsageError(f"cannot reconcile with {source!r}{hint}", where="--from")
    if repair and version is not None:
        raise UsageError("an old version cannot be repaired", where="version", expected="None")


def facts(
    lake: Lake,
    view: FeatureView,
    version: int | None,
    *,
    source: str,
    repair: bool,
) -> dict[str, Any]:
    """Return the comparison that is asked for, after a repair of the newest version where that is
    wanted."""
    if version is not None:
        compared_with: Source = "events" if source == "events" else "buckets"
        comparison = vars(reconcile(lake, view, version, source=compared_with))
        return {**comparison, "from": "events"} if source == "events" else comparison
    if source == "events":
        return from_events(lake, view, repair=repair)
    return repaired(lake, view) if repair else vars(reconcile(lake, view))


def _rebuild(lake: Lake, view: FeatureView, comparison: Reconciled) -> str:
    pipeline = lake.pipeline.command_name
    if lake.pipeline.engine == "stateful" or comparison.as_of is None:
        return f"tidemill rebuild {pipeline} --from bronze"
    since = mended_since(view, ledger.instant(comparison.as_of))
    return f"tidemill rebuild {pipeline} --since {since:%Y-%m-%dT%H:%M}"


def _ledger_of(lake: Lake, name: str, version: int) -> Mapping[str, Any]:
    for commit in lake.commits(name, None):
        if commit.version == version and commit.ledger:
            return commit.ledger
    raise LakeError(f"version {version} has no ledger", where=name, expected="a refresh's version")
