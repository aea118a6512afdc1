"""Killed anywhere and run again: the same gold, every record accounted for, no bucket twice."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import deltalog
import oracle
from children import Child, Children
from lakes import Event, Lakes, TestLake, at
from runs import (
    Small,
    assert_once,
    check_whole,
    of_files,
    opened,
    reading,
    records_of,
    run_once,
    write_file,
)
from tidemill.config.pipeline_file import SHIPPED
from tidemill.lake import lock
from tidemill.lake.commits import failpoints
from tidemill.lake.commits.failpoints import POINTS
from tidemill.pipeline import batch_log, on_demand, runner
from tidemill.pipeline.steps import clean_step, feature_step

pytestmark = pytest.mark.crash

SEEDS = (1, 2, 3, 4)
SECOND: list[Event] = [
    ("a1", "p1", "g", "view", at("10:00")),  # accepted in the first batch
    ("b1", "p1", "g", "view", at("11:40")),
    ("b1", "p1", "g", "view", at("11:40")),
    ("b2", "p3", "g", "select", at("11:41")),
    ("b3", "p1", "g", "view", at("10:00")),  # late: the minute has a bucket of batch 0
    (None, "p2", "h", "highlight", at("20T12:00")),
]

# The small lake has batch 0 in every table. The second file becomes batch 1, and every child that
# takes it on is killed, each a little further on than the one before; what it leaves tells where:
#
#   newest batch of ...       quarantine  events  buckets  gold | done by clean, feature | recorded
FELL = {
    "clean.judged": (0, 0, 0, 0, 0, 0, 0),
    "clean.quarantine_written": (1, 0, 0, 0, 0, 0, 0),
    "clean.events_written": (1, 1, 0, 0, 0, 0, 0),
    "feature.buckets_computed": (1, 1, 0, 0, 1, 0, 0),
    "feature.buckets_written": (1, 1, 1, 0, 1, 0, 0),
    "refresh.changes_computed": (1, 1, 1, 0, 1, 0, 0),
    "refresh.merged": (1, 1, 1, 1, 1, 0, 0),
    "batches.recorded": (1, 1, 1, 1, 1, 0, 1),
}
LOGGED = {"refresh.changes_computed", "refresh.merged"}


@pytest.mark.parametrize("points", [POINTS[:4], POINTS[4:]], ids=["until buckets", "from there"])
def test_sigkill_at_every_point(
    points: tuple[str, ...],
    small: Small,
    children: Children,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    """Each child goes on where the last one died, once that one's JVM is gone."""
    half = small.copy_all(tmp_path)
    records, events = records_of(SECOND, ['{"event_id']), [*half.events, *SECOND]
    write_file(half.input, "2.jsonl", records)
    for point in points:
        child = killed(children, half.root, half.input, point)
        assert standing(half.root) == FELL[point], point
        check_nothing_twice(half.root)
        # What lies between the append and the diff leaves no trace in a table, but in the log.
        assert ("feature batch 1: " in child.err.read_text()) == (point in LOGGED)

    jvm = json.loads((half.root / lock.NAME).read_text())["jvm"]["pid"]
    with opened(half.root, half.definition) as again:
        assert not alive(jvm)
        runner.run_once(again, runner.Stop())
    assert standing(half.root) == (1, 1, 1, 1, 1, 1, 1)
    lake = reading(spark, half.root)
    check_whole(lake, [*half.records, *records], events)
    check_batches(lake)


def killed(children: Children, root: Path, files: Path, at_point: str, name: str = "") -> Child:
    """Run the pipeline in a child that kills itself at the point, as `kill -9` does."""
    words = ("--source", "files", "--input", files, "--once", "--root", root, "--verbose")
    child = children.tidemill(
        "run", name or "engagement", *words, "--wait", "60s", TIDEMILL_FAIL_AT=f"{at_point}:kill"
    )
    assert child.ended() == -signal.SIGKILL, child.err.read_text()
    assert "done" not in child.out.read_text()
    return child


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def standing(root: Path) -> tuple[int, ...]:
    """The newest batch of each ledger, of each checkpoint, and of the table of batches."""
    batches = (
        max(told["batch"] for told in deltalog.ledgers(root / f"engagement_{table}"))
        for table in ("quarantine", "events", "buckets", "features")
    )
    told = deltalog.rows(root / "tidemill_batches")
    recorded = max(row["batch"] for row in told if row["query"] == "feature")
    return (*batches, *(committed(root, query) for query in ("clean", "feature")), recorded)


def committed(root: Path, query: str) -> int:
    folder = root / "_checkpoints" / f"engagement_{query}" / "commits"
    return max(int(path.name) for path in folder.iterdir() if path.name.isdigit())


def check_nothing_twice(root: Path) -> None:
    for table in ("quarantine", "events", "buckets"):
        assert_once(told["batch"] for told in deltalog.ledgers(root / f"engagement_{table}"))
    for table in ("quarantine", "events"):
        assert_once(row["record_id"] for row in deltalog.rows(root / f"engagement_{table}"))
    buckets = deltalog.rows(root / "engagement_buckets")
    assert_once((b["profile_id"], b["gti"], b["bucket_start"], b["batch"]) for b in buckets)


def check_batches(lake: TestLake) -> None:
    """`tidemill_batches` tells of every batch once, and of none that is not there; a refresh of
    several tells of all of them."""
    rows = lake.spark.table("tidemill_batches").collect()
    told = sorted(row.batch for row in rows if row.query == "clean")
    assert told == sorted(batch["batch"] for batch in lake.ledgers("events"))
    ledgers = [json.loads(row.ledger) for row in rows if row.query == "feature"]
    taken = [range(each["from_batch"] + 1, each["batch"] + 1) for each in ledgers]
    for batch in lake.ledgers("buckets"):
        assert sum(batch["batch"] in each for each in taken) == 1, batch


def test_sigkill_in_a_rebuild_of_a_part(
    small: Small, children: Children, spark: SparkSession, tmp_path: Path
) -> None:
    """Its rows are in place, and gold is still of those before it: the next run makes it again."""
    root = small.copy(tmp_path / "lake")
    lake = reading(spark, root)
    spark.sql("UPDATE engagement_buckets SET view_count = view_count + 5 WHERE profile_id = 'p1'")
    on_demand.refresh(lake.lake, lake.clock, None)
    assert lake.gold() != (wanted := oracle.features(small.events, oracle.as_of(small.events)))
    words = ("--since", "2026-11-20T00:00", "--root", root)
    fail_at = "rebuild.put_in_place:kill"
    child = children.tidemill("rebuild", "engagement", *words, TIDEMILL_FAIL_AT=fail_at)
    assert child.ended() == -signal.SIGKILL, child.err.read_text()
    assert lake.different() > 0 and lake.gold() != wanted
    run_once(root, small.definition)
    lake = reading(spark, root)
    assert lake.gold() == wanted and lake.different() == 0


# -- seeds ---------------------------------------------------------------------------------------


def some_events(choose: random.Random, batch: int, before: list[Event]) -> list[Event]:
    """A batch's events: some known already, some twice, some late, at least one new."""
    midnight = at("20T12:00")
    events: list[Event] = [
        (
            choose.choice([None, f"e{batch}.{n}"]),
            f"p{choose.randrange(4)}",
            f"g{choose.randrange(2)}",
            choose.choice(oracle.TYPES),
            midnight + timedelta(seconds=choose.randrange(24 * 3600)),
        )
        for n in range(choose.randint(1, 8))
    ]
    known = [event for event in (*before, *events) if event[0] is not None]
    events += choose.sample(known, min(len(known), 3))
    choose.shuffle(events)
    return events


def some_records(choose: random.Random, events: list[Event]) -> list[str]:
    records = records_of(events, choose.sample(["{}", "{", "[]", "7"], choose.randrange(3)))
    choose.shuffle(records)
    return records


# Each batch dies four times and is carried on each time by the same batch again.
DEATHS = (
    ("clean.judged", "clean.events_written", "feature.buckets_written", "refresh.merged"),
    (
        "clean.quarantine_written",
        "feature.buckets_computed",
        "refresh.changes_computed",
        "batches.recorded",
    ),
)


def test_the_seeds_die_at_every_point() -> None:
    assert sorted(point for points in DEATHS for point in points) == sorted(POINTS)


@pytest.mark.parametrize(
    "seed", [SEEDS[0], *(pytest.param(seed, marks=pytest.mark.full) for seed in SEEDS[1:])]
)
def test_an_exception_at_every_point(
    seed: int, lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose, lake = random.Random(seed), lakes.new()
    events: list[Event] = []
    records: list[str] = []
    for batch, points in enumerate(choose.sample(DEATHS, len(DEATHS))):
        events += (new := some_events(choose, batch, events))
        records += (texts := some_records(choose, new))
        carry(lake, lake.bronze(texts), batch, list(points), monkeypatch)
        assert lake.gold() == oracle.features(events, oracle.as_of(events)), points
    check_whole(lake, records, events)
    check_batches(lake)


def carry(
    lake: TestLake,
    rows: DataFrame,
    batch: int,
    points: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bring bronze rows through clean, feature and the record; each step again when it dies."""
    events = lake.events().where(F.col("batch") == batch)
    steps = (
        lambda: clean_step.clean_batch(rows, batch, lake=lake.lake),
        lambda: feature_step.feature_batch(
            events, batch, lake=lake.lake, clock=lake.clock, follows="event"
        ),
        lambda: batch_log.record(lake.lake),
    )
    for step in steps:
        while not passed(step, points, monkeypatch):
            del points[0]
    assert points == []


def passed(step: Callable[[], None], points: list[str], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the step ended well, although the first of the points, if any, raises."""
    failpoints._reached.clear()
    with monkeypatch.context() as failing:
        failing.setenv(failpoints.VARIABLE, points[0] if points else "")
        try:
            step()
        except failpoints.Injected as died:
            assert str(died) == points[0]
            return False
    return True


@pytest.mark.full
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("point", POINTS)
def test_sigkill_in_any_batch(
    point: str, seed: int, children: Children, spark: SparkSession, tmp_path: Path
) -> None:
    """Gold is there, and three files more, one per batch of each query; the child dies in a batch
    that the seed draws."""
    choose = random.Random(f"{point} {seed}")
    declared = file_by_file(tmp_path / "engagement.yaml")
    records, events = feed(choose, tmp_path / "input", 0, 1)
    run_once(tmp_path / "lake", of_files(tmp_path / "input", declared))
    more, those = feed(choose, tmp_path / "input", 1, 4, events)
    time = choose.randint(1, 2 if point == "batches.recorded" else 3)
    killed(children, tmp_path / "lake", tmp_path / "input", f"{point}@{time}", declared)
    run_once(tmp_path / "lake", of_files(tmp_path / "input", declared))
    lake = reading(spark, tmp_path / "lake", declared)
    check_whole(lake, [*records, *more], [*events, *those])
    check_batches(lake)


@pytest.mark.parametrize(
    "point", ["feature.buckets_written@2", "refresh.changes_computed@1", "refresh.merged@1"]
)
def test_sigkill_while_gold_is_filled(
    point: str, children: Children, spark: SparkSession, tmp_path: Path
) -> None:
    """Buckets of each batch, gold in the last: what a kill leaves the next run brings to gold."""
    declared = file_by_file(tmp_path / "engagement.yaml")
    records, events = feed(random.Random(point), tmp_path / "input", 0, 3)
    killed(children, tmp_path / "lake", tmp_path / "input", point, declared)
    run_once(tmp_path / "lake", of_files(tmp_path / "input", declared))
    lake = reading(spark, tmp_path / "lake", declared)
    check_whole(lake, records, events)
    newest = max(told["batch"] for told in lake.ledgers("buckets"))
    assert [told["batch"] for told in lake.ledgers()] == [newest] and newest > 1


def feed(
    choose: random.Random, folder: Path, first: int, end: int, before: Sequence[Event] = ()
) -> tuple[list[str], list[Event]]:
    """Write a file for each batch from `first` to before `end`; return their records and events."""
    events: list[Event] = []
    records: list[str] = []
    for n in range(first, end):
        events += (new := some_events(choose, n, [*before, *events]))
        records += (texts := some_records(choose, new))
        write_file(folder, f"{n}.jsonl", texts, age=60 - n)
    return records, events


def file_by_file(path: Path) -> str:
    """The shipped pipeline with one file per batch."""
    shipped = (SHIPPED / "engagement.yaml").read_text()
    path.write_text(shipped.replace("max_files_per_trigger: 1000", "max_files_per_trigger: 1"))
    return str(path)
