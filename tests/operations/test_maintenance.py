"""Upkeep: what it plans, what it leaves, and that no feature changes by it."""

from __future__ import annotations

import os
import random
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from shutil import copytree

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import command_line
import oracle
from lakes import NOW, Event, Lakes, TestLake, at
from runs import Small, of_files, opened
from tidemill.config import dataflow
from tidemill.config.settings import Clock
from tidemill.lake import lock
from tidemill.lake.commits import ledger, writer
from tidemill.lake.commits.ledger import GoldState
from tidemill.lake.schema import creation
from tidemill.operations import maintenance
from tidemill.operations.maintenance import OFTEN, Step, compaction, vacuum
from tidemill.pipeline import batch_log, on_demand


def view_at(text: str, profile: str = "p") -> Event:
    return (None, profile, "g", "view", at(text))


def plan(lake: TestLake, *actions: str) -> list[Step]:
    return maintenance.plan(lake.lake, lake.clock, actions or OFTEN)


def run(lake: TestLake, *actions: str) -> dict[tuple[str, str], str]:
    done = maintenance.maintain(lake.lake, plan(lake, *actions))
    return {(each.action, each.table): each.result for each in done}


@pytest.fixture(scope="module")
def kept(spark: SparkSession, empty_lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with something to do for every action: an old bucket, a row that has been empty for
    hours, an hour of more files than it may have."""
    lakes = Lakes(spark, tmp_path_factory.mktemp("kept"), empty_lake)
    lake = lakes.new(**WORDS(lakes))
    for batch in BATCHES:
        lake.feed(batch)
    return lakes.made[0]


def WORDS(lakes: Lakes) -> dict[str, object]:
    return {"views": [{**lakes.declared(), "keep_empty": "1h"}], "history": "1d"}


BATCHES = [
    [view_at("20T00:10", "old")],
    [view_at("09:10")],
    [view_at("09:11")],
    [view_at("12:00", "q")],
]


@pytest.fixture(autouse=True)
def one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed partition may have a single file here."""
    monkeypatch.setattr(compaction, "FILES", 1)


@pytest.fixture
def lake(kept: Path, lakes: Lakes) -> TestLake:
    root = lakes.folder / "kept"
    copytree(kept, root)
    opened_lake = lakes.open(root, **WORDS(lakes))
    return replace(opened_lake, batch=len(BATCHES) - 1)


# -- what it does --------------------------------------------------------------------------------


def test_a_plan_says_what_and_why(lake: TestLake) -> None:
    found = [(step.action, step.table, step.reason) for step in plan(lake)]
    assert found == [
        ("hours", "engagement_hours", "the buckets of 4 batches to add up"),
        ("expire", "engagement_buckets", "1 partition older than 1d"),
        ("empty", "engagement_features", "1 row empty for more than 1h"),
        ("optimize", "engagement_buckets", "2 files in 1 closed partition"),
    ]


def test_upkeep_changes_no_feature_and_shows_no_new_rows(lake: TestLake) -> None:
    before, known = lake.gold(), [event for batch in BATCHES for event in batch]
    assert run(lake) == {
        ("hours", "engagement_hours"): "3 rows appended",
        ("expire", "engagement_buckets"): "removed what is before 2026-11-20T12:00:00Z",
        ("empty", "engagement_features"): "1 row removed",
        ("optimize", "engagement_buckets"): "2 files became 1",
    }
    assert lake.gold() == before and lake.different() == 0
    assert lake.table("features").where("profile_id = 'old'").isEmpty()
    assert lake.table("buckets").where("profile_id = 'old'").isEmpty()
    assert plan(lake) == [], "nothing more to do; the day that is half kept stays in the hours"
    lake.feed([view_at("12:01", "q")])
    told = lake.ledgers()[0]
    assert (told["mode"], told.get("why")) == ("incremental", None)
    assert lake.gold() == oracle.features([*known, view_at("12:01", "q")], at("12:02"))
    assert lake.different() == 0


def test_files_that_a_stream_reads_are_no_larger_than_a_batch(lakes: Lakes) -> None:
    """Joined into one, all of history would be one batch of `clean`."""
    lake, drawn = lakes.new(), random.Random(1)
    yesterday = F.lit((NOW - timedelta(days=1)).date())
    for _ in range(6):
        rows = lake.bronze([drawn.randbytes(100).hex() for _ in range(100)])
        rows.withColumn("ingest_date", yesterday).write.format("delta").mode("append").saveAsTable(
            "engagement_bronze"
        )
    sizes = [path.stat().st_size for path in bronze_files(lake)]
    limit = 5 * max(sizes) // 2048  # two and a half files
    bounded = lakes.open(lakes.made[0], max_bytes_per_trigger=f"{limit}k")
    assert run(bounded, "optimize") == {("optimize", "engagement_bronze"): "6 files became 3"}
    assert plan(bounded, "optimize") == []
    assert run(lake, "optimize") == {("optimize", "engagement_bronze"): "3 files became 1"}


def bronze_files(lake: TestLake) -> list[Path]:
    return [Path(name.removeprefix("file:")) for name in lake.table("bronze").inputFiles()]


def test_what_was_done_is_kept(lake: TestLake) -> None:
    batch_log.record(lake.lake)
    assert maintenance.last(lake.lake) is None
    run(lake, "hours", "empty")
    row = lake.spark.table("tidemill_batches").where("query = 'maintain'").collect()[0]
    assert set(row["seconds"]) == {"hours", "empty"}
    assert maintenance.last(lake.lake, "vacuum") is None
    assert maintenance.last(lake.lake, "hours") == maintenance.last(lake.lake)
    status = lake.spark.table("engagement_status").collect()
    assert len(status) == 1, "a row of upkeep is no state of gold"


def test_batches_that_are_told_after_upkeep(lake: TestLake) -> None:
    """Upkeep's ledger names the newest batch, and has no events: it is no append of it."""
    run(lake, "expire")
    batch_log.record(lake.lake)
    rows = lake.spark.table("tidemill_batches").where("query = 'feature'").orderBy("batch")
    assert [row["events"] for row in rows.collect()] == [len(batch) for batch in BATCHES]


def test_removing_empty_rows_lets_a_refresh_win(
    lake: TestLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger that upkeep repeats is an old one: its number is used, so nothing is written."""
    (step,) = plan(lake, "empty")
    there = lake.lake.gold_state(lake.view)
    stale = replace(there, refresh=there.refresh - 1)
    monkeypatch.setattr(ledger, "gold_state", lambda *a: stale)
    assert step.run() == "a refresh comes first"
    monkeypatch.undo()
    assert lake.ledgers()[0]["refresh"] == there.refresh - 1
    monkeypatch.setattr(ledger, "gold_state", lambda *a: replace(there, recompute_reason="RESTORE"))
    assert step.run() == "a refresh comes first"


def test_a_step_that_loses_against_a_batch_is_left(lake: TestLake) -> None:
    from delta.exceptions import DeltaConcurrentModificationException

    def lose() -> str:
        raise DeltaConcurrentModificationException("[DELTA_CONCURRENT_APPEND] ...")

    step = Step("engagement_buckets", "optimize", "", lose)
    (done,) = maintenance.maintain(lake.lake, [step])
    assert done.result == "another write came first; left for the next time"


def test_gold_of_many_files_is_ordered_by_change(
    lake: TestLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "UNPARTITIONED_FILES", 1)
    before = lake.gold()
    rows = lake.spark.table("engagement_features").repartition(3)
    told = {name: value for name, value in lake.ledgers()[0].items() if name != "version"}
    with writer.carrying(lake.spark, {**told, "refresh": told["refresh"] + 1}):
        rows.write.format("delta").mode("overwrite").saveAsTable("engagement_features")
    files = len(lake.table("features").inputFiles())
    assert files > 1
    assert run(lake, "optimize")["optimize", "engagement_features"] == f"{files} files became 1"
    assert lake.gold() == before
    monkeypatch.setattr(compaction, "UNPARTITIONED_FILES", 0)
    assert not plan(lake, "optimize"), "one file is as many as the last time left"
    lake.feed([view_at("12:01", "q")])
    assert lake.ledgers()[0]["mode"] == "incremental" and lake.different() == 0


def with_two_files(lake: TestLake) -> None:
    """Make the tables that are made when they are first needed, with a file for each of two
    rows."""
    declared = lake.lake.tables
    rows = {
        declared.replays.name: "'r', 'replay:r', TIMESTAMP'2026-11-20 10:00', DATE'2026-11-20'",
        declared.quality.name: "'run', 'engagement', TIMESTAMP'2026-11-20 10:00', 'engagement', "
        "'check', true, '', '', NULL, 0, '[]', DATE'2026-11-20'",
    }
    for table in (declared.replays, declared.quality):
        creation.ensure(lake.lake, table)
        for _ in range(2):
            lake.spark.sql(f"INSERT INTO {table.name} VALUES ({rows[table.name]})")


def test_tables_that_are_made_when_first_needed_are_maintained(
    lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "UNPARTITIONED_FILES", 1)
    lake = lakes.new()
    assert not plan(lake, "optimize"), "they are not there yet"
    with_two_files(lake)
    assert {step.table for step in plan(lake, "vacuum")} >= {
        "engagement_replays",
        "tidemill_quality",
    }
    assert run(lake, "optimize") == {
        ("optimize", "engagement_replays"): "2 files became 1",
        ("optimize", "tidemill_quality"): "2 files became 1",
    }
    assert plan(lake, "optimize") == []


def test_the_gate_s_results_are_left_while_it_writes_them(lakes: Lakes) -> None:
    """It holds a lock of its own, not the lake's."""
    lake = lakes.new()
    with_two_files(lake)
    with lock.hold_apart(lake.lake.place, lock.GATE, "tidemill quality engagement", wait=0):
        assert run(lake, "optimize") == {
            ("optimize", "tidemill_quality"): "another write came first; left for the next time"
        }
    assert run(lake, "optimize") == {("optimize", "tidemill_quality"): "2 files became 1"}


# -- what it leaves ------------------------------------------------------------------------------


def test_vacuum_keeps_what_a_query_has_not_read(
    small: Small, spark: SparkSession, tmp_path: Path
) -> None:
    root = tmp_path / "lake"
    copytree(small.root, root)
    definition = of_files(small.input)
    with opened(root, definition) as pipeline:
        lake, bronze = pipeline.lake, pipeline.lake.tables.bronze
        assert vacuum.needed_age(lake, bronze, dataflow.by_checkpoint("clean")) == timedelta(0)
        version = lake.checkpoint("clean").read_to()
        assert version == ledger.commits(spark, bronze.name, 1)[0].version + 1
        spark.table(bronze.name).limit(1).write.format("delta").mode("append").saveAsTable(
            bronze.name
        )
        needed = vacuum.needed_age(lake, bronze, dataflow.by_checkpoint("clean"))
        assert timedelta(hours=1) <= needed < timedelta(hours=2)
        steps = maintenance.plan(lake, Clock(NOW), ("vacuum",))
        assert len(steps) == 6 and "last 7 days" in steps[0].reason
        maintenance.maintain(lake, steps)
        assert spark.table("engagement_features").count() > 0


def test_a_temporary_file_of_a_day_ago_is_removed(lake: TestLake) -> None:
    folder = lake.lake.checkpoint("clean").folder / "offsets"
    folder.mkdir(parents=True)
    for name, age in ((".1.old.tmp", 2), (".2.new.tmp", 0)):
        path = folder / name
        path.touch()
        changed = time.time() - timedelta(days=age).total_seconds()
        os.utime(path, (changed, changed))
    assert list(run(lake, "tidy").values()) == ["1 file removed"]
    assert [path.name for path in folder.iterdir()] == [".2.new.tmp"]


def test_expiry_cuts_to_the_hour_whatever_the_bucket(lakes: Lakes) -> None:
    """As of 10:00:30 the hour from 10:00 on, a day ago, is within a history of a day."""
    declared = {**lakes.declared(), "bucket": "10s"}
    lake = lakes.new(views=[declared], history="1d")
    lake.feed([view_at("20T09:50", "old"), view_at("20T10:00:40", "kept"), view_at("10:00:20")])
    assert lake.lake.gold_state(lake.view).as_of == at("10:00:30")
    assert run(lake, "expire")["expire", "engagement_buckets"].endswith("2026-11-20T10:00:00Z")
    kept = {row["profile_id"] for row in lake.table("buckets").collect()}
    assert kept == {"kept", "p"} and lake.different() == 0


def test_expiry_follows_the_newest_event(lake: TestLake) -> None:
    """Not gold's as_of, which `refresh --as-of` and a wrong clock take anywhere."""
    on_demand.refresh_to(lake.lake, lake.view, at("12:00") + timedelta(days=500))
    assert run(lake, "expire")["expire", "engagement_buckets"].endswith("2026-11-20T12:00:00Z")
    assert {row["profile_id"] for row in lake.table("buckets").collect()} == {"p", "q"}
    lake.feed([view_at("12:01", "q")])
    known = [*(event for batch in BATCHES for event in batch), view_at("12:01", "q")]
    assert lake.gold() == oracle.features(known, at("12:02"))


# -- when it runs --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [({"every": "soon"}, "no length of time"), ({"retention": "6d"}, "too short: at least 7d")],
)
def test_maintenance_is_declared(words: dict[str, str], message: str) -> None:
    from tidemill.config.pipeline_file import load
    from tidemill.errors import UsageError

    with pytest.raises(UsageError, match=message):
        load("engagement").overridden({"maintenance": words})


def test_the_command_plans_then_does(small: Small, tmp_path: Path) -> None:
    root = tmp_path / "lake"
    copytree(small.root, root)
    words = ("maintain", "engagement", "--root", root, "--json")
    planned = command_line.call(*words, "--dry-run").json
    assert planned["dry_run"] and planned["steps"][0] == {
        "table": "engagement_hours",
        "action": "hours",
        "reason": "the buckets of 1 batch to add up",
    }
    assert not (root / "engagement_hours").exists()
    done = command_line.call(*words).json
    assert [step["table"] for step in done["steps"]][: len(planned["steps"])] == [
        step["table"] for step in planned["steps"]
    ]
    assert done["steps"][0]["result"].endswith("rows appended")
    again = command_line.call("maintain", "engagement", "--root", root)
    assert again.code == 0 and "vacuum    engagement_bronze" in again.out
    assert (
        command_line.call("reconcile", "engagement", "--root", root, "--json").json["different"]
        == 0
    )


def test_standing_is_what_upkeep_found(lake: TestLake) -> None:
    """A refresh after upkeep takes the next number."""
    before: GoldState = lake.lake.gold_state(lake.view)
    run(lake, "empty")
    after = lake.lake.gold_state(lake.view)
    assert (after.refresh, after.batch, after.as_of) == (
        before.refresh + 1,
        before.batch,
        before.as_of,
    )
