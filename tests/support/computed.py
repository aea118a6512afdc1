"""What gold's own statements make of events, without a table."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from tidemill.features import FeatureView
from tidemill.lake.parameters import ask
from tidemill.lake.statements import statement
from tidemill.pipeline.silver import minute_buckets


def features(
    spark: SparkSession, view: FeatureView, rows: list[tuple], as_of: datetime
) -> dict[str, dict[str, Any]]:
    """What gold's own statements make of events, without a table."""
    columns = ", ".join(f"{name} {type_}" for name, type_ in view.types.items())
    order = list(view.types)
    assert order[-1] == view.event_time
    frame = spark.createDataFrame(rows, columns).coalesce(1)
    minute_buckets.buckets_of(frame, 0, view).createOrReplaceTempView(f"{view.name}_buckets")
    found = ask(spark, statement("features", view), {"as_of": as_of, "batch": 0}).collect()
    return {row[view.keys[0]]: row.asDict() for row in found}
