"""Views whose buckets lack events that feature has read: added, left out, or lost."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from command_line import Answer, call, ending_at
from lakes import Event, Lakes, at
from runs import records_of, write_file
from tidemill.config.settings import Place
from tidemill.lake.catalog import register
from tidemill.lake.commits import ledger, writer
from tidemill.lake.integrity import coverage

VIEWS = {"titles": ["profile_id", "gti"], "people": ["profile_id"]}
SCHEMA = {"profile_id": "string", "gti": "string", "event_type": "string"}


def events_of(batch: int, number: int) -> list[Event]:
    """Events of a file: `number` of them, by two people, a minute apart."""
    hour = 10 + batch // 2
    return [
        (f"e{batch}-{i}", f"p{i % 2}", "g", "view", at(f"{hour}:{i + 10 * (batch % 2)}"))
        for i in range(number)
    ]


class Project:
    """A pipeline's file, its input, and its lake."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root, self.known = folder, folder / "lake", list[Event]()
        self.features: list[dict[str, Any]] = [{"count": {}, "over": ["3h", "1d"]}]
        self.streams: list[dict[str, Any]] = []

    def declare(self, *names: str) -> None:
        views = [
            {
                "name": name,
                "keys": VIEWS[name],
                "event_time": "event_timestamp",
                "schema": dict(SCHEMA),
                "features": json.loads(json.dumps(self.features)),
            }
            for name in names
        ]
        source = {"kind": "files", "input": str(self.folder / "input")}
        words = {"pipeline": "plays", "source": source, "views": views, "streams": self.streams}
        (self.folder / "plays.yaml").write_text(yaml.safe_dump(words, sort_keys=False))

    def land(self, batch: int, number: int) -> None:
        events = events_of(batch, number)
        records = records_of(events)
        write_file(self.folder / "input", f"{batch}.jsonl", records, age=900 - batch)
        self.known += events

    def tidemill(self, command: str, *words: object) -> Answer:
        path = self.folder / "plays.yaml"
        return call(command, path, *words, "--root", self.root, "--json")

    def run(self) -> Answer:
        return self.tidemill("run", "--once")

    def plan(self) -> dict[str, str]:
        answer = self.tidemill("plan").json
        changes = answer.get("views", [answer])
        return {change["view"]: change["kind"] for change in changes}

    def refused(self, view: str, why: str, *others: str) -> None:
        """Fail unless `run`, and other commands, refuse the lake and name the way out."""
        for command in (("run", "--once"), *((other,) for other in others)):
            answer = self.tidemill(*command)
            assert answer.code == 2, (command, answer)
            assert answer.error["where"] == f"view {view}"
            assert why in str(answer.error["message"])
            way = f"`tidemill rebuild {self.folder / 'plays.yaml'} --views {view}`"
            assert way in str(answer.error["expected"])

    def rebuilt(self, view: str) -> None:
        assert self.plan()[view] == "views"
        answer = self.tidemill("rebuild", "--views", view)
        assert answer.code == 0, answer
        assert self.plan()[view] == "none"

    def check(self, spark: SparkSession, names: Sequence[str]) -> None:
        """Fail unless gold is what the landed events say, and every command agrees."""
        for name in names:
            rows = spark.read.format("delta").load(str(self.root / f"{name}_features")).collect()
            gold = {tuple(row[key] for key in VIEWS[name]): row["count_1d"] for row in rows}
            wanted = Counter(
                (profile,) if name == "people" else (profile, gti)
                for _, profile, gti, _, _ in self.known
            )
            assert gold == dict(wanted), name
        answers = [self.tidemill("reconcile", *words) for words in ((), ("--from", "events"))]
        assert [answer.code for answer in answers] == [0, 0], answers


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.declare("titles")
    made.land(0, 7)
    assert made.run().code == 0
    return made


@pytest.mark.stream
def test_a_view_and_a_feature_that_are_added_at_once(spark: SparkSession, project: Project) -> None:
    """Each command helps with its part, though the other part is not done."""
    project.features.append({"distinct": "event_type", "over": ["1d"]})
    project.declare("titles", "people")
    project.refused("people", "people_buckets does not exist yet")
    first = project.tidemill("rebuild", "--views", "people")
    assert first.code == 2 and "--features event_type_distinct" in str(first.error["expected"])
    assert project.tidemill("rebuild", "--features", "event_type_distinct").code == 0
    assert project.plan() == {"titles": "none", "people": "views"}
    project.refused("people", "people_buckets was made after feature had read batch 0")
    project.rebuilt("people")
    project.check(spark, ["titles", "people"])
    assert project.run().code == 0


@pytest.mark.stream
def test_a_view_that_is_added(spark: SparkSession, project: Project) -> None:
    """
    batches of feature    0    1
    titles                x    x
    people, added              x      0 is made from the events
    """
    project.declare("titles", "people")
    project.land(1, 4)
    project.known = project.known[:7]
    everything = ("refresh", "maintain", "reconcile")
    project.refused("people", "people_buckets does not exist yet", *everything)
    with ending_at("rebuild.chunk_written"):
        assert project.tidemill("rebuild", "--views", "people").code == 3
    project.refused("people", "people_buckets was made after feature had read batch 0")
    project.rebuilt("people")
    project.check(spark, ["titles", "people"])
    project.known = events_of(0, 7) + events_of(1, 4)
    assert project.run().code == 0
    project.check(spark, ["titles", "people"])
    again = project.tidemill("rebuild", "--views", "people")
    assert again.code == 0 and again.json["buckets"] == 0, "it lacks nothing"
    unknown = project.tidemill("rebuild", "--views", "peeple")
    assert unknown.code == 2 and "did you mean" in str(unknown.error["message"])


@pytest.mark.stream
def test_a_view_that_is_left_out_for_a_run(spark: SparkSession, tmp_path: Path) -> None:
    """
    batches of feature    0    1    2
    titles                x    x    x
    people                x         x      1 is made from the events
    """
    project = Project(tmp_path)
    for batch, names in enumerate((["titles", "people"], ["titles"])):
        project.declare(*names)
        project.land(batch, 5 + batch)
        assert project.run().code == 0
    project.declare("titles", "people")
    project.refused("people", "people_buckets lacks the batches 1 to 1 of feature")
    project.rebuilt("people")
    project.check(spark, ["titles", "people"])
    project.declare("titles")
    assert project.run().code == 0
    project.declare("titles", "people")
    assert project.plan() == {"titles": "none", "people": "none"}, "no batch came meanwhile"
    project.land(2, 3)
    assert project.run().code == 0
    project.check(spark, ["titles", "people"])


@pytest.mark.stream
def test_a_view_that_was_left_out_when_a_feature_is_added(
    spark: SparkSession, project: Project
) -> None:
    """Its tables hold neither the feature nor all events: the other view's are not held up."""
    project.declare("titles", "people")
    project.rebuilt("people")
    project.declare("titles")
    project.land(1, 4)
    assert project.run().code == 0
    project.features.append({"distinct": "event_type", "over": ["1d"]})
    project.declare("titles", "people")
    assert project.plan() == {"titles": "features", "people": "views"}
    first = project.tidemill("rebuild", "--views", "people")
    assert first.code == 2 and "--features event_type_distinct" in str(first.error["expected"])
    assert project.tidemill("rebuild", "--features", "event_type_distinct").code == 0
    assert project.plan() == {"titles": "none", "people": "views"}
    project.rebuilt("people")
    project.check(spark, ["titles", "people"])


@pytest.mark.stream
def test_a_feature_of_a_view_that_lacks_events(spark: SparkSession, project: Project) -> None:
    project.declare("titles", "people")
    project.rebuilt("people")
    project.declare("titles")
    project.land(1, 4)
    assert project.run().code == 0
    project.features.append({"distinct": "event_type", "over": ["1d"]})
    project.declare("people")
    answer = project.tidemill("rebuild", "--features", "event_type_distinct")
    assert answer.code == 2 and "--views people" in str(answer.error["expected"])
    project.rebuilt("people")
    project.check(spark, ["people"])


@pytest.mark.stream
def test_a_view_that_was_left_out_when_all_was_made_again(
    spark: SparkSession, project: Project
) -> None:
    """Its table is of the tables before, with batches that count otherwise: it is made anew."""
    project.declare("titles", "people")
    project.rebuilt("people")
    project.land(1, 4)
    assert project.run().code == 0
    project.declare("titles")
    assert project.tidemill("rebuild", "--from", "bronze").code == 0
    project.declare("titles", "people")
    project.refused("people", "people_buckets is of before a rebuild from bronze", "reconcile")
    with ending_at("rebuild.put_in_place"):
        assert project.tidemill("rebuild", "--views", "people").code == 3
    assert project.plan() == {"titles": "none", "people": "views"}
    project.rebuilt("people")
    project.check(spark, ["titles", "people"])
    project.land(2, 3)
    assert project.run().code == 0
    project.check(spark, ["titles", "people"])


@pytest.mark.stream
def test_a_stream_that_was_left_out_when_all_was_made_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    project = Project(tmp_path)
    project.streams = [{"name": "visits", "distinct": {"keys": ["profile_id"], "watermark": "1h"}}]
    project.declare("titles")
    project.land(0, 7)
    assert project.run().code == 0
    there, project.streams = project.streams, []
    project.declare("titles")
    assert project.tidemill("rebuild", "--from", "bronze").code == 0
    project.streams = there
    project.declare("titles")
    for refused in (project.tidemill("plan"), project.run()):
        assert refused.code == 2
        assert refused.error["message"] == "a rebuild from bronze left out visits"
        assert "--from bronze" in str(refused.error["expected"])
    assert project.tidemill("rebuild", "--from", "bronze").code == 0
    rows = spark.read.format("delta").load(str(project.root / "visits")).collect()
    assert sorted(row["profile_id"] for row in rows) == ["p0", "p1"]

    # the state that a stream will hold is told also where a view needs a rebuild first
    project.declare("titles", "people")
    new, state = project.tidemill("plan", "--rate", "10").json["views"][1:]
    assert (new["view"], new["kind"]) == ("people", "views")
    assert (state["stream"], state["state_rows"]) == ("visits", 36_000)


@pytest.mark.stream
def test_tables_that_are_lost(spark: SparkSession, project: Project) -> None:
    assert project.tidemill("maintain").code == 0
    register(spark, Place(project.root))
    lost = {
        "plays_bronze": "Lost table",
        "plays_events": "--from bronze",
        "plays_quarantine": "--from bronze",
    }
    for name, way in lost.items():
        aside = project.folder / "aside"
        (project.root / name).rename(aside)
        refused = project.run()
        assert refused.code == 2 and refused.error["where"] == name
        assert "is gone" in str(refused.error["message"])
        assert way in str(refused.error["expected"])
        aside.rename(project.root / name)
    shutil.rmtree(project.root / "titles_buckets")
    project.refused("titles", "titles_buckets is gone")
    project.rebuilt("titles")
    project.land(1, 4)
    assert project.run().code == 0
    project.check(spark, ["titles"])


@pytest.mark.stream
def test_a_lake_without_a_record(spark: SparkSession, project: Project) -> None:
    """An earlier version kept none: what it left is complete, unless its ledgers count less."""
    record = project.root / "_checkpoints" / "plays_feature" / coverage.RECORD
    (entry,) = json.loads(record.read_text()).values()
    assert entry["through"] is None
    record.unlink()
    project.land(1, 4)
    assert project.run().code == 0 and record.exists()
    project.check(spark, ["titles"])
    record.unlink()
    register(spark, Place(project.root))
    told = {"generation": _generation(project), "batch": 1, "accepted": 1}
    with writer.carrying(spark, told):
        spark.table("plays_events").limit(1).write.format("delta").mode("append").saveAsTable(
            "plays_events"
        )
    offset = project.root / "_checkpoints" / "plays_feature" / "offsets" / "1"
    *head, last = offset.read_text().splitlines()
    read = {**json.loads(last), "reservoirVersion": json.loads(last)["reservoirVersion"] + 1}
    offset.write_text("\n".join((*head, json.dumps(read))))
    project.refused("titles", "titles_buckets counts 11 of the 12 events that feature has read")


def _generation(project: Project) -> str:
    identity = project.root / "_checkpoints" / "plays_feature" / "_tidemill.json"
    return str(json.loads(identity.read_text())["generation"])


def test_buckets_older_than_a_ledger_names_are_not_trusted(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.feed([("a1", "p1", "g", "view", at("10:00"))])
    commits = lake.lake.commits("engagement_buckets")
    newest = commits[0].version
    assert ledger.changed_by_another(lake.lake, "engagement_buckets", newest, commits) is None
    why = ledger.changed_by_another(lake.lake, "engagement_buckets", newest + 1, commits)
    assert why == f"the newest version of engagement_buckets is {newest}, not {newest + 1} or later"
