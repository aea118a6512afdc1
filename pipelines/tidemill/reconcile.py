"""Reconcile: is gold what the buckets say? Any version with a ledger can be asked, at any time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidemill import gold, ledger, metrics, silver, tables, ways
from tidemill.errors import LakeError, UsageError
from tidemill.features import FeatureView
from tidemill.lake import Lake
from tidemill.settings import iso


@dataclass(frozen=True)
class Reconciled:
    """How many keys are not empty on either side, and how many of them have an unequal feature."""

    view: str
    as_of: str | None
    batch: int
    gold_version: int
    keys: int
    different: int


def reconcile(lake: Lake, view: FeatureView, version: int | None = None) -> Reconciled:
    """Compare a version of gold (the newest, by default) with the recompute at that version's
    ledger.

    Raises LakeError for a version without a ledger. A gold that was never refreshed has 0
    differences when it is empty.
    """
    name = tables.features(view).name
    if version is None:
        there = lake.standing(view)
        told, at = there.ledger, there.version
    else:
        told, at = _ledger_of(lake, name, version), version
    if told is None:
        left = lake.spark.read.option("versionAsOf", at).table(name).count()
        return Reconciled(view.name, None, -1, at, left, left)
    as_of, batch = ledger.instant(told["as_of"]), int(told["batch"])
    keys, different = ways.compare(lake.spark, view, at, as_of, batch)
    return Reconciled(view.name, iso(as_of), batch, at, keys, different)


def repaired(lake: Lake, view: FeatureView) -> dict[str, Any]:
    """Recompute gold where it differs; yield the comparison after it, and `repaired`, the keys
    changed. UsageError with the stateful engine, which cannot recompute."""
    if lake.pipeline.engine == "stateful":
        raise UsageError(
            "engine: stateful cannot recompute what is different",
            where="--repair",
            expected=f"`tidemill rebuild {lake.pipeline.pipeline} --from bronze`",
        )
    before = reconcile(lake, view)
    if not before.different:
        return {**vars(before), "repaired": 0}
    there = silver.bucketed(lake, view)
    as_of = ledger.instant(before.as_of) if before.as_of else silver.event_as_of(there, view)
    batch = before.batch if before.as_of else there.batch
    done = gold.refresh(lake, view, as_of=as_of, batch=batch, buckets=there.commits, force="repair")
    metrics.record(lake)
    return {**vars(reconcile(lake, view)), "repaired": done.keys_changed}


def _ledger_of(lake: Lake, name: str, version: int) -> Mapping[str, Any]:
    for commit in lake.commits(name, None):
        if commit.version == version and commit.ledger:
            return commit.ledger
    raise LakeError(f"version {version} has no ledger", where=name, expected="a refresh's version")
