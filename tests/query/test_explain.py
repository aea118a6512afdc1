"""`tidemill explain`: a value, the buckets that make it, the events behind them, who wrote it last.

20th 11:30          21st 10:00      10:30  10:31       11:00  11:01
──┼────────────────────┼──────────────┼──────┼───────────┼──────┼──
  e1 p1 view           e2 p1 view     e3 p1 view         e4 p1 select
                       (batch 0)      e5 p1 view (late)  e6 p2 view
                                      └ batch 2, with as_of as it was
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import sales
from command_line import call
from lakes import Event, Lakes, TestLake, at, payload
from runs import Small, versions
from sales import CASES, Sales
from tidemill.errors import UsageError
from tidemill.lake import catalog as registering
from tidemill.lake import lock
from tidemill.lake.relations import SparkReader
from tidemill.pipeline import batch_log
from tidemill.pipeline.steps import clean_step, feature_step
from tidemill.query.engines.folder_reader import FolderReader
from tidemill.query.explain import asked, explain

BATCHES: list[tuple[datetime, list[Event]]] = [
    (
        at("10:31:00"),
        [
            ("e1", "p1", "g", "view", at("20T11:30")),
            ("e2", "p1", "g", "view", at("10:00:59")),
            ("e3", "p1", "g", "view", at("10:30:10")),
        ],
    ),
    (
        at("11:01:05"),
        [("e4", "p1", "g", "select", at("11:00")), ("e6", "p2", "g", "view", at("11:00:30"))],
    ),
    (at("11:20"), [("e5", "p1", "g", "view", at("10:30:50"))]),
]


def step(lake: TestLake, events: Iterable[Event], ingested_at: datetime) -> None:
    """One batch through land, clean and feature, ingested then and committed two minutes later."""
    lake.batch += 1
    records = lake.bronze(map(payload, events), ingested_at)
    records.write.format("delta").mode("append").saveAsTable("engagement_bronze")
    clean_step.clean_batch(records, lake.batch, lake=lake.lake)
    accepted = lake.events().where(F.col("batch") == lake.batch)
    feature_step.feature_batch(
        accepted, lake.batch, lake=lake.lake, clock=lake.clock, follows="event"
    )
    rows = batch_log.since(lake.lake, batch_log.recorded(lake.lake))
    committed_at = ingested_at.replace(minute=ingested_at.minute + 2)
    batch_log.append(lake.lake, [replace(row, committed_at=committed_at) for row in rows])


@pytest.fixture(scope="module")
def made(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, empty_lake: Path
) -> TestLake:
    lake = Lakes(spark, tmp_path_factory.mktemp("explain"), empty_lake).new()
    for ingested_at, events in BATCHES:
        step(lake, events, ingested_at)
    return lake


@pytest.fixture
def lake(made: TestLake) -> TestLake:
    """The lake, its schema the session's current one; another test may have opened another."""
    registering.register(made.spark, made.lake.place)
    return made


def explained(
    lake: TestLake, *key: str, feature: str | None = None, at: datetime | None = None
) -> Any:
    found = explain(lake.lake, asked(lake.view, key, feature), at)
    assert json.loads(json.dumps(found)) == found
    return found


def values(found: Any) -> dict[str, Any]:
    return {feature["feature"]: feature["value"] for feature in found["features"]}


def test_a_feature_its_window_and_its_buckets(lake: TestLake) -> None:
    found = explained(lake, "p1", "g", feature="view_count_12h")
    assert found["key"] == {"profile_id": "p1", "gti": "g"}
    assert (found["as_of"], found["batch"]) == ("2026-11-21T11:01:00Z", 2)
    (feature,) = found["features"]
    assert feature["value"] == 3
    assert feature["window"] == {"start": "2026-11-20T23:01:00Z", "end": "2026-11-21T11:01:00Z"}
    assert feature["buckets"] == 3
    assert [
        (b["bucket_start"][11:16], b["batch"], b["partials"], b["windows"])
        for b in found["buckets"]
    ] == [
        ("10:30", 2, {"view_count": 1}, ["12h"]),
        ("10:30", 0, {"view_count": 1}, ["12h"]),
        ("10:00", 0, {"view_count": 1}, ["12h"]),
    ]


def test_the_events_behind_and_where_they_came_from(lake: TestLake) -> None:
    found = explained(lake, "p1", "g")
    told = ("event_id", "record_id", "topic", "partition", "offset", "batch", "late", "counts_in")
    assert [tuple(event[name] for name in told) for event in found["events"]] == [
        ("e4", "r000004", "t", 0, 4, 1, False, ["select_count"]),
        ("e5", "r000006", "t", 0, 6, 2, True, ["view_count"]),
        ("e3", "r000003", "t", 0, 3, 0, False, ["view_count"]),
        ("e2", "r000002", "t", 0, 2, 0, False, ["view_count"]),
        ("e1", "r000001", "t", 0, 1, 0, False, ["view_count"]),
    ]
    newest = explain(lake.lake, asked(lake.view, ["p1", "g"]), most=2)
    assert (newest.pop("of_events"), newest["events"]) == (5, found["events"][:2])
    assert {**newest, "events": found["events"]} == found
    e5, e1 = found["events"][1], found["events"][-1]
    assert (e5["event_timestamp"], e5["ingested_at"], e5["windows"]) == (
        "2026-11-21T10:30:50Z",
        "2026-11-21T11:20:00Z",
        ["1d", "12h", "1h"],
    )
    assert e1["windows"] == ["1d"]


def test_all_features_are_as_gold_has_them(lake: TestLake) -> None:
    found = explained(lake, "p1", "g")
    assert values(found) == lake.gold()["p1", "g"]
    assert {f["feature"]: f["buckets"] for f in found["features"] if f["buckets"]} == {
        "select_count_1d": 1,
        "view_count_1d": 4,
        "select_count_12h": 1,
        "view_count_12h": 3,
        "select_count_1h": 1,
        "view_count_1h": 2,
    }


def test_the_refresh_that_wrote_the_row(lake: TestLake) -> None:
    """Batch 2 moved no time: both rows say 11:01, the change feed tells them apart."""
    by = {p: explained(lake, p, "g")["written_by"] for p in ("p1", "p2")}
    assert {p: (told["batch"], told["as_of"]) for p, told in by.items()} == {
        "p1": (2, "2026-11-21T11:01:00Z"),
        "p2": (1, "2026-11-21T11:01:00Z"),
    }
    ledgers = {told["version"]: told["batch"] for told in lake.ledgers()}
    assert {ledgers[told["gold_version"]] for told in by.values()} == {1, 2}


def test_another_time_is_recomputed_and_nothing_written(lake: TestLake) -> None:
    root = lake.lake.place.root
    assert root
    before = versions(root)
    found = explained(lake, "p1", "g", at=at("10:31"))
    assert (found["recomputed"], found["gold_version"], found["updated_at"]) == (True, None, None)
    assert found["as_of"] == "2026-11-21T10:31:00Z"
    counts = {name: value for name, value in values(found).items() if value}
    assert counts == {"view_count_1d": 4, "view_count_12h": 3, "view_count_1h": 3}
    assert len(found["events"]) == 4  # e5 too: what is known now
    first = values(explained(lake, "p1", "g", at=at("20T11:31")))
    assert {name for name, value in first.items() if value} == {
        f"view_count_{window}" for window in ("1d", "12h", "1h")
    }
    assert versions(root) == before


def test_a_key_that_is_not_there_is_empty(lake: TestLake) -> None:
    for moment in (None, at("10:31")):
        found = explained(lake, "nobody", "g", at=moment)
        assert not found["found"]
        assert set(values(found).values()) == {0}
        assert (found["buckets"], found["events"], found["written_by"]) == ([], [], None)


@pytest.mark.parametrize("key", ["'; DROP TABLE x --", "p1' OR '1'='1", "[bold]", "", "ü🙂"])
def test_any_text_is_a_key(lake: TestLake, key: str) -> None:
    assert not explained(lake, key, "g")["found"]


@pytest.mark.parametrize(
    ("key", "feature", "message"),
    [
        (["p1"], None, "view engagement has 2 keys, found 1 values"),
        (["p1", "g", "h"], None, "view engagement has 2 keys, found 3 values"),
        (["p1", "g"], "view_count_2h", "no feature 'view_count_2h'; did you mean 'view_count_12h'"),
    ],
)
def test_what_a_view_does_not_have_is_refused(
    lake: TestLake, key: list[str], feature: str | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message[:30]) as refused:
        asked(lake.view, key, feature)
    assert message in refused.value.message


def test_times_that_cannot_be_told(lake: TestLake) -> None:
    with pytest.raises(UsageError, match="may be gone"):
        explained(lake, "p1", "g", at=datetime.fromisoformat("2025-01-01T00:00:00+00:00"))


def test_a_gold_that_was_never_refreshed(lakes: Lakes) -> None:
    found = explained(lakes.new(), "p1", "g")
    assert (found["as_of"], found["found"], found["written_by"]) == (None, False, None)
    assert found["features"][0]["window"] == {"start": None, "end": None}


# -- every aggregate -----------------------------------------------------------------------------


def test_every_aggregate_is_explained(spark: SparkSession, tmp_path: Path) -> None:
    features = [feature.over("10m", "3h") for feature, _, _ in CASES]
    shop = Sales.new(spark, tmp_path / "lake", sales.declare(features))
    drawn = random.Random(3)
    shop.feed(sales.draw(drawn, at("06:00"), 30, 60))
    gold = shop.gold()
    now = explain(shop.lake, asked(shop.view, ["c1"]))
    again = explain(shop.lake, asked(shop.view, ["c1"]), shop.as_of())
    assert json.loads(json.dumps(now)) == now
    assert [f["feature"] for f in now["features"]] == [c.name for c in shop.view.shown]
    assert not any(f["feature"].startswith("__") for f in now["features"])
    assert {f["feature"]: f["value"] for f in again["features"]} == {
        f["feature"]: f["value"] for f in now["features"]
    }
    assert values(now)["count_3h"] == gold["c1"]["count_3h"] > 0
    assert values(now)["amount_sum_3h"] == str(gold["c1"]["amount_sum_3h"])
    nothing = explain(shop.lake, asked(shop.view, ["nobody"]))
    of_spark = SparkReader(lambda: spark)
    reader = FolderReader(tmp_path / "lake", "duckdb", of_spark, print, "a test")
    of_folder = replace(shop.lake, reader=reader)
    for key, said in (("c1", now), ("nobody", nothing)):
        assert explain(of_folder, asked(shop.view, [key])) == said, "as DuckDB answers"
    empty = values(nothing)
    assert (empty["amount_sum_3h"], empty["amount_mean_3h"]) == ("0.00", None)
    assert (empty["merchant_last_k_3h"], empty["ok_bool_and_3h"]) == ([], True)


# -- the command ---------------------------------------------------------------------------------


def test_the_command_prints_text_and_json_and_takes_no_lock(small: Small) -> None:
    words = ("explain", "engagement", "p1", "g", "--root", small.root)
    with lock.hold(small.root, "another writer", 0):
        as_json = call(*words, "--json")
    assert as_json.code == 0, as_json
    assert values(as_json.json)["view_count_12h"] == 2
    assert as_json.json["events"][0]["topic"].endswith("1.jsonl")
    text = call(*words)
    assert text.code == 0
    for said in (
        "as_of 2026-11-21T11:31:00Z, buckets up to batch 0",
        "the row changed last at as_of 2026-11-21T11:31:00Z: by refresh",
        "[2026-11-20T23:31:00Z, 2026-11-21T11:31:00Z)",
        "buckets  2",
        "events  2",
    ):
        assert said in text.out


def test_the_command_says_what_is_recomputed_or_absent(small: Small) -> None:
    words = ("--root", small.root, "--feature", "view_count_1h")
    text = call("explain", "engagement", "p1", "g", *words, "--at", "2026-11-21T10:01:00Z")
    assert text.code == 0
    assert "recomputed from the buckets with what is known now; nothing was written" in text.out
    absent = call("explain", "engagement", "[nobody]", "g", *words)
    assert absent.code == 0
    assert "profile_id [nobody], gti g" in absent.out
    assert "there is nothing of this key: its features are empty" in absent.out


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("engagment", "p1", "g"), "unknown view 'engagment'; did you mean 'engagement'?"),
        (("engagement", "p1"), "has 2 keys, found 1"),
        (("engagement", "p1", "g", "--feature", "view_cuont_1h"), "did you mean 'view_count_1h'?"),
        (("engagement", "p1", "g", "--at", "2026-11-21T10:05:30Z"), "is not a whole minute"),
        (("mine", "p1", "--pipeline", "engagement"), "unknown view 'mine'"),
    ],
)
def test_the_command_refuses(small: Small, words: tuple[str, ...], found: str) -> None:
    answer = call("explain", *words, "--root", small.root, "--json")
    assert answer.code == 2
    assert found in str(answer.error["message"])
