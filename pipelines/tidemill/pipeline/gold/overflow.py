"""Features without a value, because a window holds more than their type or capacity.

Gold names them in each row (`__overflowed`), the refresh's ledger counts them: `{overflowed:
{<feature>: <keys>}}`, of all of gold and not only of the keys that changed. An incremental refresh
has nothing to add to where a sum is null, so it computes the keys that moved from the buckets as
long as the ledger counts any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from tidemill.errors import RunError
from tidemill.features import FeatureView
from tidemill.features.columns import OVERFLOWED
from tidemill.lake.catalog import Lake
from tidemill.lake.commits.ledger import GoldState
from tidemill.pipeline.gold.context import Changes


def counted(rows: DataFrame, view: FeatureView) -> tuple[dict[str, int], dict[str, int]]:
    """Return how many rows there are by action, and how many keys overflow by feature: one job."""
    by = ["__action", *([OVERFLOWED] if view.may_overflow else [])]
    groups = rows.groupBy(*by).count().collect()
    actions: Counter[str] = Counter()
    for group in groups:
        actions[group["__action"]] += group["count"]
    return dict(actions), _keys_by_feature(groups) if view.may_overflow else {}


def by_feature(view: FeatureView, rows: DataFrame) -> dict[str, int]:
    """Return how many of the rows overflow, by feature."""
    if not view.may_overflow:
        return {}
    return _keys_by_feature(rows.groupBy(OVERFLOWED).count().collect())


def of_gold(lake: Lake, view: FeatureView, state: GoldState, changes: Changes) -> dict[str, int]:
    """Return how many keys of gold will overflow, by feature: those of the changes, and those of
    gold's keys that do not change."""
    overflowed = Counter(changes.overflowed)
    has_ledger = state.ledger and not state.recompute_reason
    if view.may_overflow and (not has_ledger or (state.ledger or {}).get("overflowed")):
        rows = lake.spark.read.option("versionAsOf", state.version)
        gold = rows.table(lake.tables.of(view).gold.name).where(f"{OVERFLOWED} IS NOT NULL")
        unchanged = gold.join(changes.rows.select(*view.keys), [*view.keys], "left_anti")
        overflowed.update(by_feature(view, unchanged))
    return dict(overflowed)


def ledger_fields(
    view: FeatureView, overflowed: Mapping[str, int], rows: DataFrame
) -> dict[str, Any]:
    """Return what a refresh's ledger says of overflows, nothing where there is none; RunError with
    `on_overflow: stop`, which names the first key among `rows`."""
    if not overflowed:
        return {}
    if view.on_overflow == "stop":
        raise _stopped(view, overflowed, rows)
    return {"overflowed": dict(sorted(overflowed.items()))}


def named(emitted: DataFrame, view: FeatureView) -> DataFrame:
    """Return rows of features with the name of each sum that is null, as the state emits them."""
    if not view.may_overflow:
        return emitted
    names = (f"CASE WHEN {c.name} IS NULL THEN '{c.name}' END" for c in view.shown if c.overflow)
    return emitted.withColumn(OVERFLOWED, F.expr(f"nullif(concat_ws(',', {', '.join(names)}), '')"))


def _keys_by_feature(groups: Iterable[Row]) -> dict[str, int]:
    keys: Counter[str] = Counter()
    for group in groups:
        for feature in filter(None, (group[OVERFLOWED] or "").split(",")):
            keys[feature] += group["count"]
    return dict(keys)


def _stopped(view: FeatureView, overflowed: Mapping[str, int], rows: DataFrame) -> RunError:
    feature = min(overflowed)
    of_feature = F.array_contains(F.split(OVERFLOWED, ","), feature)
    row = rows.where(of_feature).select(*view.keys).orderBy(*view.keys).first()
    key = (
        ", ".join(f"{name}={row[name]}" for name in view.keys)
        if row
        else f"in {OVERFLOWED} of gold"
    )
    return RunError(
        f"feature {feature} overflows for {overflowed[feature]} keys, the first {key}",
        where=f"view {view.name}",
        expected="on_overflow: null, which leaves such a value null, a wider type or capacity, or "
        "events without such values",
    )
