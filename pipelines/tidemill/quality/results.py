"""What each run of the gate found: `tidemill_quality`, one row per run and check.

The table is the gate's alone, made at its first run, and the gate holds a lock of its own while it
writes: it reads the pipeline's tables as any reader does, beside a run that goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tidemill.errors import LakeError
from tidemill.lake import catalog as lakes
from tidemill.lake import lock
from tidemill.lake.catalog import Lake
from tidemill.lake.schema import creation
from tidemill.lake.tables import Column, Table
from tidemill.quality.validation_run import Check
from tidemill.query.json_values import json_of

FOLDER = "_quality"  # in a lake's folder: the lock, and the docs where no other place is named
RUNS = 20  # that the usual number of events is told by


def table() -> Table:
    """Return the table of results; one for all pipelines of a lake."""
    return Table(
        "tidemill_quality",
        "What each run of `tidemill quality` expected and found",
        (
            Column("run", "STRING", "the run's id", False),
            Column("pipeline", "STRING", "the pipeline", False),
            Column("at", "TIMESTAMP", "when the run began", False),
            Column("table_name", "STRING", "the table, or the pipeline as a whole", False),
            Column("check_name", "STRING", "the reason or the check's name", False),
            Column("ok", "BOOLEAN", "whether it was as expected", False),
            Column("expected", "STRING", "what was expected", False),
            Column("found", "STRING", "what was found", False),
            Column("value", "DOUBLE", "the number found, of a check of one number"),
            Column("unexpected", "BIGINT", "how many rows were not as expected", False),
            Column("examples", "STRING", "keys of some of them, JSON", False),
            Column("date", "DATE", "the day of the run", False),
        ),
        ("date",),
        ("at",),
        generational=False,
    )


def earlier(lake: Lake, check: str) -> list[float]:
    """Return the numbers that the newest runs found for a check of the whole pipeline."""
    name = table().name
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
    declared = table()
    with _alone(lake, wait):
        if not lake.has(declared.name):
            creation.create(lake.spark, lake.place, lake.pipeline, declared, lake.generation)
        elif not lake.spark.catalog.tableExists(declared.name):  # another gate has just made it
            lakes.register(lake.spark, lake.place)
        schema: StructType = lake.spark.table(declared.name).schema
        rows = [_row(lake, run, at, check) for check in checks]
        frame = lake.spark.createDataFrame(rows, schema).coalesce(1)
        frame.write.format("delta").mode("append").saveAsTable(declared.name)


def folder(lake: Lake) -> Path | None:
    """Return the gate's own folder in a lake's folder; None for a catalog."""
    root = lake.place.folder
    return root and root / FOLDER


@contextmanager
def _alone(lake: Lake, wait: float) -> Iterator[None]:
    """Let one gate write at a time; a catalog needs no lock."""
    own = folder(lake)
    if own is None:
        yield
        return
    own.mkdir(exist_ok=True)
    with lock.hold(own, f"tidemill quality {lake.pipeline.pipeline}", wait) as held:
        held.name_holder()
        yield


def _refuse_other(lake: Lake) -> None:
    if difference := creation.difference(lake.spark, table()):
        raise LakeError(
            f"is not as this version makes it: {difference}",
            where=table().name,
            expected="the table of `tidemill quality`; rename or drop the other",
        )


def _row(lake: Lake, run: str, at: datetime, check: Check) -> dict[str, Any]:
    fields = {**vars(check), "examples": json_of(check.examples)}
    fields |= {"table_name": fields.pop("table"), "check_name": fields.pop("check")}
    return {**fields, "run": run, "pipeline": lake.pipeline.pipeline, "at": at, "date": at.date()}
