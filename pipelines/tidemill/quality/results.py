"""What each run of the gate found: `tidemill_quality`, one row per run and check.

The table is the gate's alone, made at its first run, and the gate holds a lock of its own while it
writes: it reads the pipeline's tables as any reader does, beside a run that goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tidemill.errors import LakeError
from tidemill.lake import lock
from tidemill.lake.catalog import Lake
from tidemill.lake.schema import creation, verification
from tidemill.quality.validation_run import Check
from tidemill.query.json_values import json_of

RUNS = 20  # that the usual number of events is told by


def earlier(lake: Lake, check: str) -> list[float]:
    """Return the numbers that the newest runs found for a check of the whole pipeline."""
    name = lake.tables.quality.name
    if not lake.spark.catalog.tableExists(name):
        return []
    _refuse_other(lake)
    rows = lake.spark.table(name).where(
        (F.col("pipeline") == lake.pipeline.pipeline)
        & (F.col("check_name") == check)
        & F.col("value").isNotNull()
    )
    newest = rows.orderBy(F.col("at").desc()).limit(RUNS).select("value").collect()
    return [row["value"] for row in newest]


def store(lake: Lake, run: str, at: datetime, checks: Sequence[Check], wait: float) -> None:
    """Append what a run found, in one commit."""
    declared = lake.tables.quality
    with lock.hold_apart(lake.place, lock.GATE, f"tidemill quality {lake.pipeline.pipeline}", wait):
        creation.ensure(lake, declared)
        schema: StructType = lake.spark.table(declared.name).schema
        rows = [_row(lake, run, at, check) for check in checks]
        frame = lake.spark.createDataFrame(rows, schema).coalesce(1)
        frame.write.format("delta").mode("append").saveAsTable(declared.name)


def _refuse_other(lake: Lake) -> None:
    if difference := verification.difference(lake, lake.tables.quality):
        raise LakeError(
            f"is not as this version makes it: {difference}",
            where=lake.tables.quality.name,
            expected="the table of `tidemill quality`; rename or drop the other",
        )


def _row(lake: Lake, run: str, at: datetime, check: Check) -> dict[str, Any]:
    fields = {**vars(check), "examples": json_of(check.examples)}
    fields |= {"table_name": fields.pop("table"), "check_name": fields.pop("check")}
    return {**fields, "run": run, "pipeline": lake.pipeline.pipeline, "at": at, "date": at.date()}
