"""Gold merged by the driver: the same table, feed and ledger as by Spark's MERGE, and when it is
Spark's after all."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow.compute
import pyarrow.parquet
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import sales
from deltalog import by_driver, change_feed
from lakes import Event, Lakes, TestLake, at
from sales import CASES, Sales
from ticks import refresh_at, wishing
from tidemill.lake.commits import checksum, data_files, folder_merge, turns
from tidemill.operations.maintenance import maintenance
from tidemill.pipeline.row_writes import driver_merge

GOLD = "engagement_features"
START = datetime(2026, 11, 20, 8, 0, tzinfo=timezone.utc)


def view_at(text: str, profile: str = "p") -> Event:
    return (None, profile, "g", "view", at(text))


def gold_of(lake: TestLake) -> Path:
    assert lake.lake.place.folder
    return lake.lake.place.folder / GOLD


def ticked(lakes: Lakes) -> TestLake:
    lake = wishing(lakes.new(), "incremental")
    lake.feed([view_at("10:00"), view_at("10:00", "q")])
    return lake


# -- the same as Spark's -------------------------------------------------------------------------


def test_rows_feed_and_ledgers_are_those_of_sparks_merge(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = sales.declare(
        [feature.over("30m", "6h") for feature, *_ in CASES], bucket="5m"
    ).overridden({"refresh": "incremental"})
    both = [Sales.new(spark, tmp_path / name, declared) for name in ("driver", "spark")]
    draws = random.Random(5)
    batches = [
        sales.draw(draws, START + timedelta(minutes=40 * number), 40, 12) for number in range(8)
    ]
    for number, batch in enumerate(batches):
        for lake, most in zip(both, (driver_merge.MOST_VALUES, 0), strict=True):
            with monkeypatch.context() as patched:
                patched.setattr(driver_merge, "MOST_VALUES", most)
                lake.feed(batch)
        folders = [tmp_path / name / "sales_features" for name in ("driver", "spark")]
        assert [by_driver(folder) for folder in folders] == [True, False]
        ours, sparks = (commits(lake) for lake in both)
        assert ours == sparks, f"batch {number}"
        assert both[0].gold() == both[1].gold()
    first = min(int(at_version) for at_version in ours)
    feeds = [change_feed(spark, folder, first) for folder in folders]
    assert feeds[0] == feeds[1] and feeds[0]
    python = [python_feed(folder, first) for folder in folders]
    assert python[0] == python[1] and len(python[0]) == len(feeds[0])


COUNTED = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")


def commits(lake: Sales) -> dict[int, tuple[Any, ...]]:
    """The MERGEs into gold: ledgers without what differs by lake and run, and their counts."""
    found = {}
    for one in lake.lake.commits("sales_features", None):
        if one.operation == "MERGE" and one.ledger:
            own = ("seconds", "generation", "buckets")
            told = {name: value for name, value in one.ledger.items() if name not in own}
            found[one.version] = (told, *(one.metric(name) for name in COUNTED))
    return found


def python_feed(folder: Path, first: int) -> list[str]:
    import pyarrow

    rows = pyarrow.table(DeltaTable(str(folder)).load_cdf(starting_version=first))
    names = [name for name in sorted(rows.schema.names) if name != "_commit_timestamp"]
    return sorted(str([row[name] for name in names]) for row in rows.to_pylist())


def test_rows_come_change_and_go(lakes: Lakes) -> None:
    lake = ticked(lakes)
    lake.feed([view_at("10:01"), view_at("10:01", "r")])
    assert by_driver(gold_of(lake))
    assert lake.different() == 0
    lake.feed([view_at("22T10:02")])  # all that was before leaves the windows
    assert by_driver(gold_of(lake))
    assert lake.different() == 0
    assert set(lake.gold()) == {("p", "g")}


def test_spark_goes_on_with_what_the_driver_left(lakes: Lakes) -> None:
    """The number of the refresh is a transaction, and the checksum tells what Spark would count."""
    lake = ticked(lakes)
    for minute in range(1, 4):
        lake.feed([view_at(f"10:0{minute}")])
    table = DeltaTable(str(gold_of(lake)))
    told = checksum.detail(gold_of(lake) / "_delta_log", table.version())
    lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    detail = lake.spark.sql(f"DESCRIBE DETAIL {GOLD}").collect()[0]
    assert told and (told.id, told.files, told.bytes) == (
        detail["id"],
        detail["numFiles"],
        detail["sizeInBytes"],
    )
    application = lake.lake.app_id(lake.lake.tables.of(lake.view).gold)
    assert table.transaction_version(application) == lake.ledgers()[0]["refresh"]
    lake.spark.sql(f"OPTIMIZE {GOLD}").collect()
    lake.feed([view_at("10:05")])
    assert by_driver(gold_of(lake)) and lake.different() == 0
    lake.spark.sql(f"VACUUM {GOLD}").collect()
    assert lake.different() == 0


# -- what another did first ----------------------------------------------------------------------


def test_a_commit_that_came_between_is_seen(lakes: Lakes, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = ticked(lakes)
    beside(monkeypatch, lambda: lake.spark.sql(f"OPTIMIZE {GOLD} ZORDER BY (updated_at)").collect())
    lake.feed([view_at("10:01")])
    assert lake.different() == 0
    numbers = [each["refresh"] for each in lake.ledgers() if "refresh" in each]
    assert numbers == sorted({*numbers}, reverse=True), "each number once"
    assert by_driver(gold_of(lake)), "it was tried again on the newest version"


def beside(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Act once when the driver has opened gold, and before it commits."""
    opened = DeltaTable.merge
    acted: list[object] = []

    def merge(table: DeltaTable, *words: Any, **more: Any) -> Any:
        if not acted:
            acted.append(act())
        return opened(table, *words, **more)

    monkeypatch.setattr(DeltaTable, "merge", merge)


def test_a_number_that_the_table_has_is_not_merged_again(lakes: Lakes) -> None:
    lake = ticked(lakes)
    lake.feed([view_at("10:01")])
    gold, newest = lake.lake.tables.of(lake.view).gold, lake.ledgers()[0]
    number = int(newest["refresh"])
    rows = lake.table("features").withColumn("__action", F.lit("update")).toArrow()
    before = DeltaTable(str(gold_of(lake))).version()
    merged = folder_merge.merge(
        gold_of(lake),
        rows,
        lake.view.keys,
        gold.column_names,
        ["update"],
        {"refresh": number},
        (lake.lake.app_id(gold), number),
    )
    assert not merged
    assert DeltaTable(str(gold_of(lake))).version() == before


def test_who_finds_maintenance_at_gold_leaves_the_merge_to_spark(lakes: Lakes) -> None:
    lake = ticked(lakes)
    with turns.turn(gold_of(lake)):
        lake.feed([view_at("10:01")])
    assert not by_driver(gold_of(lake)) and lake.different() == 0
    lake.feed([view_at("10:02")])
    assert by_driver(gold_of(lake)) and lake.different() == 0


def test_maintenance_has_the_turn_while_it_writes(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = ticked(lakes)
    free: list[bool] = []

    def run() -> str:
        with turns.turn_if_free(gold_of(lake)) as ours:
            free.append(ours)
        return "looked"

    step = maintenance.Step(GOLD, "optimize", "a test's", run)
    maintenance.maintain(lake.lake, [step])
    assert free == [False]


# -- Spark's after all ---------------------------------------------------------------------------


def test_a_minute_without_a_change_is_sparks(lakes: Lakes) -> None:
    """`deltalake` makes no commit without a row, and a ledger needs one."""
    lake = ticked(lakes)
    done = refresh_at(lake, at("10:03"))
    assert (done.committed, done.keys_changed) == (True, 0)
    assert not by_driver(gold_of(lake))


def test_the_commit_that_a_checkpoint_follows_is_sparks(lakes: Lakes) -> None:
    lake = ticked(lakes)
    lake.spark.sql(f"ALTER TABLE {GOLD} SET TBLPROPERTIES ('delta.checkpointInterval' = '4')")
    versions = []
    for minute in range(1, 9):
        lake.feed([view_at(f"10:{minute:02}")])
        versions.append((DeltaTable(str(gold_of(lake))).version(), by_driver(gold_of(lake))))
    assert [version for version, driver in versions if not driver] == [
        version for version, _ in versions if version % 4 == 0
    ]
    kept = {p.name.split(".")[0] for p in (gold_of(lake) / "_delta_log").glob("*.checkpoint*")}
    assert {int(name) for name in kept} == {v for v, _ in versions if v % 4 == 0}
    assert lake.different() == 0


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("'delta.enableDeletionVectors' = 'true'", "deltalake does not read them"),
        ("'delta.columnMapping.mode' = 'name'", "columns have other names in the files"),
    ],
)
def test_a_table_that_asks_for_more_is_sparks(lakes: Lakes, said: str, why: str) -> None:
    lake = ticked(lakes)
    lake.spark.sql(f"ALTER TABLE {GOLD} SET TBLPROPERTIES ({said})")
    lake.feed([view_at("10:01")])
    assert not by_driver(gold_of(lake)), why
    assert lake.different() == 0


def test_what_the_driver_does_not_take(lakes: Lakes) -> None:
    lake = ticked(lakes)
    folder, plain_types = gold_of(lake), {"a": "BIGINT", "b_1": "DECIMAL(38, 2)"}
    assert folder_merge.suits(folder, plain_types, 1 << 20)
    assert not folder_merge.suits(folder, plain_types, 10), "too large"
    assert folder_merge.suits(folder, {"a": "ARRAY<STRUCT<item: STRING>>"}, 1 << 20)
    assert not folder_merge.suits(folder, {"a": "MAP<STRING, INT>"}, 1 << 20)
    assert not folder_merge.suits(folder, {"Count": "BIGINT"}, 1 << 20)
    assert not folder_merge.suits(Path("/a%20b"), plain_types, 1 << 20), "another folder's name"
    (folder / "_delta_log" / f"{DeltaTable(str(folder)).version():020}.crc").unlink()
    assert not folder_merge.suits(folder, plain_types, 1 << 20), "nobody knows how large it is"
    lake.feed([view_at("10:01")])
    lake.feed([view_at("10:02")])
    assert by_driver(folder) and lake.different() == 0, "Spark's commit has a checksum again"


def test_where_the_driver_fails_spark_merges(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lake = ticked(lakes)

    def full(merger: object) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("deltalake.table.TableMerger.execute", full)
        lake.feed([view_at("10:01")])
    merger = driver_merge.__name__
    said = [record.getMessage() for record in caplog.records if record.name == merger]
    assert len(said) == 1 and said[0].startswith("engagement_features: ")
    assert "No space left on device" in said[0] and said[0].endswith("Spark merges instead")
    assert not by_driver(gold_of(lake)) and lake.different() == 0
    lake.feed([view_at("10:02")])
    assert by_driver(gold_of(lake)) and lake.different() == 0


def test_a_checksum_that_cannot_be_written_leaves_the_next_merge_to_spark(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = ticked(lakes)

    def full(log: Path, version: int) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(checksum, "follow", full)
        lake.feed([view_at("10:01")])
    assert by_driver(gold_of(lake)) and lake.different() == 0
    lake.feed([view_at("10:02")])
    assert not by_driver(gold_of(lake)) and lake.different() == 0


def test_another_deltalake_than_the_one_compared_does_not_merge(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = ticked(lakes)
    monkeypatch.setattr("deltalake.__version__", "1.6.6")
    lake.feed([view_at("10:01")])
    assert not by_driver(gold_of(lake)) and lake.different() == 0


def test_arrow_and_deltalake_filter_what_the_driver_wrote(lakes: Lakes) -> None:
    """A string is written as a string: pyarrow cannot compare a view of one."""
    lake = ticked(lakes)
    lake.feed([view_at("10:01")])
    assert by_driver(gold_of(lake))
    rows = data_files.rows(DeltaTable(str(gold_of(lake))), gold_of(lake))
    of_p = pyarrow.compute.field("profile_id") == "p"
    assert rows.to_table(filter=of_p)["profile_id"].to_pylist() == ["p"]
    for file in gold_of(lake).rglob("*.parquet"):
        if "_delta_log" not in file.parts:
            kinds = {str(kind) for kind in pyarrow.parquet.read_schema(file).types}
            assert not any("view" in kind for kind in kinds), file.name


def test_many_values_are_sparks_and_a_filter_counts_as_a_thousand(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_merge, "MOST_VALUES", 1_500)
    features = [sales.count().over("1h"), sales.bloom("merchant", capacity=50).over("1h")]
    lake = Sales.new(spark, tmp_path / "lake", sales.declare(features))
    draws, gold = random.Random(1), tmp_path / "lake" / "sales_features"
    rows = [sales.draw(draws, START, 1, 12) for _ in range(2)]
    lake.feed([sale for sale in rows[0] if sale.card == "c0"])
    assert by_driver(gold)
    lake.feed(rows[1])
    assert not by_driver(gold), "three keys"
    assert sorted(lake.gold()) == ["c0", "c1", "c2"]
