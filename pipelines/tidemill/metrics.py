"""What each batch did, told from the tables' own ledgers; `tidemill_batches` is where it is kept.

Nothing is counted in the batch functions themselves (on Spark Connect they run in another process):
a batch's counts stand in its commits, and this module reads the commits that are newer than those
it has seen. The pipeline's main thread records them, outside the ticks; a crash loses nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tidemill import ledger, tables
from tidemill.failpoints import reach
from tidemill.features import FeatureView
from tidemill.lake import Lake
from tidemill.ledger import RECENT, Commit

Versions = Mapping[str, int]


@dataclass(frozen=True)
class BatchRow:
    """One row of `tidemill_batches`."""

    query: str
    generation: str
    batch: int
    committed_at: datetime
    version: int
    view: str | None = None
    as_of: datetime | None = None
    ledger: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)


def recorded(lake: Lake) -> dict[str, int]:
    """Yield, by table, the newest version that `tidemill_batches` tells of; -1 for none."""
    table, found = tables.batches().name, dict.fromkeys(_told_by(lake), -1)
    if lake.is_as_made(table):
        return found
    ours = lake.spark.table(table).where(F.col("pipeline") == lake.pipeline.pipeline)
    newest = ours.groupBy("query", "view").agg(F.max("version").alias("version")).collect()
    for row in newest:
        name = _table(lake, row["query"], row["view"])
        if name in found:
            found[name] = max(found[name], row["version"])
    return found


def _told_by(lake: Lake) -> list[str]:
    views = [tables.features(view).name for view in lake.pipeline.views]
    return [tables.bronze(lake.pipeline).name, tables.events(lake.pipeline).name, *views]


def _table(lake: Lake, query: str, view: str | None) -> str:
    by_query = {
        "land": tables.bronze(lake.pipeline).name,
        "clean": tables.events(lake.pipeline).name,
    }
    return by_query.get(query, f"{view}_features")


def since(lake: Lake, after: Versions) -> list[BatchRow]:
    """Yield what was committed after the versions given, table by table, oldest first."""
    rows = list(_land(lake, after)) + list(_clean(lake, after))
    for view in lake.pipeline.views:
        rows += _feature(lake, view, after)
    return rows


def seen(lake: Lake, rows: Sequence[BatchRow], before: Versions) -> dict[str, int]:
    """Yield the versions up to which `rows` tell, for the next call of `since`."""
    newest = dict(before)
    for row in rows:
        name = _table(lake, row.query, row.view)
        newest[name] = max(newest[name], row.version)
    return newest


def record(lake: Lake) -> Versions:
    """Append to `tidemill_batches` what the ledgers tell beyond it, in one commit; yield the
    versions up to which it tells."""
    before = recorded(lake)
    rows = since(lake, before)
    append(lake, rows)
    return seen(lake, rows, before)


def append(lake: Lake, rows: Sequence[BatchRow]) -> None:
    """Append the rows to `tidemill_batches`, in one commit; none makes no commit."""
    if rows:
        table = tables.batches()
        schema: StructType = lake.spark.table(table.name).schema
        frame = lake.spark.createDataFrame([_as_row(lake, row) for row in rows], schema)
        frame.coalesce(1).write.format("delta").mode("append").saveAsTable(table.name)
    reach("batches.recorded")


def _newer(lake: Lake, table: str, after: int) -> list[Commit]:
    """Yield the table's commits after a version, oldest first."""
    if lake.is_as_made(table):
        return []
    found = lake.commits(table)
    if len(found) == RECENT and found[-1].version > after + 1:
        found = lake.commits(table, None)
    return sorted((c for c in found if c.version > after), key=lambda c: c.version)


def _land(lake: Lake, after: Versions) -> Iterator[BatchRow]:
    name = tables.bronze(lake.pipeline).name
    for commit in _newer(lake, name, after[name]):
        if commit.operation == "STREAMING UPDATE":
            counts = {"events": commit.metric("numOutputRows")}
            batch = int(commit.parameters["epochId"])
            yield BatchRow(
                "land", lake.land_generation, batch, commit.at, commit.version, counts=counts
            )


def _clean(lake: Lake, after: Versions) -> Iterator[BatchRow]:
    name = tables.events(lake.pipeline).name
    for commit in _newer(lake, name, after[name]):
        if commit.ledger:
            told = commit.ledger
            names = ("events", "accepted", "quarantined", "duplicates")
            yield BatchRow(
                "clean",
                told["generation"],
                int(told["batch"]),
                commit.at,
                commit.version,
                counts={name: int(told[name]) for name in names},
                seconds=told["seconds"],
            )


def _feature(lake: Lake, view: FeatureView, after: Versions) -> Iterator[BatchRow]:
    """Yield a row per refresh: `feature` when it took new batches in, `refresh` when it did not."""
    bucket_table, gold = tables.buckets(view).name, tables.features(view).name
    found = [c for c in _newer(lake, gold, after[gold]) if c.ledger]
    appends = [c.ledger for c in lake.commits(bucket_table, None) if c.ledger and found]
    for commit in found:
        told: Mapping[str, Any] = commit.ledger or {}
        new = range(told["from_batch"] + 1, told["batch"] + 1)
        mine = [a for a in appends if a["generation"] == told["generation"] and a["batch"] in new]
        sums = {name: sum(int(a[name]) for a in mine) for name in ("events", "buckets")}
        merge = {"merge": commit.metric("executionTimeMs") / 1000}
        yield BatchRow(
            "feature" if mine else "refresh",
            told["generation"],
            told["batch"] if mine else told["refresh"],
            commit.at,
            commit.version,
            view.name,
            ledger.instant(told["as_of"]),
            json.dumps(told),
            {**(sums if mine else {}), "keys_changed": int(told["changed"])},
            {**told["seconds"], **merge},
        )


def _as_row(lake: Lake, row: BatchRow) -> dict[str, Any]:
    counts = ("events", "accepted", "quarantined", "duplicates", "buckets", "keys_changed")
    return {
        **{
            name: getattr(row, name) for name in ("query", "generation", "batch", "view", "version")
        },
        **{name: getattr(row, name) for name in ("committed_at", "as_of", "ledger")},
        **{name: row.counts.get(name) for name in counts},
        "pipeline": lake.pipeline.pipeline,
        "seconds": {name: float(value) for name, value in row.seconds.items()},
        "date": row.committed_at.date(),
    }
