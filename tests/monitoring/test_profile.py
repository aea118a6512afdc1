"""Where the time of a batch went: stacks, their parts, batches, the tree, and a real run."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from command_line import call
from lakes import NOW, at
from on_connect import IS_CONNECT
from runs import records_of, write_file
from tidemill.cli.output import profile_lines
from tidemill.monitoring.profile import flame, stack_parts
from tidemill.monitoring.profile.batch_profile import BatchProfile, Profiles
from tidemill.monitoring.profile.stack_sampler import Sample
from tidemill.monitoring.report import flame_picture

BATCH = [
    "app//py4j.ClientServerConnection.sendCommand(ClientServerConnection.java:244)",
    "app//org.apache.spark.sql.execution.streaming.sources.ForeachBatchSink.addBatch(F.scala:41)",
]
EVENTS = [
    ("a1", "p1", "g", "view", at("10:00")),
    ("a2", "p2", "g", "select", at("11:30")),
]
WAITING = [
    "java.base@17.0.15/jdk.internal.misc.Unsafe.park(Native Method)",
    "app//org.apache.spark.scheduler.DAGScheduler.runJob(DAGScheduler.scala:1021)",
]


@pytest.mark.parametrize(
    ("frames", "parts", "part"),
    [
        ([], [], "other"),
        (["java.base@17/java.lang.Object.wait(Native Method)"], [], "other"),
        (BATCH, ["python"], "python"),
        ([*WAITING, *BATCH], ["python", "jobs"], "jobs"),
        (
            [*WAITING, "app//org.apache.spark.sql.delta.Snapshot.computedState(S.scala:1)", *BATCH],
            ["python", "snapshot", "jobs"],
            "snapshot",
        ),
        (
            [
                *WAITING,
                "app//org.apache.spark.sql.execution.datasources.FileFormatWriter$.write(F:1)",
                "app//org.apache.spark.sql.delta.DeltaLog.withNewTransaction(DeltaLog.scala:2)",
            ],
            ["write", "jobs"],
            "write",
        ),
        (
            [
                "app//org.codehaus.janino.Parser.parse(Parser.java:1)",
                "app//org.apache.spark.sql.execution.WholeStageCodegenExec.doExecute(W.scala:1)",
            ],
            ["jobs", "compiling"],
            "compiling",
        ),
        (
            ["app//org.apache.spark.sql.execution.QueryExecution.lazyOptimizedPlan(Q.scala:1)"],
            ["planning"],
            "planning",
        ),
        (
            ["app//org.apache.spark.sql.delta.OptimisticTransactionImpl.doCommit(O.scala:1)"],
            ["commit"],
            "commit",
        ),
        (
            ["app//org.apache.spark.sql.execution.command.ExecutedCommandExec.doExecute(c:1)"],
            [],
            "other",
        ),
    ],
)
def test_the_part_of_a_stack(frames: list[str], parts: list[str], part: str) -> None:
    found = stack_parts.parts_of(frames)
    assert (found, stack_parts.part_of(found)) == (parts, part)
    assert part in stack_parts.PARTS


def test_a_stack_as_scala_prints_it() -> None:
    assert stack_parts.frames_of("Array(app//a.B.c(B.java:1), a.D.e(D.java:2))") == [
        "app//a.B.c(B.java:1)",
        "a.D.e(D.java:2)",
    ]
    assert stack_parts.frames_of("Array()") == []


def _sample(seconds: float, functions: tuple[str, ...] = (), *parts: str) -> Sample:
    return Sample(NOW.timestamp() + seconds, "run", functions, parts)


def test_looks_belong_to_the_batch_of_their_time() -> None:
    """What is outside a batch is told apart; each look counts for as long as it was the newest."""
    profiles = Profiles()
    profiles.started("run", "clean")
    for sample in (
        _sample(0.1, (), "offsets"),
        _sample(1.0, ("clean.clean",), "python", "jobs"),
        _sample(1.1, ("clean.clean",), "python"),
        _sample(1.4, ("clean.clean",), "python", "jobs"),
        _sample(3.2, (), "checkpoint"),
    ):
        profiles.take(sample)
    profiles.progressed("run", 7, NOW + timedelta(seconds=1), 2.0)
    profiles.ended("run")
    batch, around = profiles.fresh()
    assert [*profiles.newest] == [batch, around] and profiles.fresh() == []
    assert (batch.query, batch.batch, batch.looks, batch.seconds) == ("clean", 7, 3, 2.0)
    assert sum(batch.parts.values()) == pytest.approx(2.0)
    assert batch.parts["python"] == pytest.approx(2.0 * 0.3 / 0.44)
    assert set(batch.stacks) == {
        (("clean.clean", "jobs"), "jobs"),
        (("clean.clean",), "python"),
    }
    assert (around.query, around.batch, set(around.parts)) == (
        "clean",
        None,
        {"offsets", "checkpoint"},
    )


def test_a_batch_without_a_look_has_its_seconds() -> None:
    profiles = Profiles()
    profiles.started("run", "land")
    profiles.progressed("run", 0, NOW, 0.01)
    assert profiles.fresh() == [BatchProfile("land", 0, NOW, 0.01, 0, {})]


def test_another_pipelines_query_is_passed_over() -> None:
    profiles = Profiles()
    profiles.progressed("run", 0, NOW, 1.0)
    profiles.ended("run")
    assert profiles.fresh() == []


def test_the_tree() -> None:
    root = flame.tree("all", [(("a", "jobs"), 2.0), (("a", "write"), 1.0), (("b",), 0.02)])
    assert [(box.name, box.depth, box.start) for box in flame.boxes(root)] == [
        ("all", 0, 0.0),
        ("a", 1, 0.0),
        ("jobs", 2, 0.0),
        ("write", 2, 2.0),
    ]
    assert root.seconds == pytest.approx(3.02)


def test_a_picture_escapes_names() -> None:
    drawing = flame_picture.svg(flame.tree("<script>", [(("a&b",), 1.0)]), 700)
    assert "<script>" not in drawing
    assert "a&amp;b: 1.00 s, 100%" in drawing
    assert "<svg" in flame_picture.svg(flame.tree("nothing", []), 700)


def test_the_lines_of_many_batches() -> None:
    told = [
        {"query": "clean", "batch": n, "seconds": n / 10, "parts": {"jobs": n / 10}, "stacks": {}}
        for n in range(30)
    ]
    lines = list(profile_lines.lines(told))
    assert lines[1].split() == ["query", "batch", "seconds", "jobs"]
    assert lines[2].split() == ["clean", "10", "1.00", "1.00"]
    assert "the 20 longest of 30; `tidemill_profiles` holds all" in lines
    assert list(profile_lines.lines([])) == []


def test_looks_between_batches_are_added_up() -> None:
    """A run may last for days: what is around its batches is kept as sums."""
    profiles = Profiles()
    profiles.started("run", "clean")
    for minute in range(3):
        for n in range(4):
            profiles.take(_sample(60 * minute + n / 10, (), "offsets"))
        profiles.progressed("run", minute, NOW + timedelta(seconds=60 * minute + 30), 1.0)
    profiles.ended("run")
    *batches, around = profiles.fresh()
    assert [(each.batch, each.looks) for each in batches] == [(0, 0), (1, 0), (2, 0)]
    assert (around.batch, around.looks, around.started_at) == (None, 12, NOW)
    assert around.parts == {"offsets": pytest.approx(3 * (0.3 + 0.04))}


def test_a_query_that_waits_for_its_trigger_is_not_looked_at() -> None:
    waits = [
        "java.base@17.0.15/java.lang.Object.wait(Native Method)",
        "app//org.apache.spark.util.SystemClock.waitTillTime(Clock.scala:100)",
        "app//org.apache.spark.sql.execution.streaming.runtime.ProcessingTimeExecutor.execute(T:1)",
    ]
    assert stack_parts.is_idle(waits)
    assert not stack_parts.is_idle([*WAITING, *waits])
    assert not stack_parts.is_idle(BATCH)


@pytest.mark.connect
@pytest.mark.stream
def test_a_run_tells_where_its_time_went(spark: SparkSession, tmp_path: Path) -> None:
    """The table, the totals and the report say the same of the same batches."""
    root = tmp_path / "lake"
    write_file(tmp_path / "events", "a.json", records_of(EVENTS))
    words = ("--root", root, "--source", "files", "--input", tmp_path / "events", "--once")
    run = call("run", "engagement", *words, "--profile", "--json")
    if IS_CONNECT:
        assert (run.code, run.error["where"]) == (2, "--profile")
        return
    assert run.code == 0, run
    batches = {each["query"]: each for each in run.json["profile"] if each["batch"] == 0}
    assert set(batches) == {"land", "clean", "feature"}
    for each in batches.values():
        assert sum(each["parts"].values()) == pytest.approx(each["seconds"], abs=0.05)
        assert set(each["parts"]) <= set(stack_parts.PARTS)
    assert any(stack.startswith("clean_step.clean_batch;") for stack in batches["clean"]["stacks"])
    assert any("merge.merge" in stack for stack in batches["feature"]["stacks"])

    sql = "SELECT query, sum(seconds) AS s FROM tidemill_profiles WHERE batch = 0 GROUP BY query"
    kept = call("query", sql, "--root", root, "--json").json
    assert dict(kept["rows"]) == pytest.approx(
        {name: each["seconds"] for name, each in batches.items()}, abs=0.01
    )
    page = tmp_path / "report.html"
    words = ("--root", root, "--output", page, "--days", 36_500, "--json")
    numbers = call("report", "engagement", *words).json
    assert {each["query"] for each in numbers["profile"]["newest"]} == set(batches)
    assert "clean_step.clean_batch" in page.read_text()


@pytest.mark.stream
def test_a_run_without_the_option_keeps_nothing(spark: SparkSession, tmp_path: Path) -> None:
    write_file(tmp_path / "events", "a.json", records_of(EVENTS))
    words = ("--source", "files", "--input", tmp_path / "events", "--once", "--json")
    run = call("run", "engagement", "--root", tmp_path / "lake", *words)
    assert "profile" not in run.json
    assert not (tmp_path / "lake" / "tidemill_profiles").exists()
