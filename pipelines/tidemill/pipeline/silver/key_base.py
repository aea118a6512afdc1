"""The base of each key: one bucket row that stands for all that are older than the history.

    buckets before an hour, an earlier base ──by keys──► one row at BEGINNING    (by maintenance)

Only a lifetime holds it. What arrives later for a time before that hour is a bucket row of its own,
as any other: it counts at once, and the next folding takes it into the base.
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame

from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.parameters import ask
from tidemill.lake.statements import statement
from tidemill.lake.times import at
from tidemill.pipeline.silver import minute_buckets


def rows(lake: Lake, view: FeatureView, before: datetime) -> DataFrame:
    """Return what replaces the bucket rows before an hour; those of a key with a sum that its
    column cannot hold stay as they are."""
    folded = ask(lake.spark, statement("base", view), {"before": before})
    broken = minute_buckets.broken(view)
    if not broken or folded.where(broken).isEmpty():
        return folded
    buckets = lake.spark.table(lake.tables.of(view).buckets.name)
    old = buckets.where(buckets.bucket_hour < at(before))
    apart = old.join(folded.where(broken).select(*view.keys), [*view.keys], "left_semi")
    return folded.where(f"NOT ({broken})").unionByName(apart.select(*folded.columns))
