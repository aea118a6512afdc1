"""docs/operations.md followed word for word, after the damage that each recipe is about.

What comes out is compared with the events by plain Python: every record accounted for once, every
bucket and every feature counted again. That `reconcile` finds nothing is not taken for a proof.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from unittest import mock

import pytest
from pyspark.sql import SparkSession

import command_line
import oracle
from command_line import Answer, call
from lakes import NOW, Event, TestLake, at
from runbook import START, blocks
from runs import Small, check_whole, reading, records_of, write_file
from tidemill.config.pipeline_file import SHIPPED, load
from tidemill.config.settings import Clock, Place
from tidemill.lake.commits import failpoints
from tidemill.lake.open import open_for_reading
from tidemill.operations import maintenance

pytestmark = pytest.mark.stream
RUN = ("run", "engagement", "--source", "files", "--input", "events", "--once")
RECIPES = blocks()
LOST = "Lost checkpoint of land"
FOLLOWED = {
    START: 1,
    "Lost checkpoint of clean or feature": 2,
    LOST: 1,
    f"{LOST} / Every file is still there": 1,
    f"{LOST} / Some files are gone": 2,
    "Poisoned time": 3,
    "Upgrade": 1,
    "Rollback / Of the code": 1,
    "Rollback / Of the data": 4,
    "Late flood": 2,
    "Retention ran past": 1,
    "Gold differs": 2,
    "Gold differs / It was mended by itself": 1,
    "Maintenance": 3,
    "Interrupted rebuild": 1,
    "A part is wrong": 4,
}
SECOND: list[Event] = [
    ("b1", "p3", "g", "view", at("18T10:00")),
    ("b2", "p1", "g", "select", at("11:20")),
]
THIRD: list[Event] = [
    ("c1", "p1", "g", "view", at("11:25")),
    ("c2", "p4", "h", "view", at("19T10:00")),
]


def test_every_block_is_followed_by_a_test_below() -> None:
    assert {section: len(found) for section, found in RECIPES.items()} == FOLLOWED


def follow(section: str, *numbers: int) -> list[Answer]:
    """Follow a section's blocks, all or those with these numbers; every command ends with 0."""
    found = RECIPES[section]
    answers = [one for n in numbers or range(len(found)) for one in found[n].follow()]
    assert [answer for answer in answers if answer.code] == []
    return answers


@pytest.fixture(scope="module")
def base(small: Small, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Small:
    """A lake of two batches, of a file each."""
    copy = small.copy_all(tmp_path_factory.mktemp("recipes"))
    return landed(copy, "2.jsonl", SECOND, str(copy.input), "--root", str(copy.root))


def landed(lake: Small, name: str, events: list[Event], input_: str, *words: str) -> Small:
    """The lake after a run over one more file."""
    write_file(lake.input, name, records_of(events), age=30)
    answer = call(*RUN[:5], input_, "--once", *words)
    assert answer.code == 0, answer
    return with_more(lake, events)


def with_more(lake: Small, events: list[Event]) -> Small:
    records = [*lake.records, *records_of(events)]
    return replace(lake, events=[*lake.events, *events], records=records)


@pytest.fixture
def lake(base: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    """A copy as `./lake` and `./events` of the current folder."""
    monkeypatch.chdir(tmp_path)
    return base.copy_all(tmp_path, "events")


@pytest.fixture
def check(spark: SparkSession) -> Callable[[Small], None]:
    """Count a lake again from its events and records."""
    return lambda lake: check_whole(reading(spark, lake.root), lake.records, lake.events)


Check = Callable[[Small], None]


def numbers(answer: Answer) -> list[str]:
    """The values of an answer that is one row."""
    return answer.out.splitlines()[1].split()


def refused(told: str) -> None:
    answer = call(*RUN)
    assert (answer.code, told in answer.err) == (2, True), answer


def test_on_a_lake_that_is_right(lake: Small, check: Check, spark: SparkSession) -> None:
    """First look, an upgrade with a new file, a rollback of the code, a late flood."""
    follow(START)
    write_file(lake.input, "3.jsonl", records_of(THIRD))
    lake = with_more(lake, THIRD)
    assert "different 0" in follow("Upgrade")[-1].out
    check(lake)

    before = told_batches(lake, spark)
    follow("Rollback / Of the code")
    assert told_batches(lake, spark) == before
    check(lake)

    flood: list[Event] = [
        (f"f{n}", "p1", "g", "view", at(f"19T{n % 24:02}:{n % 60:02}")) for n in range(60)
    ]
    lake = landed(lake, "4.jsonl", flood, "events")
    answers = follow("Late flood", 0)
    assert "late_most" in answers[-1].out
    follow("Late flood", 1)
    check(lake)
    follow("Gold differs / It was mended by itself")


def told_batches(lake: Small, spark: SparkSession) -> set[tuple[object, ...]]:
    reading(spark, lake.root)
    rows = spark.table("tidemill_batches").where("query IN ('clean', 'feature')").collect()
    assert rows
    return {(row["query"], row["batch"], row["events"]) for row in rows}


def test_lost_checkpoint_of_clean_or_feature(lake: Small, check: Check) -> None:
    for query in ("clean", "feature"):
        shutil.rmtree(lake.root / "_checkpoints" / f"engagement_{query}")
    refused("the checkpoint of clean is lost")
    (rebuilt,) = follow("Lost checkpoint of clean or feature", 0)
    assert "keys changed 0" in rebuilt.out
    reconciled, landed_records, judged = follow("Lost checkpoint of clean or feature", 1)
    assert "different 0" in reconciled.out
    assert numbers(landed_records) == numbers(judged) == [str(len(lake.records))]
    check(lake)
    assert "batches 0" in call(*RUN).out


def test_lost_checkpoint_of_land(lake: Small, check: Check) -> None:
    shutil.rmtree(lake.root / "_checkpoints" / "engagement_land")
    refused("the checkpoint of land is lost")
    (topics,) = follow(LOST)
    assert len(topics.out.splitlines()) == 3, topics
    *_, old, new = follow(f"{LOST} / Every file is still there")
    assert old.out == new.out
    assert numbers(old)[0] == str(len(lake.records))
    check(lake)
    check(replace(lake, root=Path("lake2").absolute()))


def test_lost_checkpoint_of_land_and_files_are_gone(
    small: Small, check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lake of its own: bronze names the files by where they were landed from."""
    monkeypatch.chdir(tmp_path)
    events = tmp_path / "events"
    shutil.copytree(small.input, events)
    lake = replace(small, root=tmp_path / "lake", input=events)
    lake = landed(lake, "2.jsonl", SECOND, "events")
    (events / "1.jsonl").unlink()
    shutil.rmtree(lake.root / "_checkpoints" / "engagement_land")
    refused("the checkpoint of land is lost")
    (topics,) = follow(LOST)
    assert [Path(line).exists() for line in topics.out.splitlines()[1:]] == [False, True]
    recipe = RECIPES[f"{LOST} / Every file is still there"][0]
    elsewhere = replace(recipe, text=recipe.text.replace("./lake2", "./short"))
    *_, old, short = elsewhere.follow()
    assert numbers(old) != numbers(short), "the count says that files are gone"
    *_, old, new = follow(f"{LOST} / Some files are gone")
    assert old.out == new.out
    check(replace(lake, root=Path("lake2").absolute()))


def test_poisoned_time(lake: Small, check: Check, spark: SparkSession) -> None:
    poison: list[Event] = [("z", "p1", "g", "view", datetime(2099, 5, 1, tzinfo=timezone.utc))]
    with mock.patch.object(command_line, "NOW", datetime(2099, 5, 1, 1, tzinfo=timezone.utc)):
        broken = landed(lake, "3.jsonl", poison, "events")
    assert reading(spark, lake.root).gold().keys() == {("p1", "g")}
    (listed,) = follow("Poisoned time", 0)
    assert "2099-05-01T00:00:00Z" in listed.out
    follow("Poisoned time", 1, 2)
    check(replace(lake, records=broken.records))
    refused_now = reading(spark, lake.root).table("quarantine").where("raw_payload LIKE '%2099%'")
    assert [row["reasons"] for row in refused_now.collect()] == [["in_future"]]


def test_rollback_of_the_data(lake: Small, check: Check, spark: SparkSession) -> None:
    wrong: list[Event] = [(f"w{n}", "wrong", "g", "view", at("11:29")) for n in range(3)]
    landed(lake, "3.jsonl", wrong, "events")
    versions, one, earlier = follow("Rollback / Of the data", 0)
    assert "as_of" in versions.out and "profile_id" in one.out
    assert "as_of 2026-11-21T11:00:00Z" in earlier.out
    follow("Rollback / Of the data", 1, 2, 3)
    check(lake)
    kept = spark.read.format("delta").load(str(Path("bronze.copy").absolute()))
    assert kept.count() == len(lake.records) + len(wrong)
    *_, landed_records, judged = follow("Lost checkpoint of clean or feature", 1)
    assert numbers(landed_records) == numbers(judged)


def test_retention_ran_past(
    lake: Small, check: Check, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Land has gone on; the log behind it is gone before clean has read it."""
    reading(spark, lake.root)
    spark.sql("ALTER TABLE engagement_bronze SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    write_file(lake.input, "3.jsonl", records_of(THIRD))
    with monkeypatch.context() as stopping:
        failpoints._reached.clear()
        stopping.setenv(failpoints.VARIABLE, "clean.judged")
        assert call(*RUN).code == 3
    log = lake.root / "engagement_bronze" / "_delta_log"
    commits = sorted(log.glob("[0-9]*.json"))
    assert log.joinpath(f"{commits[-1].stem}.checkpoint.parquet").exists()
    for commit in commits[:-1]:
        commit.unlink()
    assert call(*RUN).code == 3
    follow("Retention ran past")
    check(with_more(lake, THIRD))
    *_, landed_records, judged = follow("Lost checkpoint of clean or feature", 1)
    assert numbers(landed_records) == numbers(judged)


def test_gold_differs(lake: Small, check: Check, spark: SparkSession) -> None:
    reading(spark, lake.root)
    spark.sql("UPDATE engagement_features SET view_count_1d = 99 WHERE gti = 'h'")
    assert call("reconcile", "engagement").code == 1
    gold, _, repaired = follow("Gold differs")
    assert "UPDATE" in gold.out
    assert re.search(r"different 0\b.*repaired 1\b", repaired.out), repaired
    check(lake)


def mine(**words: str) -> None:
    """`mine.yaml`: the shipped pipeline with other words, and its rules beside it."""
    text = (SHIPPED / "engagement.yaml").read_text()
    for name, value in words.items():
        text, changed = re.subn(rf"^({name}: ).*$", rf"\g<1>{value}", text, flags=re.MULTILINE)
        assert changed
    Path("mine.yaml").write_text(text)
    shutil.copy(SHIPPED / "engagement.quality.yml", "engagement.quality.yml")
    shutil.copy(SHIPPED / "engagement.quality.yml", "mine.quality.yml")


def test_maintenance(lake: Small, check: Check, spark: SparkSession) -> None:
    """And an expiry with a history that was too short, with a batch after it."""
    follow("Maintenance", 0, 1)
    check(lake)
    mine(history="1d")
    short = TestLake(open_for_reading(spark, Place(lake.root), load("mine.yaml")), Clock(NOW))
    done = maintenance.maintain(short.lake, maintenance.plan(short.lake, short.clock, ["expire"]))
    assert {step.result for step in done} == {"removed what is before 2026-11-20T11:00:00Z"}
    lake = landed(lake, "3.jsonl", THIRD, "events")
    counts = [call("query", line.split('"')[1]) for line in RECIPES["Maintenance"][2].commands[1:]]
    assert numbers(counts[0]) != numbers(counts[1]), "the counts say that something is missing"
    mine(history="400d")
    *_, events, held = follow("Maintenance", 2)
    assert numbers(events) == numbers(held)
    check(lake)


def test_interrupted_rebuild(lake: Small, check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as dying:
        failpoints._reached.clear()
        dying.setenv(failpoints.VARIABLE, "clean.quarantine_written")
        assert call("rebuild", "engagement", "--from", "bronze").code == 3
    follow("Interrupted rebuild")
    check(lake)
    assert "different 0" in call("reconcile", "engagement").out


def test_a_part_is_wrong(lake: Small, check: Check, spark: SparkSession) -> None:
    for number, lost in enumerate(
        ("profile_id = 'p1' AND gti = 'g'", "bucket_hour > '2026-11-20'"), start=1
    ):
        reading(spark, lake.root)
        spark.sql(f"DELETE FROM engagement_buckets WHERE {lost}")
        follow("A part is wrong", number, 0)
        check_buckets_and_gold(lake, spark)
    mine()
    with Path("mine.yaml").open("a") as file:
        file.write("      - count: {}\n        over: [1h]\n        name: event\n")
    follow("A part is wrong", 3)
    sql = "SELECT profile_id, gti, event_count_1h FROM engagement_features"
    answer = call("query", sql, "--pipeline", "mine.yaml", "--json")
    counted = {(profile, gti): n for profile, gti, n in answer.json["rows"] if n}
    assert counted == {("p1", "g"): 2, ("p1", "h"): 1}


def check_buckets_and_gold(lake: Small, spark: SparkSession) -> None:
    """As `check`, but that the rows of a key that was made again name another batch."""
    found = reading(spark, lake.root)
    assert found.gold() == oracle.features(lake.events, oracle.as_of(lake.events))
    assert found.different() == 0
    counted: Counter[tuple[object, ...]] = Counter()
    for row in spark.table("engagement_minute_counts").collect():
        minute = row["bucket_minute"].astimezone(timezone.utc)
        counted[row["profile_id"], row["gti"], row["event_type"], minute] += row["count"]
    assert +counted == oracle.buckets(lake.events)
