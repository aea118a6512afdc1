"""The incremental refresh: the same gold as a recompute, from the rows that moved alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from pyspark.sql import SparkSession

from counting import counted
from lakes import Event, Lakes, TestLake, at
from spending import SPENT, Spending, brute, feed_rows, feed_spending, spent
from ticks import refresh_at, wishing
from tidemill.lake.commits import ledger
from tidemill.lake.session.temporary_conf import temporary_conf
from tidemill.pipeline.gold import merge as merging
from tidemill.pipeline.gold import overflow, strategy
from tidemill.pipeline.gold.changes import moved_keys

MINUTE = timedelta(minutes=1)
COMMIT_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


def view_at(text: str, profile: str = "p") -> Event:
    return (None, profile, "g", "view", at(text))


def told(lake: TestLake) -> dict:
    return lake.ledgers()[0]


def test_a_tick_reads_what_moved_and_not_the_windows(lakes: Lakes) -> None:
    #   an hour in every file, 25 hours; then one minute on: new 1, entering 1, leaving 3
    lake = wishing(lakes.new(), "incremental")
    hours = [at("20T09:30") + timedelta(hours=hour) for hour in range(25)]
    lake.feed([(None, "p", "g", "view", hour) for hour in hours])
    lake.feed([view_at("10:00")])
    there = lake.lake.gold_state(lake.view)
    lake.feed([view_at("10:01")])
    assert told(lake)["mode"] == "incremental"
    read = files(moved_keys(lake.lake, lake.view, there, at("10:02"), lake.batch))
    assert len(files(lake.table("buckets"))) == 27
    assert len(read) <= 3, "the new row's, and none of the hours without a window's end"
    assert lake.different() == 0


def files(frame) -> list[str]:
    return [name for name in frame.inputFiles() if "engagement_buckets" in name]


def test_a_warm_tick_is_counted(lakes: Lakes) -> None:
    """As a session of two cores runs it: decision 0054 says what each count is for."""
    lake = wishing(lakes.new(), "incremental")
    as_shipped = {**COMPILED, "spark.sql.shuffle.partitions": "2"}
    with temporary_conf(lake.spark, as_shipped):
        for minute in range(4):  # the first is a recompute
            lake.feed(profiles_at(f"10:0{minute}"))
        before = newest_versions(lake)
        counts = counted(lake.spark, lambda: lake.feed(profiles_at("10:04")))
    assert told(lake)["mode"] == "incremental"
    assert newest_versions(lake) == [version + 1 for version in before]
    assert counts.jobs <= MOST_JOBS
    assert counts.statements <= MOST_STATEMENTS
    assert counts.compiled <= MOST_CLASSES
    assert not counts.scans, "what the diff reads is kept; the driver's MERGE is no scan of Spark's"
    merged = ledger.commits(lake.spark, "engagement_features", 1)[0]
    assert merged.metric("numTargetRowsUpdated") == 20
    assert lake.different() == 0


def profiles_at(time: str) -> list[Event]:
    return [view_at(time, f"p{number}") for number in range(20)]


def newest_versions(lake: TestLake) -> list[int]:
    tables = ("engagement_buckets", "engagement_features")
    return [ledger.commits(lake.spark, table, 1)[0].version for table in tables]


# The tests' own session interprets everything.
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
MOST_JOBS = 8
MOST_STATEMENTS = 8
MOST_CLASSES = 3


# -- when it cannot be trusted -------------------------------------------------------------------


def ticked(lakes: Lakes) -> TestLake:
    """A lake whose next tick would be incremental."""
    lake = wishing(
        lakes.fed([view_at("10:00"), view_at("10:00", "q")], [view_at("10:01")]), "incremental"
    )
    assert told(lake)["mode"] == "incremental"
    return lake


def test_rows_deleted_inside_a_window_lead_to_a_recompute(lakes: Lakes) -> None:
    lake = ticked(lakes)
    lake.spark.sql("DELETE FROM engagement_buckets WHERE profile_id = 'q'")
    assert refresh_at(lake, at("10:03")).mode == "recompute"
    assert told(lake)["why"] == "DELETE at version 3 of engagement_buckets carries no ledger"
    assert list(lake.gold()) == [("p", "g")]
    assert refresh_at(lake, at("10:04")).mode == "incremental"


def test_upkeep_of_the_buckets_shows_no_new_rows(lakes: Lakes) -> None:
    lake = ticked(lakes)
    lake.spark.sql("OPTIMIZE engagement_buckets").collect()
    done = refresh_at(lake, at("10:03"))
    assert (done.mode, done.keys_changed) == ("incremental", 0)


def test_a_jump_past_more_rows_than_the_horizon_has_leads_to_a_recompute(lakes: Lakes) -> None:
    """Yesterday's burst leaves all windows: by the length of the jump it would be worth it."""
    lake = wishing(lakes.new(), "incremental")
    burst = [view_at(f"20T10:{minute:02}") for minute in range(30)]
    lake.feed([*burst, view_at("21:00")])
    lake.feed([view_at("21:01"), view_at("21:02")])
    assert told(lake)["mode"] == "incremental"
    assert refresh_at(lake, at("22:30")).mode == "incremental", "nothing stands where edges pass"
    refresh_at(lake, at("20T21:03"))
    assert lake.different() == 0
    done = refresh_at(lake, at("21:03"))
    assert done.mode == "recompute"
    assert told(lake)["why"] == (
        "as_of moves by 1 day, 0:00:00, and 33 bucket rows would be read instead of 3"
    )
    assert lake.different() == 0


def test_a_jump_past_few_rows_is_incremental_however_long(lakes: Lakes) -> None:
    lake = ticked(lakes)
    for later in ("15:00", "21:00", "22T09:00"):
        assert refresh_at(lake, at(later)).mode == "incremental"
        assert lake.different() == 0


def test_within_an_hour_a_jump_is_judged_by_its_length(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = ticked(lakes)
    monkeypatch.setattr(strategy, "statement", lambda *a: pytest.fail("counts rows"))
    assert refresh_at(lake, at("11:01")).mode == "incremental"


@pytest.mark.parametrize(
    ("limit", "value", "small"),
    [(None, 0, True), ("SMALL_GOLD", 100, False), ("SMALL_BATCH", 0, False)],
)
def test_a_small_refresh_is_interpreted(
    limit: str | None, value: int, small: bool, lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What computes its changes is, by the bytes of gold and the rows that came; neither a
    recompute nor a MERGE is."""
    lake = ticked(lakes)
    if limit:
        monkeypatch.setattr(strategy, limit, value)
    spark, name = lake.lake.spark, "spark.sql.codegen.wholeStage"
    seen: list[str] = []
    for module, step in ((overflow, "counted"), (merging, "merge")):
        monkeypatch.setattr(module, step, seeing(getattr(module, step), spark, name, seen))
    with temporary_conf(spark, {name: "true"}):
        lake.feed([view_at("10:02")])
        refresh_at(wishing(lake, "recompute"), at("10:04"))
        assert seen == ["false" if small else "true", "true", "true", "true"]
        assert spark.conf.get(name) == "true", "as it was before"


def seeing(
    step: Callable[..., object], spark: SparkSession, name: str, seen: list[str]
) -> Callable[..., object]:
    """The step, which says what the session's setting is when it begins."""

    def step_seen(*args: object) -> object:
        seen.append(spark.conf.get(name))
        return step(*args)

    return step_seen


def test_a_refresh_is_as_small_as_its_own_batch(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as the batch before: a large one after a small one is compiled."""
    lake = ticked(lakes)
    seen: list[bool] = []
    is_small = strategy._is_small

    def seeing(*args: object) -> bool:
        seen.append(is_small(*args))  # type: ignore[arg-type]
        return seen[-1]

    monkeypatch.setattr(strategy, "_is_small", seeing)
    monkeypatch.setattr(strategy, "SMALL_BATCH", 2)
    for minute, profiles in (("10:02", "p"), ("10:03", "pqr"), ("10:04", "q")):
        lake.feed([(None, profile, "g", "view", at(minute)) for profile in profiles])
    assert seen == [True, False, True]


@pytest.mark.parametrize("wished", ["auto", "incremental"])
def test_a_day_later_gold_is_checked(wished: str, lakes: Lakes) -> None:
    """A wrong value under a ledger that says nothing of it is found by auto, and mended."""
    lake = wishing(ticked(lakes), wished)
    last = {name: value for name, value in told(lake).items() if name != "version"}
    long_ago = {**last, "refresh": last["refresh"] + 1, "checked": "2026-11-20T10:00:00Z"}
    with temporary_conf(lake.spark, {COMMIT_METADATA: json.dumps(long_ago)}):
        lake.spark.sql("UPDATE engagement_features SET view_count_1d = 77 WHERE profile_id = 'q'")
    refresh_at(lake, at("10:03"))
    if wished == "auto":
        assert (told(lake)["mode"], told(lake)["drift"]) == ("recompute", 1)
        assert lake.different() == 0
    else:
        assert told(lake)["mode"] == "incremental" and lake.different() == 1


def test_a_checked_gold_is_not_checked_again(lakes: Lakes, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = wishing(ticked(lakes), "auto")
    assert told(lake)["checked"] == "2026-11-21T10:01:00Z", "the recompute of the first batch"
    monkeypatch.setattr(strategy, "compare", lambda *a: pytest.fail("within a day"))
    assert refresh_at(lake, at("10:03")).mode == "incremental"


def test_delete_removes_the_row_that_became_empty(lakes: Lakes) -> None:
    lake = wishing(lakes.new(views=[{**lakes.declared(), "when_empty": "delete"}]), "incremental")
    lake.feed([view_at("20T10:00", "old"), view_at("09:59")])
    refresh_at(lake, at("10:00"))
    refresh_at(lake, at("10:01"))
    assert told(lake)["mode"] == "incremental"
    assert [row["profile_id"] for row in lake.table("features").collect()] == ["p"]


# -- features that do not add up -----------------------------------------------------------------


def test_min_and_max_of_affected_keys_alone(lakes: Lakes) -> None:
    lake = wishing(lakes.new(views=[SPENT]), "incremental")
    known: list[Spending] = []
    batches: list[list[Spending]] = [
        [
            ("p", "view", 5, at("09:00")),
            ("p", "select", 3, at("09:30")),
            ("q", "view", 9, at("09:30")),
        ],
        [("p", "view", 4, at("10:00"))],
        [("p", "view", 1, at("09:59")), ("r", "select", 2, at("10:01"))],
        [("r", "view", 7, at("10:30"))],  # p's 3 and q's 9 leave the hour
        [("q", "view", 8, at("20T11:00")), ("p", "select", 6, at("11:00"))],
    ]
    for batch in batches:
        known += batch
        feed_spending(lake, batch)
        assert spent(lake) == brute(known, ledger.instant(told(lake)["as_of"]))
    assert {t["mode"] for t in lake.ledgers()[:4]} == {"incremental"}
    assert told(lake)["changed"] == 1, "p alone: nothing of q and r entered or left"
    for as_of in (at("11:31"), at("10:45"), at("12:05")):
        refresh_at(lake, as_of)
        assert spent(lake) == brute(known, as_of)
    assert lake.different() == 0


def test_columns_may_be_called_as_ours_are_inside(lakes: Lakes) -> None:
    """Names in the statements, of which a user knows nothing, are no reserved words."""
    named = {
        "name": "engagement",
        "keys": ["action", "events", "gold"],
        "event_time": "event_timestamp",
        "schema": dict.fromkeys(("action", "events", "gold"), "string"),
        "features": [{"count": {}, "over": ["1h"]}],
    }
    lake = wishing(lakes.new(views=[named]), "incremental")
    schema = "action STRING, events STRING, gold STRING, event_timestamp TIMESTAMP"
    for minute in ("10:00", "10:01"):
        feed_rows(lake, [("update", "known", "changed", at(minute))], schema)
    assert (told(lake)["mode"], told(lake)["changed"]) == ("incremental", 1)
    assert lake.table("features").select("action", "count_1h").collect() == [("update", 2)]
    assert lake.different() == 0
