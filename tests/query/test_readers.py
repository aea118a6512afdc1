"""Gold is read without Spark, by deltalake and by DuckDB, after MERGEs and after upkeep.

What a reader must understand of a table is its protocol: a feature that others cannot read, once
switched on, changes it and fails here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakes import NOW, Lakes, TestLake, at, payload
from oracle import COLUMNS
from tidemill.config.settings import Clock
from tidemill.lake import catalog as lakes
from tidemill.operations import maintenance
from tidemill.operations.maintenance import compaction
from tidemill.query.engines import folder_tables

GOLD = "engagement_features"
BATCHES = (
    [("e1", "p1", "g", "view", at("10:00")), ("e2", "p2", "g", "select", at("10:01"))],
    [("e3", "p1", "g", "view", at("10:30")), ("e4", "p3", "h", "highlight", at("10:59"))],
    [("e5", "p2", "h", "view", at("11:45")), ("e6", "p1", "g", "view", at("20T22:00"))],
)
# Plain Parquet and a log: what every Delta reader since 2019 can read.
READER_VERSION = 1
WRITER_FEATURES = {"appendOnly", "invariants", "changeDataFeed"}


@pytest.fixture(scope="module")
def lake(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, empty_lake: Path
) -> Iterator[TestLake]:
    """Three batches: keys that are new, that change, and whose windows run empty."""
    made = Lakes(spark, tmp_path_factory.mktemp("readers"), empty_lake).new()
    for events in BATCHES:
        made.step([payload(event) for event in events])
    yield made


def by_spark(lake: TestLake) -> list[tuple]:
    lakes.register(lake.spark, lake.lake.place)
    gold = lake.spark.table(GOLD).withColumn("updated_at", F.unix_seconds("updated_at"))
    return sorted(tuple(row) for row in gold.collect())


def by_deltalake(lake: TestLake, version: int | None = None) -> list[tuple]:
    rows = DeltaTable(path(lake), version=version).to_pyarrow_table().to_pylist()
    return sorted((*list(row.values())[:-1], int(row["updated_at"].timestamp())) for row in rows)


def by_duckdb(lake: TestLake) -> list[tuple]:
    asked = f"SELECT * REPLACE (epoch(updated_at)::BIGINT AS updated_at) FROM {GOLD} ORDER BY ALL"
    return folder_tables.connect(lake.lake, GOLD).execute(asked).fetchall()


def path(lake: TestLake, table: str = GOLD) -> str:
    return str(lake.lake.place.root / table)


def test_gold_after_merges(lake: TestLake) -> None:
    rows = by_spark(lake)
    assert [row[:2] for row in rows] == [("p1", "g"), ("p2", "g"), ("p2", "h"), ("p3", "h")]
    assert rows == by_deltalake(lake) == by_duckdb(lake)
    gold = DeltaTable(path(lake)).to_pyarrow_table()
    assert gold.schema.names == ["profile_id", "gti", *COLUMNS, "updated_at"]
    assert gold.schema.field("updated_at").type == pa.timestamp("us", tz="UTC")
    assert all(gold.schema.field(name).type == pa.int64() for name in COLUMNS)


def test_an_older_version_and_the_change_feed(lake: TestLake) -> None:
    first = lake.gold(1)
    assert {row[:2] for row in by_deltalake(lake, 1)} == set(first)
    feed = pa.table(folder_tables.changes(lake.lake, GOLD, 1)).to_pylist()
    changed = {row["version"]: row["changed"] for row in lake.ledgers()}
    for version, count in changed.items():
        mine = [row for row in feed if row["_commit_version"] == version]
        assert sum(row["_change_type"] != "update_preimage" for row in mine) == count


def test_gold_after_upkeep(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "UNPARTITIONED_FILES", 0)
    lakes.register(lake.spark, lake.lake.place)
    before, version = by_spark(lake), DeltaTable(path(lake)).version()
    done = maintenance.maintain(lake.lake, maintenance.plan(lake.lake, Clock(NOW)))
    assert {("hours", "engagement_hours"), ("optimize", GOLD)} <= {
        (d.action, d.table) for d in done
    }
    assert DeltaTable(path(lake)).version() > version
    assert before == by_spark(lake) == by_deltalake(lake) == by_duckdb(lake)
    lake.step([payload(("e7", "p1", "h", "view", at("11:50")))])  # a MERGE over optimized files
    assert before != by_spark(lake) == by_deltalake(lake) == by_duckdb(lake)
    check_protocols(lake)


def check_protocols(lake: TestLake) -> None:
    """Every table asks no more of a reader than the first version of Delta's protocol."""
    for log in sorted(Path(path(lake, "")).glob("*/_delta_log")):
        found = DeltaTable(str(log.parent)).protocol()
        assert found.min_reader_version == READER_VERSION, (log.parent.name, found)
        assert not found.reader_features, (log.parent.name, found)
        assert set(found.writer_features or ()) <= WRITER_FEATURES, (log.parent.name, found)


def test_every_table_is_known_to_duckdb(lake: TestLake) -> None:
    names = ("engagement_events", "engagement_buckets", "tidemill_batches")
    files = folder_tables.connect(lake.lake, *names)
    lakes.register(lake.spark, lake.lake.place)
    for name in names:
        assert files.execute(f"SELECT count(*) FROM {name}").fetchone() == (
            lake.spark.table(name).count(),
        )
