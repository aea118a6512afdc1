"""Hour buckets: the minute buckets added up by the hour, so that long windows stay cheap.

    buckets of batches (b0, b] ──by keys and hour──► <view>_hours    {batch, buckets, number ...}

Maintenance appends them. A recompute takes them for whole hours, and minutes for the rest: the
edges of each window, and every bucket that came since b. So a late row counts at once, and no hour
is ever closed. A view has no hours until its first maintenance, and needs none.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.features import FeatureView
from tidemill.features.windows import HOUR
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger, writer
from tidemill.lake.commits.ledger import Commit
from tidemill.lake.parameters import ask
from tidemill.lake.schema import creation
from tidemill.lake.statements import statement
from tidemill.pipeline.silver import minute_buckets

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Hours:
    """What a view's hours hold at a version: every bucket up to `batch`, -1 for none, unless
    `recompute_reason` says what somebody else changed. `number` is that of the next append."""

    batch: int
    number: int
    version: int
    recompute_reason: str | None = None


def useful(view: FeatureView) -> bool:
    """Return whether hours spare minutes: where a window can hold a whole one. A lifetime reads
    what maintenance folds, in a commit of the bucket table that no hours know of."""
    return view.horizon > HOUR and view.bucket_length < HOUR and not view.has_lifetimes


def hours_state(lake: Lake, view: FeatureView, buckets: Sequence[Commit]) -> Hours:
    """Return what the hours hold, from their ledger; `buckets` are the bucket table's newest
    commits."""
    name = lake.tables.of(view).hours.name
    if not lake.has(name):
        return Hours(-1, 0, -1)
    commits = lake.commits(name)
    newest = ledger.newest_append(lake, name, lake.generation, commits)
    if newest is None or newest.ledger is None:
        return Hours(-1, 0, commits[0].version)
    fields = newest.ledger
    of_buckets = lake.tables.of(view).buckets.name
    recompute_reason = ledger.changed_by_another(
        lake, name, newest.version, commits
    ) or ledger.changed_by_another(lake, of_buckets, int(fields["buckets"]), buckets)
    return Hours(
        int(fields["batch"]), int(fields["number"]) + 1, commits[0].version, recompute_reason
    )


def usable(lake: Lake, view: FeatureView, batch: int, buckets: Sequence[Commit]) -> Hours | None:
    """Return the hours that a refresh to `batch` can read, None where there are none."""
    if not useful(view):
        return None
    hours = hours_state(lake, view, buckets)
    if hours.recompute_reason:
        log.warning("%s are not read: %s", lake.tables.of(view).hours.name, hours.recompute_reason)
    return None if hours.recompute_reason or not 0 <= hours.batch <= batch else hours


def frames(lake: Lake, view: FeatureView, hours: Hours) -> dict[str, DataFrame]:
    """Return the hours as they were found, by the name that `horizon_by_hours` reads them by: what
    maintenance does meanwhile is not seen."""
    reader = lake.spark.read.option("versionAsOf", hours.version)
    return {f"{view.name}_hour_rows": reader.table(lake.tables.of(view).hours.name)}


def bring_up(lake: Lake, view: FeatureView) -> int:
    """Append the buckets that came since the last time, by the hour, in one commit; return the rows
    appended.

    Hours that cannot be trusted, and those of another generation, are made again as a whole. Of two
    at once one wins: both carry the same number.
    """
    spark, table = lake.spark, lake.tables.of(view).hours
    buckets = minute_buckets.bucketed(lake, view)
    creation.conform(lake, table)
    hours = hours_state(lake, view, buckets.commits)
    again = bool(hours.recompute_reason) or hours.batch < 0
    before = -1 if again else hours.batch
    if buckets.batch <= before:
        return 0
    ledger_fields = {
        "generation": lake.generation,
        "batch": buckets.batch,
        "from_batch": before,
        "number": hours.number,
        "buckets": buckets.commits[0].version,
    }
    args = {"batch": buckets.batch, "batch_before": before}
    rows = ask(spark, statement("hours", view), args)
    by_day = fitting(lake, view, rows, args).repartition("bucket_day").select(*table.column_names)
    mode = "overwrite" if again else "append"
    writer.write(by_day, table.name, ledger_fields, (lake.app_id(table), hours.number), mode=mode)
    return lake.commits(table.name, 1)[0].metric("numOutputRows")


def fitting(lake: Lake, view: FeatureView, rows: DataFrame, args: Mapping[str, Any]) -> DataFrame:
    """Return the hour rows; an hour whose sum its column cannot hold as its buckets' own rows."""
    broken = minute_buckets.broken(view)
    if not broken or rows.where(broken).isEmpty():
        return rows
    at = [*view.keys, "bucket_hour"]
    of_batches = F.col("batch").between(args["batch_before"] + 1, args["batch"])
    buckets = lake.spark.table(lake.tables.of(view).buckets.name).where(of_batches)
    apart = buckets.join(rows.where(broken).select(*at), at, "left_semi").withColumns(
        {"batch": F.lit(args["batch"]), "bucket_day": F.to_date("bucket_hour")}
    )
    return rows.where(f"NOT ({broken})").unionByName(apart.select(*rows.columns))
