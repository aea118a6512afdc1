"""`tidemill describe`: a view's features and tables, how fresh gold is, what the ledgers say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from command_line import call
from lakes import Lakes
from runs import Small
from tidemill.config.settings import Clock
from tidemill.lake import lock
from tidemill.query.describe import describe


@pytest.fixture(scope="module")
def found(small: Small) -> Any:
    with lock.hold(small.root, "another writer", 0):
        answer = call("describe", "engagement", "--root", small.root, "--json")
    assert answer.code == 0, answer
    return answer.json


def test_a_view_and_how_fresh_it_is(found: Any) -> None:
    assert (found["view"], found["pipeline"]) == ("engagement", "engagement")
    assert found["keys"] == ["profile_id", "gti"]
    assert (found["as_of"], found["age_seconds"]) == ("2026-11-21T11:31:00Z", 29 * 60)


def test_its_features(found: Any) -> None:
    assert len(found["features"]) == 9
    assert found["features"][0] == {
        "feature": "select_count_1d",
        "type": "BIGINT",
        "window": "[as_of - 1d, as_of)",
        "what": "count of events where event_type = 'select'",
        "empty": "0",
        "edge": "1m",
    }


def test_its_tables(found: Any, small: Small) -> None:
    rows = {table["table"]: table["rows"] for table in found["tables"]}
    assert list(rows) == [
        "engagement_bronze",
        "engagement_quarantine",
        "engagement_events",
        "engagement_buckets",
        "engagement_features",
        "tidemill_batches",
    ]
    assert rows["engagement_bronze"] == len(small.records) == 8
    assert (rows["engagement_quarantine"], rows["engagement_events"]) == (2, 5)
    assert (rows["engagement_buckets"], rows["engagement_features"]) == (5, 3)
    for table in found["tables"]:
        files = list((small.root / table["table"]).rglob("*.parquet"))
        live = [path for path in files if "_delta_log" not in path.parts]
        assert table["files"] <= len(live)
        assert table["bytes"] <= sum(path.stat().st_size for path in live)
        assert table["files"] > 0 < table["bytes"]


def test_the_newest_ledgers(found: Any) -> None:
    newest = {table["table"]: table["newest"] for table in found["tables"]}
    gold = newest["engagement_features"]
    assert (gold["version"], gold["operation"]) == (found["gold_version"], "MERGE")
    assert (gold["ledger"]["batch"], gold["ledger"]["as_of"]) == (0, "2026-11-21T11:31:00Z")
    assert newest["engagement_buckets"]["ledger"]["newest"] == "2026-11-21T11:30:00Z"
    assert newest["engagement_bronze"]["ledger"] is None
    assert newest["engagement_bronze"]["operation"] == "STREAMING UPDATE"


def test_the_text(small: Small) -> None:
    answer = call("describe", "engagement", "--root", small.root)
    assert answer.code == 0
    for said in (
        "engagement  of pipeline engagement, by profile_id, gti; buckets of 1m",
        "as_of 2026-11-21T11:31:00Z, 1,740 s ago",
        "[as_of - 12h, as_of)",
        "off by one bucket at worst, 1m",
        "MERGE, refresh",
    ):
        assert said in answer.out


def test_a_lake_with_nothing_in_it(lakes: Lakes) -> None:
    lake = lakes.new()
    found = describe(lake.lake, lake.view, Clock())
    assert json.loads(json.dumps(found)) == found
    assert (found["as_of"], found["age_seconds"]) == (None, None)
    assert {table["rows"] for table in found["tables"]} == {0}


def test_an_unknown_view_and_a_root_that_is_no_lake(tmp_path: Path, spark: SparkSession) -> None:
    unknown = call("describe", "engagment", "--root", tmp_path, "--json")
    assert unknown.code == 2
    assert "did you mean 'engagement'?" in str(unknown.error["message"])
    absent = call("describe", "engagement", "--root", tmp_path / "absent", "--json")
    assert (absent.code, absent.error["message"]) == (2, "does not exist")
