"""The package's own statements that read, and the commands made of them: DuckDB says what Spark
says, and nothing of a folder needs a session."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cases import CASES, Case, frame
from children import Children
from command_line import call
from lakes import Lakes, at
from runs import Small
from tidemill.config.settings import Place
from tidemill.errors import UsageError
from tidemill.lake import catalog
from tidemill.lake.relations import Answer, Relation, RowReader, SparkReader
from tidemill.lake.statements import names
from tidemill.query.engines.folder_reader import FolderReader
from tidemill.query.json_values import json_of

FOLDERS = {name: path.parent.name for name, path in names().items()}
READS = [path for path in CASES if FOLDERS[Case.read(path).words["statement"]] == "reads"]
KEY = ("p1", "g")
LEFT_TO_SPARK = {"event_differences": "xxhash64"}  # of a sample of the keys; of all, see below
COLUMN = {"engagement_features": "view_count_1h, updated_at", "engagement_buckets": "bucket_start"}
ASKED = {
    "reconcile": ("reconcile", "engagement"),
    "reconcile with the events": ("reconcile", "engagement", "--from", "events"),
    "explain": ("explain", "engagement", *KEY),
    "explain at another time": ("explain", "engagement", *KEY, "--at", "2026-11-21T11:00:00Z"),
    "explain an absent key": ("explain", "engagement", "nobody", "g"),
}
WITHOUT_ENGINE = {
    "describe": ("describe", "engagement"),
    "plan": ("plan", "engagement"),
    "quarantine list": ("quarantine", "list", "engagement", "--reason", "missing"),
    "maintain": ("maintain", "engagement", "--dry-run"),
    "top": ("top", "--once"),
}


def never(_: str) -> None:
    raise AssertionError("Spark was to be asked")


class Nobody:
    """Answers nothing."""

    def answer(self, text: str, values: Mapping[str, Any], relations: object) -> Answer:
        raise AssertionError(f"Spark was asked: {text}")


@pytest.mark.parametrize("path", READS, ids=lambda path: path.stem)
def test_a_statement_reads_alike(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    case = Case.read(path)
    relations = {}
    for name, table in case.inputs.items():
        rows = frame(spark, table, case.view).coalesce(1)
        rows.write.format("delta").save(str(tmp_path / name))
        relations[name] = Relation(name)
    catalog.register(spark, Place(tmp_path))
    of_spark = SparkReader(lambda: spark).answer(case.text, case.parameters, relations)
    reader = FolderReader(tmp_path, "duckdb", Nobody(), never, "a test")
    if path.stem in LEFT_TO_SPARK:
        with pytest.raises(UsageError, match=LEFT_TO_SPARK[path.stem]):
            reader.answer(case.text, case.parameters, relations)
        return
    mine = reader.answer(case.text, case.parameters, relations)
    assert (of_spark.engine, mine.engine) == ("spark", "duckdb")
    rows = [json_of(each.rows) for each in (mine, of_spark)]
    if "\nORDER BY" not in case.text:
        rows = [json_of(sorted(map(json_of, each.rows))) for each in (mine, of_spark)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("name", ASKED)
def test_a_command_says_alike(small: Small, name: str) -> None:
    words = (*ASKED[name], "--root", small.root, "--json", "--engine")
    mine, spark_s = (call(*words, engine) for engine in ("duckdb", "spark"))
    assert (mine.code, mine.err, spark_s.err) == (0, "", "")
    ours, theirs = mine.json, spark_s.json
    if "engine" in ours:
        assert (ours.pop("engine"), theirs.pop("engine")) == ("duckdb", "spark")
    assert ours == theirs


def test_nothing_of_a_folder_needs_java(small: Small, children: Children, tmp_path: Path) -> None:
    words = [*ASKED.values(), *WITHOUT_ENGINE.values()]
    words += [("report", "engagement", "--output", tmp_path / "report.html")]
    lists = [[str(word) for word in (*each, "--root", small.root)] for each in words]
    child = children.python(
        "-c",
        "import sys, json\nfrom tidemill import cli\n"
        f"for words in json.loads({json.dumps(lists)!r}):\n"
        "    sys.argv = ['tidemill', *words]\n    cli.main()\n",
        JAVA_HOME="/nowhere",
    )
    assert child.ended() == 0, child.err.read_text()
    assert child.err.read_text() == ""


def test_a_version_a_batch_and_a_change_feed_are_read_alike(lakes: Lakes) -> None:
    lake = lakes.fed([(None, "p", "g", "view", at("10:00")), (None, "q", "g", "view", at("10:01"))])
    lake.feed([(None, "p", "g", "view", at("10:02"))])
    lake.feed([(None, "p", "g", "view", at("10:02"))])
    relations = [
        Relation("engagement_features", version=1),
        Relation("engagement_buckets", before_batch=1),
        Relation("engagement_features", changes=(2, 3)),
    ]
    root = lake.lake.place.folder
    assert root is not None
    readers: list[RowReader] = [
        FolderReader(root, "duckdb", Nobody(), never, "a test"),
        SparkReader(lambda: lake.spark),
    ]
    for relation in relations:
        more = ", _change_type, _commit_version" if relation.changes else ""
        text = f"SELECT profile_id, {COLUMN[relation.table]}{more} FROM r"
        mine, theirs = (
            sorted(map(json_of, reader.answer(text, {}, {"r": relation}).rows))
            for reader in readers
        )
        assert mine == theirs and mine


def test_the_last_writer_is_the_same_where_several_share_a_time(lakes: Lakes) -> None:
    lake = lakes.new()
    for key in ("p", "q", "p"):
        lake.feed([(None, key, "g", "view", at("10:00"))])
    words = ("explain", "engagement", "q", "g", "--root", lake.lake.place.root, "--json")
    mine, theirs = (call(*words, "--engine", engine).json for engine in ("duckdb", "spark"))
    assert mine == theirs
    assert mine["written_by"]["refresh"] == 2


def test_another_engine_finds_what_is_different(lakes: Lakes) -> None:
    """Gold is judged by one that had no part in it."""
    lake = lakes.fed([(None, "p", "g", "view", at("10:00")), (None, "q", "g", "view", at("10:01"))])
    lake.spark.sql("UPDATE engagement_features SET view_count_1h = 7 WHERE profile_id = 'q'")
    words = ("reconcile", "engagement", "--root", lake.lake.place.root, "--json")
    for engine in ("duckdb", "spark"):
        answer = call(*words, "--engine", engine)
        assert (answer.code, answer.json["different"], answer.json["engine"]) == (1, 1, engine)


@pytest.mark.parametrize("key", ["it's", "a\\'b\n", "${spark.app.name}", "\u2028 -- x", "$1"])
def test_a_text_that_a_literal_writes_otherwise(lakes: Lakes, key: str) -> None:
    """DuckDB gets it beside the statement, and answers as Spark does."""
    lake = lakes.new()
    lake.feed([(None, key, "g", "view", at("10:00"))])
    words = ("explain", "engagement", key, "g", "--root", lake.lake.place.root, "--json")
    mine, theirs = (call(*words, "--engine", engine) for engine in ("duckdb", "spark"))
    assert (mine.code, mine.json) == (0, theirs.json)
    assert mine.json["found"] is True and mine.json["key"]["profile_id"] == key


def test_what_duckdb_does_not_answer(lakes: Lakes, tmp_path: Path) -> None:
    lake = lakes.new()
    lake.feed([(None, "p", "g", "view", at("10:00"))])
    table = "engagement_features"
    lake.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    words = ("explain", "engagement", "p", "g", "--root", lake.lake.place.root, "--json")
    answer = call(*words)
    assert answer.code == 0 and answer.json["found"] is True
    why = f"{table}, which needs deletionVectors"
    assert answer.err == f"asking Spark, as DuckDB may answer otherwise: {why}\n"
    refused = call(*words, "--engine", "duckdb")
    assert refused.code == 2
    assert "DuckDB does not answer this as Spark does" in str(refused.error["message"])


def test_a_lake_without_checksums_is_the_same(small: Small, tmp_path: Path) -> None:
    """As another writer leaves it: the logs themselves tell columns and properties."""
    root = small.copy(tmp_path / "lake")
    words = ("describe", "engagement", "--json", "--root")
    before = call(*words, root)
    for file in root.glob("*/_delta_log/*.crc"):
        file.unlink()
    assert call(*words, root) == before
    assert call("reconcile", "engagement", "--root", root, "--engine", "duckdb").code == 0
