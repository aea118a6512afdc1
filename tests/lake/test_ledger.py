"""The log of a folder read from its files says what DESCRIBE HISTORY says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from lakes import NOW, Lakes, at
from tidemill.lake.commits import ledger, writer
from tidemill.lake.commits.ledger import Commit


def test_a_folder_and_a_query_say_the_same(lakes: Lakes) -> None:
    lake = lakes.new()
    for minute in range(3):
        lake.feed([(None, "p", "g", "view", at(f"10:0{minute}"))])
    lake.spark.sql("OPTIMIZE engagement_buckets").collect()
    lake.spark.sql("DELETE FROM engagement_buckets WHERE bucket_start < '2026-11-21 10:01'")
    for name in ("buckets", "features", "bronze"):
        table = f"engagement_{name}"
        for limit in (None, 2, 20):
            read = lake.lake.commits(table, limit)
            assert timeless(read) == timeless(ledger.commits(lake.spark, table, limit)), table
    newest, delete = lake.lake.commits("engagement_buckets", 2), "DELETE"
    assert newest[0].operation == delete and newest[0].moves_data and not newest[0].ledger


def timeless(commits: Sequence[Commit]) -> list[Commit]:
    return [replace(commit, at=NOW) for commit in commits]


def test_a_log_with_a_checkpoint_and_without_its_first_commits(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, log = tmp_path / "table", tmp_path / "table" / "_delta_log"
    assert ledger.newest_version(log) == -1
    for batch in range(12):
        told = {"generation": "g", "batch": batch}
        with writer.carrying(spark, told):
            spark.range(1).coalesce(1).write.format("delta").mode("append").save(str(table))
    assert (log / "_last_checkpoint").exists()
    for version in range(4):
        (log / f"{version:020}.json").unlink()
    assert [c.version for c in ledger.of_log(log, None)] == list(range(11, 3, -1))
    assert [c.ledger and c.ledger["batch"] for c in ledger.of_log(log, 2)] == [11, 10]
    (log / "_last_checkpoint").unlink()
    assert ledger.newest_version(log) == 11
