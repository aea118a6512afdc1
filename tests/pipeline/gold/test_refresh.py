"""Refresh: gold at every as_of, which rows it touches, and what its commits say."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import functions as F

import oracle
from lakes import Event, Lakes, TestLake, at
from tidemill.config.settings import Clock
from tidemill.errors import LedgerError, UsageError
from tidemill.lake import times
from tidemill.lake.batches import BatchRow
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.parameters import ask
from tidemill.lake.session.temporary_conf import temporary_conf
from tidemill.operations import reconcile
from tidemill.pipeline import on_demand, view_refresh
from tidemill.pipeline.gold import refresh as gold
from tidemill.pipeline.observer import Callback
from tidemill.pipeline.queries import Pipeline
from tidemill.pipeline.row_writes.frame_cache import cached
from tidemill.pipeline.runner import Recorder
from tidemill.sources.generator.source import Generator

pytestmark = pytest.mark.connect


def view_at(text: str, profile: str = "p", event_id: str | None = None) -> Event:
    return (event_id, profile, "g", "view", at(text))


def refresh(lake: TestLake, text: str, **more: object) -> gold.Refreshed:
    batch = ledger.newest_append(lake.lake, "engagement_buckets", lake.lake.generation)
    number = int(batch.ledger["batch"]) if batch and batch.ledger else -1
    return gold.refresh(lake.lake, lake.view, as_of=at(text), batch=number, **more)


def images(lake: TestLake, since: int = 0) -> list[dict]:
    """The rows of gold's change data feed from a version on."""
    reader = lake.spark.read.option("readChangeFeed", "true").option("startingVersion", since)
    return [row.asDict() for row in reader.table("engagement_features").collect()]


def test_a_window_holds_its_first_minute_and_not_its_end(lakes: Lakes) -> None:
    #   09:59:59.999 | 10:00:00 ... 10:59:59.999 | 11:00      as_of 11:00, 1 h = [10:00, 11:00)
    #      only 1d   |         in 1 h            |
    events = [view_at("09:59:59.999"), view_at("10:00:00"), view_at("10:59:59.999")]
    lake = lakes.new()
    lake.feed(events)
    assert lake.gold() == oracle.features(events, at("11:00"))
    assert lake.gold()["p", "g"]["view_count_1h"] == 2
    assert lake.gold()["p", "g"]["view_count_1d"] == 3

    #   one minute on: [10:01, 11:01) has lost 10:00
    refresh(lake, "11:01")
    assert lake.gold()["p", "g"]["view_count_1h"] == 1

    #   10:59 + 1 d: the day's window still holds it at 10:59, and no longer at 11:00
    refresh(lake, "22T10:59")
    assert lake.gold()["p", "g"]["view_count_1d"] == 1
    refresh(lake, "22T11:00")
    assert lake.gold() == {}


def test_only_keys_that_changed_are_rewritten(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.feed([view_at("10:00", profile) for profile in "abcde"])
    lake.feed([view_at("10:01", "a"), view_at("06:00", "b")])
    lake.feed([view_at("11:30", "c")])  # and the others leave the hour
    refresh(lake, "11:31")
    refresh(lake, "11:40")
    features = oracle.COLUMNS
    feed = images(lake)
    before = {
        (r["profile_id"], r["_commit_version"]): [r[c] for c in features]
        for r in feed
        if r["_change_type"] == "update_preimage"
    }
    after = {
        (r["profile_id"], r["_commit_version"]): [r[c] for c in features]
        for r in feed
        if r["_change_type"] == "update_postimage"
    }
    assert after and before.keys() == after.keys()
    assert [key for key in after if before[key] == after[key]] == []
    second = {r["profile_id"] for r in feed if r["_commit_version"] == 2}
    assert second == {"a", "b"}


def test_a_refresh_reads_the_horizon_and_no_older_partition(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.feed([view_at(f"{day:02d}T10:00") for day in range(1, 21)])
    lake.feed([view_at("21T10:00"), view_at("20T23:00")])
    files = lake.table("buckets").inputFiles()
    read = features_frame(lake, "21T10:01").inputFiles()
    assert len(files) == 22
    assert len(read) == 2, "of the 22 files only those of the last 24 hours"


def features_frame(lake: TestLake, text: str):
    from tidemill.lake.statements import statement

    sql = statement("features", lake.view)
    return ask(lake.spark, sql, {"as_of": at(text), "batch": lake.batch})


@pytest.mark.parametrize("when_empty", ["zero", "delete"])
def test_an_emptied_key_stays_as_zeros_or_leaves(lakes: Lakes, when_empty: str) -> None:
    declared = {**lakes.declared(), "when_empty": when_empty}
    lake = lakes.new(views=[declared])
    lake.feed([view_at("20T10:00", "gone"), view_at("21T10:00", "here")])
    refresh(lake, "21T10:01", force="look")
    rows = {row["profile_id"]: row["view_count_1d"] for row in lake.table("features").collect()}
    #   "gone" was empty already when gold was first built, so it never got a row
    assert rows == {"here": 1}
    refresh(lake, "22T10:01")
    rows = {row["profile_id"]: row["view_count_1d"] for row in lake.table("features").collect()}
    assert rows == ({"here": 0} if when_empty == "zero" else {})
    kinds = {row["_change_type"] for row in images(lake, ledger_version(lake))}
    zero = {"update_preimage", "update_postimage"}
    assert kinds == (zero if when_empty == "zero" else {"delete"})
    assert lake.different() == 0


def ledger_version(lake: TestLake) -> int:
    return lake.ledgers()[0]["version"]


def test_updated_at_is_the_as_of_of_the_last_change(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.feed([view_at("10:00", "a"), view_at("10:00", "b")])
    lake.feed([view_at("10:30", "a")])
    seconds = F.unix_seconds("updated_at").alias("t")
    rows = lake.table("features").select("profile_id", seconds).collect()
    found = {row["profile_id"]: row["t"] for row in rows}
    assert found == {"a": at("10:31").timestamp(), "b": at("10:01").timestamp()}


# -- the ledger's rules --------------------------------------------------------------------------


def test_a_refresh_that_moves_nothing_makes_no_commit(lakes: Lakes) -> None:
    lake = lakes.fed([view_at("10:00")])
    before = lake.ledgers()
    assert not refresh(lake, "10:01").committed
    assert lake.ledgers() == before


def test_ticks_leave_no_view_in_their_session(lakes: Lakes) -> None:
    """A view left would keep its plan, and so, one by one, those of all ticks before (0031)."""
    lake = lakes.new()
    before = {row["viewName"] for row in lake.spark.sql("SHOW VIEWS").collect()}
    lake.feed([view_at("10:00")])
    lake.feed([view_at("10:02"), view_at("10:01", "q")])
    refresh(lake, "11:01")
    assert {row["viewName"] for row in lake.spark.sql("SHOW VIEWS").collect()} <= before


def test_kept_rows_copy_no_session(lakes: Lakes) -> None:
    spark: Any = lakes.new().spark
    with cached(spark.range(3)) as rows:
        caches = spark._jsparkSession.sharedState().cacheManager()
        kept = caches.lookupCachedData(rows._jdf).get().cachedRepresentation()
        session = kept.cacheBuilder().cachedPlan().session()
    assert session.equals(spark._jsparkSession)


def test_a_refresh_without_a_changed_key_commits_its_ledger(lakes: Lakes) -> None:
    lake = lakes.fed([view_at("10:00")])
    assert refresh(lake, "10:05").keys_changed == 0
    told = lake.ledgers()[0]
    assert (told["refresh"], told["batch"], told["as_of"]) == (2, 0, "2026-11-21T10:05:00Z")
    assert told["changed"] == 0 and told["mode"] == "incremental"


def test_batch_is_never_lowered(lakes: Lakes) -> None:
    lake = lakes.fed([view_at("10:00")], [view_at("10:01")])
    done = gold.refresh(lake.lake, lake.view, as_of=at("10:05"), batch=0)
    assert done.batch == 1 and lake.gold()["p", "g"]["view_count_1h"] == 2


def test_a_lost_ledger_leads_to_a_recompute_with_a_higher_number(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lakes.fed([view_at("10:00")], [view_at("10:01")])
    spoil(lake)
    real = Lake.commits

    def cleaned(*args: object, **more: object) -> list[ledger.Commit]:
        return [replace(c, ledger=None) for c in real(*args, **more)]  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Lake, "commits", cleaned)
        assert refresh(lake, "10:02").committed
    told = lake.ledgers()[0]
    assert told["refresh"] == told["version"], "gold's version + 1, above every number used"
    assert lake.different() == 0


def spoil(lake: TestLake) -> None:
    """Change gold behind Tidemill's back."""
    lake.spark.sql("UPDATE engagement_features SET view_count_1d = 77")


def test_a_change_without_a_ledger_is_repaired(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.feed([view_at("10:00"), view_at("10:00", "q")])
    spoil(lake)
    assert lake.different() == 2
    done = refresh(lake, "10:01")
    assert done.committed and done.keys_changed == 2
    assert lake.different() == 0


def test_a_restore_leads_to_a_recompute_with_the_next_number(lakes: Lakes) -> None:
    lake = lakes.fed([view_at("10:00")], [view_at("10:01")])
    lake.spark.sql("RESTORE TABLE engagement_features TO VERSION AS OF 1")
    assert refresh(lake, "10:02").committed
    assert [told["refresh"] for told in lake.ledgers()] == [3, 2, 1]
    assert lake.gold()["p", "g"]["view_count_1h"] == 2


def test_optimize_and_alter_are_passed_over(lakes: Lakes) -> None:
    lake = lakes.fed([view_at("10:00")])
    lake.spark.sql("OPTIMIZE engagement_features")
    lake.spark.sql("ALTER TABLE engagement_features SET TBLPROPERTIES ('note' = 'x')")
    assert not refresh(lake, "10:01").committed


def test_another_definition_leads_to_a_recompute(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.feed([view_at("10:00"), view_at("08:00")])
    declared = lakes.declared()
    declared["features"] = [{**declared["features"][0], "over": ["2h", "1d"]}]
    again = lakes.open(lakes.made[0], views=[declared])
    assert refresh(again, "10:01").committed
    row = again.table("features").collect()[0]
    assert (row["view_count_1d"], row["view_count_2h"]) == (2, 1)
    assert "view_count_1h" not in row.asDict()


def test_a_skipped_merge_is_noticed_and_done_again(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first look that is out of date takes a number that was used: Delta skips in silence."""
    lake = lakes.fed([view_at("10:00")])
    old = lake.lake.gold_state(lake.view)
    refresh(lake, "10:05")
    looks = [replace(old, refresh=1)]
    real = ledger.gold_state
    monkeypatch.setattr(ledger, "gold_state", lambda *a: looks.pop() if looks else real(*a))
    assert refresh(lake, "10:06").committed
    assert [told["refresh"] for told in lake.ledgers()] == [3, 2, 1]
    assert lake.different() == 0


def test_a_lost_race_is_tried_three_times_and_no_more(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lakes.fed([view_at("10:00")])
    old = lake.lake.gold_state(lake.view)
    looks: list[int] = []

    def stale(*_: object) -> ledger.GoldState:
        looks.append(1)
        return replace(old, refresh=1)

    monkeypatch.setattr(ledger, "gold_state", stale)
    with pytest.raises(LedgerError, match="3 refreshes in a row"):
        refresh(lake, "10:06")
    assert len(looks) == 3


def test_of_two_refreshes_at_once_one_wins(lakes: Lakes) -> None:
    lake = lakes.new(Clock(at("11:05")), follows="wall")
    lake.feed([view_at("10:30"), view_at("10:02", "q")])
    barrier = threading.Barrier(2)
    errors: list[BaseException] = []

    def tick() -> None:
        own = lake.lake.within(lake.spark.newSession())
        own.spark.catalog.setCurrentDatabase(lake.spark.catalog.currentDatabase())
        try:
            barrier.wait()
            view_refresh.refresh_view(own, "engagement", Clock(at("11:10")), "wall")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=tick) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    times = [told["as_of"] for told in lake.ledgers()]
    assert times == ["2026-11-21T11:11:00Z", "2026-11-21T11:06:00Z"], "one commit for both"
    assert lake.ledgers()[0]["mode"] == "incremental"
    assert lake.different() == 0


# -- clocks --------------------------------------------------------------------------------------


def test_the_event_clock_is_the_newest_bucket_of_all(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.feed([view_at("10:30")])
    lake.feed([view_at("09:00")])  # late: time does not go back
    assert lake.ledgers()[0]["as_of"] == "2026-11-21T10:31:00Z"
    assert lake.ledgers("buckets")[0]["newest"] == "2026-11-21T10:30:00Z"
    assert lake.gold()["p", "g"]["view_count_12h"] == 2


def test_silence_decays_windows_by_the_wall_clock(lakes: Lakes) -> None:
    #   events at 10:00 .. 10:04, one in each minute, keys a .. e; then 61 silent minutes
    events = [view_at(f"10:0{minute}", key) for minute, key in enumerate("abcde")]
    lake = lakes.new(Clock(at("10:04:30")), follows="wall")
    lake.feed([*events, view_at("20T21:00", "old")])
    first = ledger_version(lake)
    for minute in (31, 60, 63, 65):
        now = Clock(at("10:00") + timedelta(minutes=minute, seconds=-1))
        view_refresh.refresh_view(lake.lake, "engagement", now, "wall")
    assert lake.ledgers()[0]["as_of"] == "2026-11-21T11:05:00Z"
    rows = lake.table("features").collect()
    assert [row["view_count_1h"] for row in rows] == [0] * 6
    decayed = {
        (row["_commit_version"] - first, row["profile_id"])
        for row in images(lake, first + 1)
        if row["_change_type"] == "update_postimage"
    }
    #   at 11:00 [10:00, 11:00) keeps all; 11:03 loses a, b, c; 11:05 loses d, e; old: 1d only
    assert decayed == {(3, "a"), (3, "b"), (3, "c"), (4, "d"), (4, "e")}


def test_the_wall_clock_refreshes_a_lake_without_an_event(lakes: Lakes) -> None:
    lake = lakes.new(Clock(at("10:04:30")), follows="wall")
    done = view_refresh.refresh_view(lake.lake, "engagement", lake.clock, "wall")
    assert (done.committed, done.keys_changed, done.as_of) == (True, 0, at("10:05"))
    assert lake.different() == 0 and lake.gold() == {}


def test_silent_minutes_are_recorded(lakes: Lakes) -> None:
    """A refresh that no query made is told and recorded like a batch."""
    lake = lakes.new(Clock(at("10:04:30")), follows="wall")
    lake.feed([(None, "a", "g", "view", at("10:00"))])
    told: list[BatchRow] = []
    pipeline = Pipeline(lake.lake, Generator(), lake.clock, "wall")
    recorder = Recorder(pipeline, [Callback(told.extend)])
    for minute in ("10:05", "10:06"):
        view_refresh.refresh_view(lake.lake, "engagement", Clock(at(minute)), "wall")
    recorder.record()
    assert [row.query for row in told] == ["refresh", "refresh"]
    recorded = times.collect(lake.spark.table("tidemill_batches").orderBy("version"))
    assert [(row["query"], row["as_of"].minute) for row in recorded] == [
        ("feature", 5),
        ("refresh", 6),
        ("refresh", 7),
    ]


def test_the_wall_clock_never_takes_gold_back(lakes: Lakes) -> None:
    lake = lakes.new(Clock(at("10:04:30")), follows="wall")
    lake.feed([view_at("10:00")])
    view_refresh.refresh_view(lake.lake, "engagement", Clock(at("09:00")), "wall")
    assert lake.ledgers()[0]["as_of"] == "2026-11-21T10:05:00Z"


# -- as_of ---------------------------------------------------------------------------------------


def test_a_refresh_to_an_earlier_time_is_marked(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.feed([view_at("20T08:00"), view_at("21T09:00"), view_at("21T10:00")])
    done = on_demand.refresh_to(lake.lake, lake.view, at("21T09:30"))
    assert done.committed and lake.ledgers()[0]["earlier"] is True
    assert lake.gold()["p", "g"]["view_count_1h"] == 1
    assert lake.different() == 0


def test_a_refresh_before_what_is_kept_is_refused(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.feed([view_at("20T08:00"), view_at("21T10:00")])
    with pytest.raises(UsageError, match="before the oldest kept bucket"):
        on_demand.refresh_to(lake.lake, lake.view, at("21T07:59"))
    assert on_demand.refresh_to(lake.lake, lake.view, at("21T08:00")).committed


def test_a_refresh_after_the_newest_bucket_is_allowed(lakes: Lakes) -> None:
    lake = lakes.fed([view_at("10:00")])
    assert on_demand.refresh_to(lake.lake, lake.view, at("12:00")).keys_changed == 1


# -- the main invariant --------------------------------------------------------------------------


def test_every_version_with_a_ledger_is_what_the_buckets_say(lakes: Lakes) -> None:
    """Also after OPTIMIZE and VACUUM: no time travel of the buckets is needed."""
    lake = lakes.new()
    batches: Sequence[Sequence[Event]] = (
        [view_at("10:00"), view_at("20T12:00", "q")],
        [view_at("10:20"), view_at("07:00", "q"), view_at("20T11:00", "late")],
        [view_at("10:10", "late"), view_at("12:30")],
    )
    for events in batches:
        lake.feed(events)
    refresh(lake, "11:00")
    refresh(lake, "13:00")
    lake.spark.sql("OPTIMIZE engagement_buckets")
    unchecked = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}
    with temporary_conf(lake.spark, unchecked):
        lake.spark.sql("VACUUM engagement_buckets RETAIN 0 HOURS")
    told = lake.ledgers()
    assert len(told) == 5
    for one in told:
        known = [event for events in batches[: one["batch"] + 1] for event in events]
        expected = oracle.features(known, ledger.instant(one["as_of"]))
        found = reconcile.reconcile(lake.lake, lake.view, one["version"])
        assert (found.different, found.keys) == (0, len(expected))
        assert lake.gold(one["version"]) == expected


# -- views ---------------------------------------------------------------------------------------


def test_views_for_people(lakes: Lakes) -> None:
    from tidemill.pipeline import batch_log

    lake = lakes.new()
    lake.feed([view_at("10:00"), view_at("10:00:30"), ("x", "p", "g", "select", at("10:00"))])
    lake.feed([view_at("10:00:40")])
    batch_log.record(lake.lake)
    batch_log.record(lake.lake)  # nothing twice
    status = lake.table("status").drop("committed_at", "age_seconds", "generation").collect()
    assert [row.asDict() | {"as_of": None} for row in status] == [
        {
            "view": "engagement",
            "as_of": None,
            "gold_version": 2,
            "batch": 1,
            "refresh": 2,
            "mode": "incremental",
            "overflowed": None,
        }
    ]
    current = lake.table("current").select(F.unix_seconds("as_of"), "view_count_1h").collect()
    assert [tuple(row) for row in current] == [(int(at("10:01").timestamp()), 3)]
    minutes = lake.table("minute_counts").select("event_type", "count").collect()
    assert {tuple(row) for row in minutes} == {("view", 3), ("select", 1)}
    rows = lake.spark.table("tidemill_batches").select("query", "batch", "events", "keys_changed")
    assert {tuple(row) for row in rows.collect()} == {
        ("feature", 0, 3, 1),
        ("feature", 1, 1, 1),
    }
