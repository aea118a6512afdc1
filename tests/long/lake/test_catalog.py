"""A lake in a catalog's schema: the same commands, the tables where the schema keeps them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from command_line import call
from lakes import at
from runs import records_of, write_file
from tidemill.config.pipeline_file import load
from tidemill.lake import tables
from tidemill.lake.schema import ddl

pytestmark = pytest.mark.connect

SCHEMA = "catalog_lake"


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The options of a catalog lake that `run --once` filled; its checkpoints are in a folder."""
    folder = tmp_path_factory.mktemp("catalog")
    spark.sql(f"CREATE SCHEMA {SCHEMA}")
    words = ["--catalog", "spark_catalog", "--schema", SCHEMA, "--root", str(folder / "volume")]
    events = [("a1", "p1", "g", "view", at("11:30")), ("a2", "p2", "g", "select", at("11:45"))]
    write_file(folder / "input", "1.jsonl", records_of(events, ["{}"]), age=60)
    source = ("--source", "files", "--input", folder / "input", "--once", "--clock", "wall")
    answer = call("run", "engagement", *source, *words, "--json")
    assert answer.code == 0, answer
    counts = [answer.json[n] for n in ("events", "accepted", "quarantined", "as_of")]
    assert counts == [3, 2, 1, "2026-11-21T12:01:00Z"]
    yield words
    spark.sql(f"DROP SCHEMA {SCHEMA} CASCADE")


def test_the_checkpoints_are_in_the_folder_and_no_table_is(place: list[str]) -> None:
    folder = Path(place[-1])
    assert sorted(path.name for path in folder.iterdir()) == ["_checkpoints"]


def test_every_command_reads_it(place: list[str]) -> None:
    assert call("reconcile", "engagement", *place, "--json").json["different"] == 0
    answer = call("query", "SELECT profile_id, view_count_1h FROM engagement_current", *place)
    assert answer.code == 0
    assert call("describe", "engagement", *place, "--json").code == 0
    assert call("explain", "engagement", "p1", "g", *place, "--json").code == 0


def test_upkeep_and_a_refresh_write_to_it(place: list[str]) -> None:
    assert call("maintain", "engagement", *place, "--json").code == 0
    answer = call("refresh", "engagement", "--as-of", "2026-11-21T12:35:00Z", *place, "--json")
    assert (answer.json["keys_changed"], answer.json["mode"]) == (1, "incremental")
    assert call("reconcile", "engagement", *place, "--json").json["different"] == 0


def test_a_part_is_rebuilt_beside_and_put_in_place(place: list[str], spark: SparkSession) -> None:
    spark.sql(f"UPDATE {SCHEMA}.engagement_buckets SET view_count = 9 WHERE profile_id = 'p1'")
    answer = call("rebuild", "engagement", "--since", "2026-11-21T11:00", *place, "--json")
    assert (answer.code, answer.json["buckets"]) == (0, 2), answer
    assert call("reconcile", "engagement", *place, "--json").json["different"] == 0
    rows = spark.table(f"{SCHEMA}.engagement_buckets").collect()
    assert sorted((row.profile_id, row.view_count) for row in rows) == [("p1", 1), ("p2", 0)]
    assert spark.sql(f"SHOW TABLES IN {SCHEMA} LIKE '*_rebuild_*'").isEmpty()


def test_a_schema_that_is_not_there() -> None:
    words = ("--catalog", "spark_catalog", "--schema", "nowhere")
    answer = call("reconcile", "engagement", *words, "--json")
    assert answer.code == 2
    assert answer.error["where"] == "spark_catalog.nowhere"
    assert "CREATE SCHEMA spark_catalog.nowhere" in str(answer.error["expected"])


def test_gold_names_its_primary_key_where_the_catalog_takes_one() -> None:
    gold = tables.of(load("engagement")).views["engagement"].gold
    sql = ddl.create(gold, {}, keyed=True)
    assert "CONSTRAINT engagement_features_key PRIMARY KEY (profile_id, gti)" in sql
    assert "PRIMARY KEY" not in ddl.create(gold, {})
    assert "LOCATION" not in sql


def test_nothing_but_the_local_session_goes_through_the_jvm() -> None:
    package = Path(ddl.__file__).parents[2]
    reaches = re.compile(r"\b_jvm\b|\b_jdf\b|_jsparkSession|\.sparkContext\b|\.rdd\b|delta\.tables")
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if reaches.search(path.read_text(encoding="utf-8"))
    }
    local = {"lake/session/session.py", "lake/session/launch.py"}
    refused_there = {"monitoring/profile/stack_sampler.py"}  # `Profiles.of` does
    # `checkpointed`, `_forget_logs` and `gathered_sums` look first
    not_there = {
        "pipeline/row_writes/frame_cache.py",
        "operations/swap/exchange.py",
        "training/by_event_time/gathered_sums.py",
    }
    assert found == local | refused_there | not_there, (
        "what Spark Connect and shared compute do not have"
    )
