"""Opening a lake: what it makes, and what it refuses to mix."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakes import Lakes, at
from tidemill.config.pipeline_file import load
from tidemill.config.settings import Place
from tidemill.errors import LakeError
from tidemill.lake import catalog as lakes_module
from tidemill.lake import tables
from tidemill.lake.open import open_for_reading

pytestmark = pytest.mark.connect


def test_tables_are_as_the_contract_names_them(lakes: Lakes) -> None:
    lake = lakes.new()
    columns = {
        name: [f"{field.name} {field.dataType.simpleString()}" for field in lake.table(name).schema]
        for name in ("quarantine", "buckets")
    }
    assert columns["buckets"] == [
        "profile_id string",
        "gti string",
        "bucket_start timestamp",
        "batch bigint",
        "select_count bigint",
        "highlight_count bigint",
        "view_count bigint",
        "bucket_hour timestamp",
    ]
    assert columns["quarantine"][-3:] == [
        "reasons array<string>",
        "batch bigint",
        "ingest_date date",
    ]
    detail = lake.spark.sql("DESCRIBE DETAIL engagement_features").collect()[0]
    assert detail["properties"]["delta.logRetentionDuration"] == "interval 90 days"
    assert detail["location"].endswith("/engagement_features")
    fields = lake.table("features").schema
    assert [field.name for field in fields] == [
        "profile_id",
        "gti",
        *(
            f"{kind}_count_{w}"
            for w in ("1d", "12h", "1h")
            for kind in ("select", "highlight", "view")
        ),
        "updated_at",
    ]
    assert all("comment" in field.metadata for field in fields), "every column says what it is"


def test_counts_and_keys_cannot_be_null(lakes: Lakes) -> None:
    lake = lakes.new()
    with pytest.raises(Exception, match="NOT NULL"):
        lake.spark.sql(
            "INSERT INTO engagement_buckets VALUES "
            "('p', 'g', TIMESTAMP'2026-11-21', 1, 1, NULL, 1, TIMESTAMP'2026-11-21')"
        )


def test_a_lake_of_another_format_is_refused(lakes: Lakes) -> None:
    lakes.new()
    root = lakes.made[0]
    (root / lakes_module.MARKER).write_text(json.dumps({"format": "9"}))
    with pytest.raises(LakeError, match="format 9"):
        lakes.open(root)


def test_other_bucket_columns_are_refused_with_the_difference(lakes: Lakes) -> None:
    lakes.new().feed([("a", "p", "g", "view", at("10:00"))])
    declared = lakes.declared()
    count = {"count": {"by": {"event_type": ["select", "click"]}}, "over": ["1h"]}
    with pytest.raises(LakeError) as caught:
        lakes.open(lakes.made[0], views=[{**declared, "features": [count]}])
    assert caught.value.where == "view engagement"
    assert "the buckets hold nothing for click_count" in caught.value.message
    assert "tidemill rebuild engagement --features count" in str(caught.value)


def test_tables_of_another_pipeline_are_refused(lakes: Lakes) -> None:
    lakes.new()
    with pytest.raises(LakeError, match="belongs to pipeline 'engagement'"):
        lakes.open(lakes.made[0], pipeline="other")


def test_readers_make_nothing(spark: SparkSession, tmp_path: Path, lakes: Lakes) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(LakeError, match="is no lake"):
        open_for_reading(spark, Place(empty), load("engagement"))
    assert list(empty.iterdir()) == []


def test_a_catalog_lake_names_its_tables_plainly() -> None:
    place = Place.resolve(catalog="main", schema="features")
    assert str(place) == "main.features"
    assert lakes_module.checkpoint_root(place) == Path("/Volumes/main/features/checkpoints")
    assert [table.name for table in tables.of(load("engagement")).required] == [
        "engagement_bronze",
        "engagement_quarantine",
        "engagement_events",
        "engagement_buckets",
        "engagement_features",
        "tidemill_batches",
    ]
