"""Writing gold: the MERGE of the keys that changed, or the whole table anew where its columns did.

    a folder's gold, few keys     the driver merges, by `deltalake` (decision 0110)
    any other                     Spark's MERGE

Each is one commit, with the refresh number as its Delta transaction and the ledger in it. So of
two that bring gold to the same number one wins, and the other gets None.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tidemill.config.settings import iso
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger, writer
from tidemill.lake.commits.failpoints import reach
from tidemill.lake.commits.races import lost_race
from tidemill.lake.parameters import ask
from tidemill.lake.schema.sql_views import make_views
from tidemill.lake.statements import statement
from tidemill.pipeline.gold import overflow
from tidemill.pipeline.gold.context import Changes, RefreshContext, RefreshPlan, RefreshRequest
from tidemill.pipeline.row_writes import driver_merge

log = logging.getLogger(__name__)


def merge_changes(
    context: RefreshContext, plan: RefreshPlan, request: RefreshRequest, changes: Changes
) -> int | None:
    """Bring the changes into gold, in one commit with the ledger of the plan; return the keys
    changed, None when another refresh took the number, or the table, first."""
    lake, view = context.lake, context.view
    if plan.replaces_columns:
        overflowed = overflow.ledger_fields(view, changes.overflowed, changes.rows)
        fields = {**_ledger_fields(context, plan, request, changes), **overflowed}
        return _replace(lake, view, changes.rows, fields)
    if _is_rebuilt(context, plan):
        return None
    in_gold = overflow.of_gold(lake, view, plan.state, changes)
    overflowed = overflow.ledger_fields(view, in_gold, changes.rows)
    fields = {**_ledger_fields(context, plan, request, changes), **overflowed}
    merged = merge(lake, view, changes.rows, changes.counts, fields)
    reach("refresh.merged")
    return merged


def merge(
    lake: Lake,
    view: FeatureView,
    changed: DataFrame,
    counts: Mapping[str, int],
    ledger_fields: Mapping[str, Any],
) -> int | None:
    """MERGE changed keys into gold, of which `counts` are the rows by action; return how many, None
    when another took the refresh number, or changed the table, first."""
    fields = {**ledger_fields, "changed": sum(counts.values())}
    gold = lake.tables.of(view).gold
    transaction = (lake.app_id(gold), int(fields["refresh"]))
    by_driver = driver_merge.merge(
        lake, gold, changed, fields["changed"], view.keys, counts.keys(), fields, transaction
    )
    if by_driver is not None:
        return fields["changed"] if by_driver else None
    text = statement("merge", view, clauses=counts.keys() or {"insert"})
    with writer.carrying(lake.spark, fields, transaction):
        try:
            rows = {f"{view.name}_changes": changed}
            merged = ask(lake.spark, text, {}, rows).collect()
        except PySparkException as error:
            if not lost_race(error):
                raise
            return None
    return fields["changed"] if merged else None


def _replace(
    lake: Lake, view: FeatureView, rows: DataFrame, fields: Mapping[str, Any]
) -> int | None:
    """Write gold with the columns that the view declares now, every row; readers see the old
    columns until then. Return the number of rows, None when another refresh took the number, or
    the table, first."""
    table = lake.tables.of(view).gold
    try:
        writer.write(
            rows,
            table.name,
            fields,
            (lake.app_id(table), int(fields["refresh"])),
            replaces_columns=True,
        )
    except PySparkException as error:
        if not lost_race(error):
            raise
        return None
    newest = lake.commits(table.name, 1)[0].ledger or {}
    if newest.get("refresh") != fields["refresh"] or newest.get("definition") != view.definition:
        return None
    make_views(lake)
    return int(fields["changed"])


def _is_rebuilt(context: RefreshContext, plan: RefreshPlan) -> bool:
    """Return whether bucket rows were changed while they were read, which only a catalog allows: a
    folder's lock keeps a rebuild out."""
    lake = context.lake
    if lake.place.folder or plan.bucket_version is None:
        return False
    commits = lake.commits(context.buckets)
    return bool(ledger.changed_by_another(lake, context.buckets, plan.bucket_version, commits))


def _ledger_fields(
    context: RefreshContext, plan: RefreshPlan, request: RefreshRequest, changes: Changes
) -> dict[str, Any]:
    buckets = plan.bucket_version
    return {
        "generation": context.lake.generation,
        "definition": context.view.definition,
        "refresh": plan.state.refresh,
        "from_batch": plan.state.batch,
        "batch": plan.batch,
        "as_of": iso(plan.as_of),
        **({} if buckets is None else {"buckets": buckets}),
        **plan.strategy.ledger_fields(),
        **({"earlier": True} if plan.goes_back else {}),
        "seconds": {**request.seconds, "diff": changes.seconds},
        "changed": sum(changes.counts.values()),
    }
