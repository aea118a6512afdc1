"""Writing gold: the MERGE of the keys that changed, or the whole table anew where its columns did.

Either is one commit, with the refresh number as its Delta transaction and the ledger in it. So of
two that bring gold to the same number one wins, and the other is told by None.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill import ledger, tables
from tidemill.binding import ask
from tidemill.features import FeatureView
from tidemill.lake import Lake
from tidemill.making import make_views
from tidemill.silver import cached
from tidemill.statements import statement


def merge(
    lake: Lake,
    view: FeatureView,
    changed: DataFrame,
    counts: Mapping[str, int],
    as_of: datetime,
    told: Mapping[str, Any],
) -> int | None:
    """MERGE what changed, of which `counts` tells the rows by action, with `told` as the commit's
    ledger; yield the keys changed, None when another took the refresh number, or changed the table,
    first."""
    told = {**told, "changed": sum(counts.values())}
    text = statement("merge", view, clauses=counts.keys() or {"insert"})
    txn = (lake.app_id(tables.features(view)), int(told["refresh"]))
    with ledger.told(lake.spark, told, txn):
        try:
            rows = {f"{view.name}_changes": changed}
            merged = ask(lake.spark, text, {"as_of": as_of}, rows).collect()
        except PySparkException as error:
            if not lost_race(error):
                raise
            return None
    return told["changed"] if merged else None


def write_anew(
    lake: Lake, view: FeatureView, rows: DataFrame, told: Mapping[str, Any]
) -> int | None:
    """Write gold with the columns that the view declares now, every row, in one commit with `told`
    as its ledger; readers see the old columns until then. Yield the number of rows, None when
    another refresh took the number, or the table, first."""
    started, table = time.monotonic(), tables.features(view)
    comments = {column.name: column.comment for column in table.columns}
    named = (F.col(n).alias(n, metadata={"comment": comments[n]}) for n in table.column_names)
    with cached(rows.select(*named)) as whole:
        changed = whole.count()
        seconds = {**told["seconds"], "diff": round(time.monotonic() - started, 3)}
        told = {**told, "seconds": seconds, "changed": changed}
        writer = whole.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        writer = writer.option("userMetadata", json.dumps(told))
        writer = writer.option("txnAppId", lake.app_id(table)).option("txnVersion", told["refresh"])
        try:
            writer.saveAsTable(table.name)
        except PySparkException as error:
            if not lost_race(error):
                raise
            return None
    newest = lake.commits(table.name, 1)[0].ledger or {}
    if newest.get("refresh") != told["refresh"] or newest.get("definition") != view.definition:
        return None
    make_views(lake.spark, lake.pipeline)
    return changed


def lost_race(error: PySparkException) -> bool:
    """Tell whether another commit came first: by its condition, or as Delta's Python words it."""
    condition = error.getCondition() or ""
    return condition.startswith("DELTA_CONCURRENT") or "[DELTA_CONCURRENT" in str(error)
