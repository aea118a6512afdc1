"""The changes of one refresh, read without Spark, are those that Spark reads."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import sales
from lakes import at
from sales import CASES, Sales
from tidemill.lake.commits import change_feed
from tidemill.online import changed_rows
from tidemill.online.published_view import PublishedView
from tidemill.online.row_writer import RowWriter
from tidemill.online.store_address import StoreAddress


def lake_of(spark: SparkSession, root: Path) -> Sales:
    features = [feature.over("10m") for feature, _, _ in CASES]
    return Sales.new(spark, root, sales.declare(features, when_empty="delete"))


def entries(lake: Sales, version: int, rows: pa.Table) -> set[tuple[str, bytes]]:
    """The rows as a store is given them, bytes and all."""
    state = PublishedView(
        view="sales",
        pipeline="sales",
        keys={"card": "STRING"},
        features={column.name: column.type for column in lake.view.shown},
        empty=(),
        generation="",
        table="",
        epoch=1,
        gold_version=version,
        as_of=at("09:00"),
        published_at=datetime.now(timezone.utc),
        renewed_at=datetime.now(timezone.utc),
        ttl_seconds=1,
    )
    writer = RowWriter(StoreAddress("nowhere"), state)
    found = [entry for batch in rows.to_batches() for entry in writer.entries(batch)]
    assert len(found) == rows.num_rows
    return {(entry.key, entry.packed) for entry in found}


def test_every_aggregate_is_read_as_spark_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    """New rows, others in their place, and rows that are deleted as they are empty."""
    lake, drawn = lake_of(spark, tmp_path / "lake"), random.Random(3)
    for batch in range(3):
        lake.feed(sales.draw(drawn, at(f"06:0{4 * batch}"), 4, 6))
    lake.refresh(at("06:45"))
    newest, kinds = lake.newest("features"), set()
    for version in range(newest - 3, newest + 1):
        few = changed_rows.feed_of_refresh(lake.lake, lake.view, version)
        assert few is not None
        whole = changed_rows.feed(lake.lake, lake.view, version - 1, version).toArrow()
        assert few.column_names == whole.column_names
        assert entries(lake, version, few) == entries(lake, version, whole)
        kinds.update(few["deleted"].to_pylist())
    assert kinds == {False, True}


def test_what_deltalake_does_not_read_is_left_to_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_of(spark, tmp_path / "lake")
    lake.feed(sales.draw(random.Random(4), at("06:00"), 4, 6))
    version = lake.newest("features")
    assert changed_rows.feed_of_refresh(lake.lake, lake.view, version + 7) is None
    assert changed_rows.feed_of_refresh(lake.lake, lake.view, version) is not None
    monkeypatch.setattr(change_feed, "beyond_files", lambda table: {"deletionVectors"})
    assert changed_rows.feed_of_refresh(lake.lake, lake.view, version) is None
