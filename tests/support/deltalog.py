"""What a table on disk says, by its log, its files and its change feed; not by the package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
from pyspark.sql import SparkSession


def newest(table: Path) -> int:
    """The table's newest version."""
    return max(int(path.stem) for path in (table / "_delta_log").glob("*.json"))


def ledgers(table: Path) -> list[dict[str, Any]]:
    """The ledgers of the table's commits, oldest first."""
    told = (action["commitInfo"].get("userMetadata") for action in _actions(table, "commitInfo"))
    return [json.loads(text) for text in told if text]


def by_driver(table: Path) -> bool:
    """Whether the newest commit is of the driver, by `deltalake` or its own; else it is Spark's."""
    told = [action["commitInfo"] for action in _actions(table, "commitInfo")]
    return str(told[-1]["engineInfo"]).startswith(("delta-rs", "Tidemill"))


def actions(table: Path, version: int) -> dict[str, list[dict[str, Any]]]:
    """What a commit says, by the kind of action."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in (table / "_delta_log" / f"{version:020}.json").read_text().splitlines():
        for kind, said in json.loads(line).items():
            found.setdefault(kind, []).append(said)
    return found


def change_feed(
    spark: SparkSession, table: Path, first: int = 0, last: int | None = None
) -> list[str]:
    """The rows of the table's change data feed as texts, but for when, as Spark reads them."""
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    if last is not None:
        reader = reader.option("endingVersion", last)
    rows = reader.option("startingVersion", first).load(str(table)).drop("_commit_timestamp")
    return sorted(str(row) for row in rows.collect())


def rows(table: Path) -> list[dict[str, Any]]:
    """The table's rows, without its partition columns."""
    live: dict[str, None] = {}
    for action in _actions(table, "add", "remove"):
        if "add" in action:
            live[action["add"]["path"]] = None
        else:
            live.pop(action["remove"]["path"], None)
    return [row for path in live for row in pq.read_table(table / unquote(path)).to_pylist()]


def _actions(table: Path, *kinds: str) -> Iterator[dict[str, Any]]:
    for path in sorted((table / "_delta_log").glob("*.json")):
        for line in path.read_text().splitlines():
            action = json.loads(line)
            if any(kind in action for kind in kinds):
                yield action
