"""The log is kept as far back as somebody reads it: what is removed, what stays, what goes on."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import command_line
import oracle
from lakes import Event, Lakes, TestLake, at
from runs import Small, opened, reading, records_of, run_once, write_file
from tidemill.config.settings import Clock, Place
from tidemill.errors import UsageError
from tidemill.lake.batches import BatchRow
from tidemill.lake.commits import ledger, writer
from tidemill.lake.schema import creation, expired_before
from tidemill.lake.schema.log_properties import CLEANING, EVERY, INTERVAL
from tidemill.operations import maintenance
from tidemill.operations.maintenance import compaction, log_retention
from tidemill.pipeline import batch_log, runner
from tidemill.pipeline.queries import Pipeline

TABLES = [f"engagement_{n}" for n in ("bronze", "quarantine", "events", "buckets", "features")]
DAY = timedelta(days=1)


def view_at(number: int, time: str) -> Event:
    return (f"n{number}", "p", "g", "view", at(time))


EVENTS = [view_at(1, "11:40"), view_at(2, "11:41"), view_at(3, "11:42"), view_at(4, "11:43")]
LANDED = [view_at(5, "11:44"), view_at(6, "11:45")]  # each in a commit that clean has not read


@dataclass(frozen=True)
class Aged:
    """A lake of some runs, the last of which land alone did; its log is a day old."""

    lake: Small

    @property
    def root(self) -> Path:
        return self.lake.root

    def log(self, table: str) -> Path:
        return self.root / table / "_delta_log"

    def versions(self, table: str) -> list[int]:
        return sorted(int(path.stem) for path in self.log(table).glob("*.json"))

    def files(self) -> dict[str, list[str]]:
        return {table: sorted(os.listdir(self.log(table))) for table in TABLES}


def age(root: Path, by: timedelta = DAY) -> None:
    """Make the log's files older, as if the commits were."""
    for path in root.glob("*/_delta_log/*"):
        changed = path.stat().st_mtime - by.total_seconds()
        os.utime(path, (changed, changed))


@pytest.fixture(scope="module")
def grown(small: Small, tmp_path_factory: pytest.TempPathFactory) -> Small:
    lake = small.copy_all(tmp_path_factory.mktemp("grown"))
    with opened(lake.root, lake.definition) as pipeline:
        for table in TABLES:
            said = f"'{INTERVAL}' = '1', '{CLEANING}' = 'true'"
            pipeline.lake.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({said})")
        maintenance.maintain(pipeline.lake, maintenance.plan(pipeline.lake, Clock(), ("hours",)))
    for number, event in enumerate(EVENTS):
        write_file(lake.input, f"new{number}.jsonl", records_of([event], ["{"]), age=30 - number)
        run_once(lake.root, lake.definition)
    with opened(lake.root, lake.definition) as pipeline:
        pipeline.claim()
        recorder = runner.Recorder(pipeline)
        for number, event in enumerate(LANDED):
            write_file(lake.input, f"landed{number}.jsonl", records_of([event]), age=10 - number)
            runner.finish("land", pipeline, runner.Stop(), recorder)
        recorder.record()
        maintenance.maintain(pipeline.lake, maintenance.plan(pipeline.lake, Clock(), ("hours",)))
    age(lake.root)
    return lake


@pytest.fixture
def aged(grown: Small, tmp_path: Path) -> Aged:
    return Aged(grown.copy_all(tmp_path, "own"))


@contextmanager
def writing(aged: Aged, **words: object) -> Iterator[Pipeline]:
    with opened(aged.root, aged.lake.definition.overridden(words)) as pipeline:
        yield pipeline


def shorten(pipeline: Pipeline) -> dict[str, str]:
    steps = maintenance.plan(pipeline.lake, Clock(), ("log",))
    return {done.table: done.result for done in maintenance.maintain(pipeline.lake, steps)}


# -- what goes, and what stays -------------------------------------------------------------------


def test_the_log_is_cut_where_the_slowest_reader_stands(aged: Aged, spark: SparkSession) -> None:
    before = {table: aged.versions(table) for table in TABLES}
    with writing(aged) as pipeline:
        lake = pipeline.lake
        rows = {table: counts(spark, table, before[table]) for table in TABLES}
        checkpoint = lake.checkpoint("clean")
        read_again = checkpoint.read_to(checkpoint.finished() - 1) or 0  # by a query that starts
        gold = ledger.commits(spark, "engagement_features", 1)[0]
        assert gold.ledger is not None
        needed = {
            "engagement_bronze": read_again,
            "engagement_quarantine": newest_ledger(aged, "engagement_quarantine"),
            "engagement_events": newest_ledger(aged, "engagement_events"),
            "engagement_buckets": int(gold.ledger["buckets"]),
            "engagement_features": gold.version,
        }
        assert needed["engagement_bronze"] < before["engagement_bronze"][-2], "clean lags"
        done = shorten(pipeline)
        for table in TABLES:
            kept = aged.versions(table)
            assert kept == list(range(needed[table], before[table][-1] + 1)), table
            assert counts(spark, table, kept) == rows[table][-len(kept) :], "they can be read"
            assert re.fullmatch(r"\d+ files removed", done[table])
            assert not [n for n in os.listdir(aged.log(table)) if older(n, needed[table])]
        assert shorten(pipeline) == {}, "nothing more to do"


def test_a_log_that_nobody_follows_is_cut_at_its_newest_version(
    aged: Aged, spark: SparkSession
) -> None:
    with writing(aged) as pipeline:
        replays = pipeline.lake.tables.replays
        creation.ensure(pipeline.lake, replays)
        spark.sql(f"ALTER TABLE {replays.name} SET TBLPROPERTIES ('{INTERVAL}' = '1')")
        for number in range(3):
            row = f"'r{number}', 'replay:r{number}', current_timestamp(), DATE'2026-11-20'"
            spark.sql(f"INSERT INTO {replays.name} VALUES ({row})")
        newest = aged.versions(replays.name)[-1]
        age(aged.root)
        assert re.fullmatch(r"\d+ files removed", shorten(pipeline)[replays.name])
        assert aged.versions(replays.name) == [newest]
        assert spark.table(replays.name).count() == 3


def newest_ledger(aged: Aged, table: str) -> int:
    found = ledger.of_log(aged.log(table), None)
    return next(commit.version for commit in found if commit.ledger)


def counts(spark: SparkSession, table: str, versions: list[int]) -> list[int]:
    reader = spark.read
    return [reader.option("versionAsOf", v).table(table).count() for v in versions]


def older(name: str, version: int) -> bool:
    found = re.match(r"\.?(\d{20})", name)
    return bool(found) and int(found[1]) < version


def test_a_run_after_it_goes_on_exactly(aged: Aged, spark: SparkSession) -> None:
    with writing(aged) as pipeline:
        assert shorten(pipeline)
    run_once(aged.root, aged.lake.definition)
    lake = reading(spark, aged.root)
    known = [*aged.lake.events, *EVENTS, *LANDED]
    assert lake.gold() == oracle.features(known, oracle.as_of(known)) and lake.different() == 0
    told = lake.ledgers()[0]
    assert (told["mode"], told.get("why")) == ("incremental", None), "hours and buckets are trusted"
    told_of = spark.table("tidemill_batches").where("query IN ('clean', 'feature')")
    assert told_of.groupBy("query", "view", "batch").count().where("count > 1").isEmpty()
    assert told_of.where("query = 'feature'").agg({"events": "sum"}).collect()[0][0] == 5 + 6


def test_what_is_young_or_not_recorded_stays(aged: Aged, spark: SparkSession) -> None:
    with writing(aged) as pipeline:
        spark.sql("DELETE FROM tidemill_batches WHERE view IS NOT NULL")
        before = aged.versions("engagement_buckets"), aged.versions("engagement_features")
        assert set(shorten(pipeline)) == set(TABLES[:3])
        assert before == (aged.versions("engagement_buckets"), aged.versions("engagement_features"))
    with writing(aged, maintenance={"log": "2d"}) as pipeline:
        assert shorten(pipeline) == {}


def test_a_dry_run_lists_it(aged: Aged) -> None:
    before = aged.files()
    words = ("maintain", "engagement", "--root", aged.root, "--json", "--dry-run")
    steps = command_line.call(*words).json["steps"]
    listed = {step["table"]: step["reason"] for step in steps if step["action"] == "log"}
    assert set(listed) == set(TABLES) and aged.files() == before
    assert re.fullmatch(
        r"\d+ files of the log before version \d+ \(the query clean has read no further\)",
        listed["engagement_bronze"],
    )


# -- where it does nothing -----------------------------------------------------------------------


def test_a_catalog_s_log_is_left(aged: Aged, caplog: pytest.LogCaptureFixture) -> None:
    before = aged.files()
    with writing(aged) as pipeline, caplog.at_level(logging.INFO):
        lake = replace(pipeline.lake, place=Place(aged.root, "main", "default"))
        assert maintenance.plan(lake, Clock(), ("log",)) == []
        assert log_retention.expired(lake, lake.tables.bronze, {}) is None
    assert "nothing is removed of it" in caplog.text and aged.files() == before


def test_delta_cleans_by_itself_where_the_pipeline_says_so(aged: Aged) -> None:
    def said(pipeline: Pipeline, name: str, *tables: str) -> set[str]:
        return {pipeline.lake.metadata(table).properties[name] for table in tables}

    with writing(aged) as pipeline:
        assert said(pipeline, CLEANING, *TABLES) == {"false"}
        assert said(pipeline, INTERVAL, *TABLES) == {"1"}, "a user's own"
        assert said(pipeline, INTERVAL, "engagement_hours") == {EVERY}
        assert shorten(pipeline)
    with writing(aged, maintenance={"log": None}) as pipeline:
        assert said(pipeline, CLEANING, *TABLES) == {"true"}
        assert said(pipeline, CLEANING, "tidemill_batches") == {"false"}, "of all pipelines"
        age(aged.root)
        assert shorten(pipeline) == {}


def test_what_only_the_log_said_is_said_before(aged: Aged, spark: SparkSession) -> None:
    """A lake of version 0.1 that has expired buckets tells of it in a ledger alone."""
    with writing(aged) as pipeline:
        lake, view = pipeline.lake, pipeline.lake.pipeline.views[0]
        expired_before.note(lake, "engagement_buckets", at("20T00:00"))
        said = lake.metadata("engagement_buckets").properties
        assert expired_before.PROPERTY in said
        name = f"'{expired_before.PROPERTY}'"
        spark.sql(f"ALTER TABLE engagement_buckets UNSET TBLPROPERTIES ({name})")
        note = f"{expired_before.WORDS}2026-11-19T00:00:00Z"
        with writer.carrying(
            spark, {"generation": lake.generation, "batch": 0, ledger.UPKEEP: note}
        ):
            spark.sql("ALTER TABLE engagement_buckets SET TBLPROPERTIES ('noted' = 'there')")
        assert log_retention.remove(lake, lake.tables.of(view).buckets) > 0
        assert lake.metadata("engagement_buckets").properties[expired_before.PROPERTY] == note[-20:]


@pytest.mark.parametrize("found", ["10m", "soon"])
def test_the_retention_is_declared(small: Small, found: str) -> None:
    with pytest.raises(UsageError, match=r"at least 1h|no length of time"):
        small.definition.overridden({"maintenance": {"log": found}})


# -- tidemill_batches ----------------------------------------------------------------------------


def row_of(lake: TestLake, day: datetime, version: int) -> BatchRow:
    told = f'{{"batch": {version}, "refresh": {version}, "mode": "incremental"}}'
    return BatchRow(
        "feature",
        lake.lake.generation,
        version,
        day,
        version,
        view="engagement",
        as_of=day,
        ledger=told,
    )


def test_status_reads_the_newest_day(lakes: Lakes) -> None:
    lake = lakes.fed([view_at(1, "11:40")])
    now = datetime.now(timezone.utc)
    batch_log.record(lake.lake)
    version = lake.lake.gold_state(lake.view).version
    for days in range(8, 0, -1):  # older rows, of earlier versions of gold
        batch_log.append(lake.lake, [row_of(lake, now - days * DAY, version - days)])
    lakes.open(lakes.made[0])  # the day to begin with is of the view's making
    status = lake.spark.table("engagement_status")
    assert [row["gold_version"] for row in status.collect()] == [version]
    assert max(files_read(status)) == 1, "of nine"
    assert max(files_read(lake.spark.table("engagement_current"))) == 1
    assert batch_log.recorded(lake.lake)["engagement_features"] == version


def test_status_finds_what_was_recorded_days_ago(lakes: Lakes) -> None:
    """Gold's newest commits are not recorded: the newest row that is there is shown."""
    lake = lakes.fed([view_at(1, "11:40")])
    now = datetime.now(timezone.utc)
    batch_log.append(lake.lake, [row_of(lake, now - days * DAY, 9 - days) for days in (9, 5)])
    lakes.open(lakes.made[0])
    assert [row["gold_version"] for row in lake.spark.table("engagement_status").collect()] == [4]


def test_the_open_day_is_joined(lakes: Lakes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run appends each minute: 1,440 files a day, which every reader would open."""
    monkeypatch.setattr(compaction, "OPEN_FILES", 2)
    lake = lakes.new()
    now = datetime.now(timezone.utc)
    for version in range(3):
        batch_log.append(lake.lake, [row_of(lake, now, version)])
    (step,) = maintenance.plan(lake.lake, Clock(), ("optimize",))
    assert (step.table, step.reason) == ("tidemill_batches", "3 files in 1 partition")
    assert step.run() == "3 files became 1"


def test_a_run_joins_what_it_appends(lakes: Lakes, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every fourth version here: `<view>_current` never opens more files of the day."""
    monkeypatch.setattr(batch_log, "JOINED_EVERY", 4)
    lake = lakes.new()
    now = datetime.now(timezone.utc)
    table = lake.lake.tables.batches.name
    files = []
    for version in range(9):
        batch_log.append(lake.lake, [row_of(lake, now, version)])
        files.append(len(lake.lake.files(table)))
    assert files == [1, 2, 3, 1, 2, 3, 1, 2, 3], "joining is a version too"
    assert lake.spark.table(table).count() == 9


def files_read(frame: DataFrame) -> list[int]:
    """The files that each scan of `tidemill_batches` read."""
    query = frame._jdf.queryExecution()
    query.toRdd().count()
    found: list[int] = []

    def walk(plan) -> None:
        if "tidemill_batches" in plan.nodeName():
            found.append(plan.metrics().apply("numFiles").value())
        for below in (plan.children(), plan.subqueries()):
            each = below.iterator()
            while each.hasNext():
                walk(each.next())

    walk(query.executedPlan())
    assert found
    return found
