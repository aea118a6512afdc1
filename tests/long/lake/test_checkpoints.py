"""Checkpoints: a lost one and a stranger's are refused, and a rebuild is the way out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import oracle
from command_line import Answer, call
from lakes import Event, Lakes, TestLake, at
from runs import (
    STREAM_TABLES,
    Small,
    check_whole,
    opened,
    reading,
    records_of,
    versions,
    write_file,
)
from tidemill.config.settings import Clock
from tidemill.errors import CheckpointError, LakeError
from tidemill.lake import checkpoints
from tidemill.lake.catalog import Lake
from tidemill.lake.checkpoints import Checkpoint
from tidemill.lake.commits import failpoints, ledger
from tidemill.lake.schema import creation
from tidemill.pipeline import runner
from tidemill.pipeline.queries import Pipeline
from tidemill.sources import Source
from tidemill.sources.files.source import Files

REBUILD = "run `tidemill rebuild engagement --from bronze`"
LATER: list[Event] = [
    ("a1", "p1", "g", "view", at("10:00")),
    ("c1", "p9", "g", "view", at("11:45")),
]


def run(small: Small, root: Path) -> Answer:
    named = ("--source", "files", "--input", small.input, "--root", root)
    return call("run", "engagement", *named, "--once", "--json")


def rebuild(root: Path) -> Answer:
    return call("rebuild", "engagement", "--from", "bronze", "--root", root, "--json")


def checkpoint(root: Path, query: str) -> Path:
    return root / "_checkpoints" / f"engagement_{query}"


def claim(lake: Lake, query: str, source: Source) -> None:
    Pipeline(lake, source, Clock(), "event").claim([query])


@pytest.mark.stream
def test_killed_in_the_write_of_its_first_offset_a_query_begins_again(
    small: Small, tmp_path: Path, spark: SparkSession
) -> None:
    root = tmp_path / "lake"
    with opened(root, small.definition) as pipeline:
        pipeline.claim()
        for query in pipeline.queries:
            offsets = checkpoint(root, query) / "offsets"
            offsets.mkdir(parents=True)
            (offsets / ".0.6f853f34.tmp").touch()
        runner.run_once(pipeline, runner.Stop(), [])
    check_whole(reading(spark, root), small.records, small.events)


# -- refused -------------------------------------------------------------------------------------


WAYS_OUT = {
    "land": "see 'Lost checkpoint of land' in docs/operations.md",
    "clean": REBUILD,
    "feature": REBUILD,
}


@pytest.mark.stream
@pytest.mark.parametrize("query", WAYS_OUT)
def test_a_lost_checkpoint(small: Small, tmp_path: Path, query: str) -> None:
    root = small.copy(tmp_path / "lake")
    before = versions(root)
    shutil.rmtree(checkpoint(root, query))
    answer = run(small, root)
    assert answer.code == 2
    assert answer.error == {
        "kind": "checkpoint",
        "message": f"the checkpoint of {query} is lost, but its tables hold rows it has written",
        "where": str(checkpoint(root, query)),
        "expected": WAYS_OUT[query],
    }
    assert versions(root) == before


def test_a_half_lost_checkpoint(small: Small, tmp_path: Path, spark: SparkSession) -> None:
    """Whose it is, is still there; what it has read is not."""
    root = small.copy(tmp_path / "lake")
    lake = reading(spark, root).lake
    for query, way_out in WAYS_OUT.items():
        claim(lake, query, Files(small.input))
        shutil.rmtree(checkpoint(root, query) / "offsets")
        with pytest.raises(CheckpointError, match=f"the checkpoint of {query} is lost") as lost:
            claim(lake, query, Files(small.input))
        assert lost.value.expected == way_out


@pytest.mark.stream
@pytest.mark.parametrize("query", WAYS_OUT)
def test_a_checkpoint_that_was_rolled_back(small: Small, tmp_path: Path, query: str) -> None:
    """Its next batch id is in the tables: Delta would skip land's, with a new file in it."""
    own = small.copy_all(tmp_path)
    backup = shutil.copytree(checkpoint(own.root, query), tmp_path / "backup")
    write_file(own.input, "2.jsonl", records_of(LATER))
    assert run(own, own.root).code == 0
    shutil.rmtree(checkpoint(own.root, query))
    shutil.copytree(backup, checkpoint(own.root, query))
    write_file(own.input, "3.jsonl", records_of([("d1", "p9", "g", "view", at("11:46"))]))
    before = versions(own.root)
    answer = run(own, own.root)
    assert answer.code == 2
    assert answer.error == {
        "kind": "checkpoint",
        "message": f"the checkpoint of {query} was rolled back: "
        "it knows batches up to 0, its tables hold batch 1",
        "where": str(checkpoint(own.root, query)),
        "expected": WAYS_OUT[query],
    }
    assert versions(own.root) == before


@pytest.mark.stream
def test_a_batch_that_was_written_and_not_finished(
    small: Small, tmp_path: Path, spark: SparkSession
) -> None:
    """What a crash leaves: the batch is planned and in the tables, and not in `commits`."""
    own = small.copy_all(tmp_path)
    for query in WAYS_OUT:
        shutil.rmtree(checkpoint(own.root, query) / "commits")
    write_file(own.input, "2.jsonl", records_of(LATER))
    assert run(own, own.root).code == 0
    records = [*own.records, *records_of(LATER)]
    check_whole(reading(spark, own.root), records, [*own.events, *LATER])


def test_the_name_of_a_query_is_lost(small: Small, tmp_path: Path, spark: SparkSession) -> None:
    """Under a new one Delta would take a batch again that it has."""
    root = small.copy(tmp_path / "lake")
    lake = reading(spark, root).lake
    (checkpoint(root, "land") / "metadata").unlink()
    with pytest.raises(CheckpointError, match="the checkpoint of land is lost"):
        claim(lake, "land", Files(small.input))


def test_the_input_folder_has_moved(small: Small, tmp_path: Path) -> None:
    """Its files would be taken for new ones, and counted twice."""
    root = small.copy(tmp_path / "lake")
    before = versions(root)
    moved = shutil.copytree(small.input, tmp_path / "moved")
    named = ("--source", "files", "--input", moved, "--root", root)
    answer = call("run", "engagement", *named, "--once", "--json")
    assert answer.code == 2
    assert answer.error["kind"] == "checkpoint"
    assert str(small.input) in str(answer.error["message"])
    assert str(moved) in str(answer.error["message"])
    assert versions(root) == before


def test_another_source_on_the_checkpoint(small: Small, tmp_path: Path) -> None:
    root = small.copy(tmp_path / "lake")
    answer = call("run", "engagement", "--once", "--root", root, "--json")
    assert answer.code == 2
    assert "'kind': 'files'" in str(answer.error["message"])
    assert "'kind': 'generator'" in str(answer.error["message"])


@pytest.mark.parametrize("query", ["clean", "feature"])
def test_the_checkpoint_of_another_generation(lakes: Lakes, tmp_path: Path, query: str) -> None:
    """A checkpoint copied from another lake has read that lake's rows, not this one's."""
    other = lakes.new(max_files_per_trigger=1)  # made anew, no copy of the empty lake
    lake = lakes.new()
    source = Files(tmp_path)
    claim(other.lake, query, source)
    theirs, ours = (each.lake.checkpoint(query).folder for each in (other, lake))
    shutil.copytree(theirs, ours)
    with pytest.raises(CheckpointError, match=other.lake.generation):
        claim(lake.lake, query, source)


def test_the_checkpoint_of_another_pipeline(lakes: Lakes, tmp_path: Path) -> None:
    lake, source = lakes.new(), Files(tmp_path)
    claim(lake.lake, "clean", source)
    name = lake.lake.checkpoint("clean").folder / checkpoints.FILE
    name.write_text(name.read_text().replace('"engagement"', '"another"'))
    with pytest.raises(CheckpointError, match=r"belongs to \{'pipeline': 'another'\}"):
        claim(lake.lake, "clean", source)


IDENTITY = {"pipeline": "engagement", "query": "land", "kind": "files", "folder": "/in"}


@pytest.fixture
def empty(tmp_path: Path) -> Checkpoint:
    return Checkpoint("land", tmp_path / "land", "the way out")


def test_a_new_checkpoint_is_taken_and_taken_again(empty: Checkpoint) -> None:
    for _ in range(2):
        empty.claim(IDENTITY, lambda: False)
    assert empty.identity() == IDENTITY


@pytest.mark.parametrize("name", IDENTITY)
def test_any_other_word_is_a_stranger(empty: Checkpoint, name: str) -> None:
    empty.claim(IDENTITY, lambda: False)
    with pytest.raises(CheckpointError, match=f"'{name}': 'theirs'.*expected: its own checkpoint"):
        empty.claim({**IDENTITY, name: "theirs"}, lambda: False)


@pytest.mark.parametrize("text", [None, "", "{", "[]"])
def test_a_checkpoint_that_has_read_and_says_nothing(empty: Checkpoint, text: str | None) -> None:
    (empty.folder / "offsets").mkdir(parents=True)
    (empty.folder / "offsets" / "0").touch()
    if text is not None:
        (empty.folder / checkpoints.FILE).write_text(text)
    with pytest.raises(CheckpointError, match="belongs to something else"):
        empty.claim(IDENTITY, lambda: False)


def test_a_checkpoint_is_forgotten_by_one_rename(empty: Checkpoint, tmp_path: Path) -> None:
    """What a killed process had begun to remove goes with it."""
    empty.claim(IDENTITY, lambda: False)
    (tmp_path / ".land.half" / "offsets").mkdir(parents=True)
    for _ in range(2):
        empty.forget()
        assert [*tmp_path.iterdir()] == []


# -- made well again -----------------------------------------------------------------------------


@pytest.mark.stream
@pytest.mark.parametrize("query", ["clean", "feature"])
def test_a_rebuild_after_a_lost_checkpoint(
    small: Small, tmp_path: Path, spark: SparkSession, query: str
) -> None:
    """One MERGE of the one key that differs; then the pipeline goes on as if nothing had been."""
    mine = small.copy_all(tmp_path)
    shutil.rmtree(checkpoint(mine.root, query))
    before = reading(spark, mine.root)
    spark.sql("UPDATE engagement_features SET view_count_1d = 99 WHERE gti = 'h'")
    old, stood = before.lake.generation, versions(mine.root)
    assert run(mine, mine.root).code == 2

    answer = rebuild(mine.root)
    assert answer.code == 0, answer
    lake = reading(spark, mine.root)
    assert answer.json["generation"] == lake.lake.generation != old
    assert answer.json["keys_changed"] == 1
    assert (answer.json["accepted"], answer.json["duplicates"]) == (5, 1)
    check_whole(lake, mine.records, mine.events)
    check_generation(lake, stood)
    check_one_merge(lake, stood["features"], updated=1)

    write_file(mine.input, "2.jsonl", records_of(LATER))
    again = run(mine, mine.root)
    assert (again.code, again.json["accepted"], again.json["duplicates"]) == (0, 1, 1)
    lake = reading(spark, mine.root)
    check_whole(lake, [*mine.records, *records_of(LATER)], [*mine.events, *LATER])


def check_generation(lake: TestLake, since: dict[str, int]) -> None:
    """Every ledger that is newer names the new generation."""
    for table in ("quarantine", "events", "buckets", "features"):
        newer = [told for told in lake.ledgers(table) if told["version"] > since[table]]
        assert [told["generation"] for told in newer] == [lake.lake.generation], table


def check_one_merge(lake: TestLake, since: int, updated: int) -> None:
    commits = [c for c in ledger.commits(lake.spark, "engagement_features") if c.version > since]
    assert [commit.operation for commit in commits] == ["MERGE"]
    assert commits[0].metric("numTargetRowsUpdated") == updated
    assert commits[0].metric("numTargetRowsInserted") == 0
    assert commits[0].metric("numTargetRowsDeleted") == 0


def test_a_rebuild_of_what_is_another_pipelines_touches_nothing(
    small: Small, tmp_path: Path, spark: SparkSession
) -> None:
    root = small.copy(tmp_path / "lake")
    reading(spark, root)
    spark.sql("ALTER TABLE engagement_buckets SET TBLPROPERTIES ('tidemill.pipeline' = 'another')")
    before = versions(root)
    refused = rebuild(root)
    assert refused.code == 2
    assert "belongs to pipeline 'another'" in str(refused.error["message"])
    assert versions(root) == before
    assert all(checkpoint(root, query).exists() for query in ("clean", "feature"))


@pytest.mark.stream
def test_a_rebuild_that_is_cut_off_between_two_tables(
    small: Small, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables of two generations are never paired: everybody is told, a second rebuild mends it."""
    root = small.copy(tmp_path / "lake")
    make, made = creation.create, []

    def make_two(*words, **more) -> None:
        if len(made) == 2:
            raise OSError("the machine went away")
        made.append(make(*words, **more))

    with monkeypatch.context() as dying:
        dying.setattr(creation, "create", make_two)
        assert rebuild(root).code == 3
    for told in (run(small, root), call("reconcile", "engagement", "--root", root, "--json")):
        assert told.code == 2
        assert "a rebuild was interrupted" in str(told.error["message"])
        assert told.error["expected"] == f"{REBUILD} again"
    assert rebuild(root).code == 0
    check_whole(reading(spark, root), small.records, small.events)


@pytest.mark.stream
def test_a_rebuild_that_is_cut_off_in_a_batch(
    small: Small, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tables are of one generation, so `run` carries on; gold is served all the time."""
    root = small.copy(tmp_path / "lake")
    gold = reading(spark, root).gold()
    with monkeypatch.context() as dying:
        dying.setenv(failpoints.VARIABLE, "clean.quarantine_written")
        failpoints._reached.clear()
        assert rebuild(root).code == 3
    lake = reading(spark, root)
    assert lake.events().count() == 0
    assert lake.gold() == gold == oracle.features(small.events, at("11:31"))
    for words in (("refresh", "engagement"), ("reconcile", "engagement", "--repair")):
        refused = call(*words, "--root", root, "--json")
        assert refused.code == 2
        assert "a rebuild from bronze was interrupted" in str(refused.error["message"])
    assert run(small, root).code == 0
    check_whole(reading(spark, root), small.records, small.events)


@pytest.mark.stream
def test_running_twice_changes_nothing(small: Small, tmp_path: Path) -> None:
    root = small.copy(tmp_path / "lake")
    before = versions(root)
    answer = run(small, root)
    assert versions(root) == before
    counts = {name: value for name, value in answer.json.items() if name != "seconds"}
    assert counts == {
        **dict.fromkeys(("batches", "events", "accepted", "quarantined", "duplicates"), 0),
        "keys_changed": 0,
        "as_of": "2026-11-21T11:31:00Z",
        "gold_version": before["features"],
    }
    assert set(before) == set(STREAM_TABLES)


def test_tables_of_two_generations(lakes: Lakes) -> None:
    lake = lakes.new()
    events = lake.lake.tables.events
    lake.spark.sql(f"ALTER TABLE {events.name} SET TBLPROPERTIES ('tidemill.generation' = 'x')")
    with pytest.raises(LakeError, match="a rebuild was interrupted"):
        lakes.open(lakes.made[0])
