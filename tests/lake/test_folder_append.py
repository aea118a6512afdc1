"""Few rows appended by the driver: rows, files, feed and log as by Spark, once, or not at all."""

from __future__ import annotations

import json
import os
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from deltalog import actions, by_driver, change_feed
from lakes import Lakes, TestLake, at
from tidemill.lake import append as lake_append
from tidemill.lake.append import append, digest
from tidemill.lake.commits import checksum, folder_append, ledger
from tidemill.lake.tables.table import Table

TIMES = (at("09:10:00.123456"), at("09:59:59.999999"), at("10:00"), at("21T00:00"))


def events(lake: TestLake, batch: int, times: tuple[datetime, ...] = TIMES) -> DataFrame:
    """Rows of the events table, of which every other one has no id."""
    rows = [
        (f"r{batch}-{n}", None if n % 2 else "e", "pröfile", "g", "view", time, time, batch)
        for n, time in enumerate(times)
    ]
    types = {column.name: column.type for column in lake.lake.tables.events.columns}
    names = [name for name in types if name != "event_hour"]
    made = lake.spark.createDataFrame(rows, ", ".join(f"{name} {types[name]}" for name in names))
    return made.withColumn("event_hour", F.date_trunc("hour", "event_timestamp"))


def bring(
    lake: TestLake, batch: int, rows: DataFrame | None = None, table: Table | None = None
) -> bool:
    """Append a batch of events, or of another table's rows; return whether this call wrote it."""
    table = table or lake.lake.tables.events
    rows = events(lake, batch) if rows is None else rows
    told = {"accepted": rows.count(), "digest": rows.agg(digest(table)).collect()[0][0]}
    newest = ledger.newest_append(lake.lake, table.name, lake.lake.generation)
    return append(lake.lake, table, rows, batch, told, newest).written


@pytest.fixture
def lake(lakes: Lakes) -> TestLake:
    return lakes.new()


def folder_of(lake: TestLake) -> Path:
    assert lake.lake.place.folder
    return lake.lake.place.folder / lake.lake.tables.events.name


def test_a_commit_is_what_sparks_is(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, table = folder_of(lake), lake.lake.tables.events
    feed = "SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    lake.spark.sql(f"ALTER TABLE {table.name} {feed}")
    bring(lake, 0)
    assert by_driver(folder)
    monkeypatch.setattr(lake_append, "MOST_VALUES", 0)
    bring(lake, 1, events(lake, 1).coalesce(1))
    assert not by_driver(folder)
    monkeypatch.undo()
    bring(lake, 2)
    assert by_driver(folder)

    ours, sparks, later = (commit(folder, version) for version in (2, 3, 4))
    assert ours == sparks == later and len(ours["files"]) == 3
    rows = lake.events().drop("record_id", "batch")
    assert rows.count() == 12 and rows.distinct().count() == 4
    feeds = [change_feed(lake.spark, folder, version, version) for version in (2, 3, 4)]
    for batch, each in enumerate(feeds):
        assert each == [text.replace("r0-", f"r{batch}-") for text in moved(feeds[0], batch)]
        assert len(each) == len(TIMES)
    opened = DeltaTable(str(folder))
    assert opened.transaction_version(lake.lake.app_id(table)) == 2
    assert opened.to_pyarrow_table().num_rows == 12


def moved(feed: list[str], batch: int) -> list[str]:
    """The feed of the first batch as that of another, which is a version for each later."""
    changed = (text.replace("batch=0", f"batch={batch}") for text in feed)
    return [text.replace("version=2", f"version={batch + 2}") for text in changed]


def commit(folder: Path, version: int, first: int = 2) -> dict[str, Any]:
    """What a commit says, without what every commit has of its own; batch 0 is version `first`."""
    told = actions(folder, version)
    info, txn = told["commitInfo"][0], told["txn"][0]
    own = ("timestamp", "txnId", "engineInfo", "readVersion", "userMetadata")
    metrics = {k: v for k, v in info["operationMetrics"].items() if k != "numOutputBytes"}
    return {
        "info": {k: v for k, v in info.items() if k not in own} | {"operationMetrics": metrics},
        "ledger": json.loads(info["userMetadata"]).keys(),
        "txn": txn["appId"],
        "one batch": txn["version"] == json.loads(info["userMetadata"])["batch"] == version - first,
        "files": sorted(
            (
                file["path"].rpartition("/")[0],
                file["partitionValues"],
                without_batch(json.loads(file["stats"])),
                file["dataChange"],
            )
            for file in told["add"]
        ),
    }


def without_batch(stats: dict[str, Any]) -> str:
    for ends in ("minValues", "maxValues"):
        stats[ends].pop("batch")
    return json.dumps(stats, sort_keys=True)


def test_rows_of_a_date_with_lists(lake: TestLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The quarantine, of which each batch has some."""
    assert lake.lake.place.folder
    table = lake.lake.tables.quarantine
    folder = lake.lake.place.folder / table.name
    types = ", ".join(f"`{column.name}` {column.type}" for column in table.columns)

    def refused(batch: int) -> DataFrame:
        rows = [
            ("a", "{", "t", 0, 7, None, TIMES[0], ["no_json"], batch, date(2026, 11, 20)),
            ("b", None, "t", None, None, TIMES[1], TIMES[1], ["x", "y"], batch, date(2026, 11, 21)),
            ("c", "", None, 1, 2, None, TIMES[2], [], batch, date(2026, 11, 21)),
        ]
        return lake.spark.createDataFrame(rows, types)

    bring(lake, 0, refused(0), table)
    assert by_driver(folder)
    monkeypatch.setattr(lake_append, "MOST_VALUES", 0)
    bring(lake, 1, refused(1).coalesce(1), table)
    assert not by_driver(folder)
    assert commit(folder, 1, 1) == commit(folder, 2, 1)
    stored = lake.spark.table(table.name).where("array_contains(reasons, 'y') OR `offset` = 2")
    assert sorted(row["record_id"] for row in stored.collect()) == ["b", "b", "c", "c"]
    assert stored.drop("batch").distinct().count() == 2
    days = lake.spark.table(table.name).where("ingest_date = DATE '2026-11-20'")
    assert len(days.inputFiles()) == 2 == days.count()


def test_spark_reads_maintains_and_skips_what_the_driver_wrote(lake: TestLake) -> None:
    folder = folder_of(lake)
    for batch in range(3):
        bring(lake, batch)
    log, name = folder / "_delta_log", lake.lake.tables.events.name
    lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    told, detail = checksum.detail(log, 3), lake.spark.sql(f"DESCRIBE DETAIL {name}").collect()[0]
    assert told and (told.files, told.bytes) == (detail["numFiles"], detail["sizeInBytes"]) != 0
    late = lake.events().where(F.col("event_timestamp") > F.lit(at("09:59:59.9999")))
    assert len(late.inputFiles()) == 6 == late.count()
    (merged,) = lake.spark.sql(f"OPTIMIZE {name}").select("metrics.*").collect()
    assert (merged["numFilesRemoved"], merged["numFilesAdded"]) == (9, 3)
    bring(lake, 3)
    assert by_driver(folder) and lake.events().count() == 16


def test_a_batch_is_there_once(lake: TestLake) -> None:
    assert bring(lake, 0) and not bring(lake, 0)
    table, rows = lake.lake.tables.events, events(lake, 0)
    seen = (lake.lake.app_id(table), 0)
    at_hand = rows.select(*table.column_names).toArrow()
    assert not folder_append.append(folder_of(lake), at_hand, "event_hour", {}, seen)
    assert lake.events().count() == len(TIMES)


@pytest.mark.parametrize("error", [FileExistsError, PermissionError])
def test_spark_writes_where_the_driver_could_not(
    lake: TestLake, monkeypatch: pytest.MonkeyPatch, error: type[OSError]
) -> None:
    """Another commit came first, or the disk takes no link."""

    def refused(*_: object) -> None:
        raise error("a test's")

    bring(lake, 0)
    monkeypatch.setattr(os, "link", refused)
    assert bring(lake, 1) and not by_driver(folder_of(lake))
    monkeypatch.undo()
    assert bring(lake, 2) and by_driver(folder_of(lake))
    assert lake.events().count() == 3 * len(TIMES)
    assert not [*(folder_of(lake) / "_delta_log").glob(".*.new")]


def test_a_null_where_the_table_takes_none_is_refused(lake: TestLake) -> None:
    rows = events(lake, 0).withColumn("record_id", F.lit(None).cast("string"))
    with pytest.raises(Exception, match=r"NOT NULL"):
        bring(lake, 0, rows)
    assert lake.events().count() == 0 and ledger.newest_version(folder_of(lake) / "_delta_log") == 0


def test_the_commit_that_a_checkpoint_follows_is_sparks(lake: TestLake) -> None:
    name = lake.lake.tables.events.name
    lake.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.checkpointInterval' = '3')")
    by = []
    for batch in range(5):
        bring(lake, batch)
        by.append(by_driver(folder_of(lake)))
    assert by == [True, False, True, True, False]  # versions 2 to 6


def test_a_number_is_as_wide_as_its_column(lake: TestLake) -> None:
    """As buckets have their batch; what else is of another type is Spark's to cast."""
    rows = events(lake, 0).withColumn("batch", F.col("batch").cast("int"))
    assert bring(lake, 0, rows) and by_driver(folder_of(lake))
    rows = events(lake, 1).withColumn("gti", F.lit(7))
    assert bring(lake, 1, rows) and not by_driver(folder_of(lake))
    stored = {(row["batch"], row["gti"]) for row in lake.events().collect()}
    assert stored == {(0, "g"), (1, "7")}
