"""Buckets that a rebuild of a part did not make, as the history of its day was shorter.

history 10d   events of two days, buckets of all
history 4h    a rebuild makes buckets of the last day
history 10d   windows of two days: they need what was not made, and nobody reads it as nothing
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

import sales
from command_line import Answer, call, ending_at
from lakes import NOW, at
from runs import write_file
from sales import Sales, record
from tidemill.config.settings import Clock
from tidemill.features import Feature, count, max_, sum_
from tidemill.lake.schema import expired_before
from tidemill.operations import maintenance

pytestmark = pytest.mark.stream
EVENTS = sales.draw(random.Random(1), at("19T22:00"), 2200, 60)
KEYS = {"sales": "card", "kinds": "kind"}
THREE, TWO_DAYS = count().over("3h"), count().over("2d")
POINTS, LONG_POINTS = sum_("points").over("3h"), sum_("points").over("2d")
Views = Mapping[str, tuple[Feature, ...]]


class Project:
    """A pipeline of one or two views of other keys, and its lake, which holds two days."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        write_file(folder / "events", "1.jsonl", map(record, EVENTS), age=90)
        self.declare("10d", sales=(THREE,))
        assert self.call("run", "--once").code == 0

    def declare(self, history: str, **views: tuple[Feature, ...]) -> None:
        words = []
        for name, features in views.items():
            made = sales.declare(features).views[0].words() | {"name": name, "keys": [KEYS[name]]}
            words.append(json.loads(json.dumps(made)))
        pipeline = {
            "pipeline": "sales",
            "source": {"kind": "files", "input": str(self.folder / "events")},
            "history": history,
            "views": words,
        }
        (self.folder / "sales.yaml").write_text(yaml.safe_dump(pipeline, sort_keys=False))

    def call(self, command: str, *words: object) -> Answer:
        path = self.folder / "sales.yaml"
        return call(command, path, *words, "--root", self.folder / "lake", "--json")

    def plan(self) -> dict[str, dict[str, Any]]:
        answer = self.call("plan").json
        return {change["view"]: change for change in answer.get("views", [answer])}

    def kinds(self) -> dict[str, str]:
        return {view: change["kind"] for view, change in self.plan().items()}

    def refused(self, way: str) -> None:
        answer = self.call("run", "--once")
        assert answer.code == 2, answer
        assert f"sales.yaml {way}" in answer.error["expected"]

    def rebuilt(self, *words: object) -> None:
        answer = self.call("rebuild", *words)
        assert answer.code == 0, answer

    def filled(self) -> None:
        """Do as `plan` says, for all that lacks buckets."""
        since = min(c["since"] for c in self.plan().values() if c["kind"] == "since")
        self.refused("--since")
        self.rebuilt("--since", since)

    def check(self, spark: SparkSession, **columns: str) -> None:
        """Fail unless gold's columns are what brute force says, and gold what the events say."""
        assert self.call("run", "--once").code == 0
        assert self.call("reconcile", "--from", "events").code == 0
        for view, column in columns.items():
            gold = spark.read.format("delta").load(str(self.folder / "lake" / f"{view}_features"))
            shown = {row[KEYS[view]]: row[column] for row in gold.collect()}
            wanted = Counter[str]()
            for sale in EVENTS:
                value = sale.points if column.startswith("points") else 1
                wanted[getattr(sale, KEYS[view])] += value
            assert shown == dict(wanted), view


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def cut_off(project: Project, point: str, *words: str) -> None:
    """A rebuild that ends at a point."""
    with ending_at(point):
        assert project.call("rebuild", *words).code == 3


def test_features_and_a_view_made_of_the_last_day(spark: SparkSession, project: Project) -> None:
    project.declare("4h", sales=(THREE, POINTS), kinds=(THREE,))
    project.rebuilt("--features", "points_sum")
    project.rebuilt("--views", "kinds")
    assert project.kinds() == {"sales": "none", "kinds": "none"}
    project.declare("10d", sales=(THREE, POINTS), kinds=(THREE,))
    assert project.kinds() == {"sales": "none", "kinds": "none"}, "no window needs more"
    project.declare("10d", sales=(TWO_DAYS, LONG_POINTS), kinds=(TWO_DAYS,))
    assert project.kinds() == {"sales": "since", "kinds": "since"}
    assert "were not made" in project.plan()["kinds"]["why"]
    project.filled()
    assert project.kinds() == {"sales": "none", "kinds": "none"}
    project.check(spark, sales="points_sum_2d", kinds="count_2d")


def test_since_a_time_before_the_history(spark: SparkSession, project: Project) -> None:
    """Of what expired only the kept part is made again, however early the time."""
    project.declare("4h", sales=(THREE,))
    assert project.call("maintain").code == 0
    project.rebuilt("--since", "2026-11-19T00:00")
    project.declare("10d", sales=(TWO_DAYS,))
    assert project.kinds() == {"sales": "since"}
    project.filled()
    project.check(spark, sales="count_2d")


@pytest.mark.parametrize("words", [("--features", "points_sum"), ("--since", "2026-11-19T00:00")])
def test_the_history_is_longer_when_it_goes_on(
    spark: SparkSession, project: Project, words: tuple[str, ...]
) -> None:
    """Days are other days then: nothing that was made is counted twice, or left out."""
    features = (THREE, POINTS) if words[0] == "--features" else (THREE,)
    project.declare("4h", sales=(THREE,))
    assert project.call("maintain").code == 0
    project.declare("4h", sales=features)
    cut_off(project, "rebuild.chunk_written", *words)
    project.declare("10d", sales=features)
    project.rebuilt(*words)
    longer = (LONG_POINTS,) if len(features) > 1 else (TWO_DAYS,)
    project.declare("10d", sales=longer)
    if project.kinds() == {"sales": "since"}:
        project.filled()
    project.check(spark, sales="points_sum_2d" if len(features) > 1 else "count_2d")


def test_a_view_lacks_features_and_another_one_what_expired(
    spark: SparkSession, project: Project
) -> None:
    """Each command helps with its part, though the other part is not done."""
    project.declare("10d", sales=(THREE,), kinds=(THREE,))
    project.rebuilt("--views", "kinds")
    project.declare("4h", sales=(THREE,), kinds=(THREE,))
    assert project.call("maintain").code == 0
    project.declare("10d", sales=(THREE, POINTS), kinds=(TWO_DAYS,))
    assert project.kinds() == {"sales": "features", "kinds": "since"}
    refused = project.call("rebuild", "--since", project.plan()["kinds"]["since"])
    assert refused.code == 2 and "--features points_sum" in refused.error["expected"]
    project.rebuilt("--features", "points_sum")
    assert project.kinds() == {"sales": "none", "kinds": "since"}
    project.filled()
    project.check(spark, kinds="count_2d")


def test_views_that_lack_different_features(spark: SparkSession, project: Project) -> None:
    """One command makes them, and `plan` names it for each."""
    project.declare("10d", sales=(THREE,), kinds=(THREE,))
    project.rebuilt("--views", "kinds")
    largest = max_("amount").over("3h")
    project.declare("10d", sales=(THREE, LONG_POINTS), kinds=(THREE, largest))
    plan = project.plan()
    assert project.kinds() == {"sales": "features", "kinds": "features"}
    assert {change["way"] for change in plan.values()} == {plan["kinds"]["way"]}
    project.refused("--features points_sum,amount_max")
    project.rebuilt("--features", "points_sum,amount_max")
    assert project.kinds() == {"sales": "none", "kinds": "none"}
    project.check(spark, sales="points_sum_2d")


@pytest.mark.parametrize("point", ["rebuild.chunk_written", "rebuild.put_in_place"])
def test_a_view_lacks_features_and_what_expired(
    spark: SparkSession, project: Project, point: str
) -> None:
    """All of its buckets are made, whatever was begun; until then it is refused, also where that
    was cut off."""
    project.declare("4h", sales=(THREE,), kinds=(THREE,))
    project.rebuilt("--views", "kinds")
    assert project.call("maintain").code == 0
    project.declare("4h", sales=(THREE, POINTS), kinds=(THREE,))
    cut_off(project, "rebuild.chunk_written", "--features", "points_sum")
    project.declare("10d", sales=(TWO_DAYS, LONG_POINTS), kinds=(THREE,))
    assert project.kinds() == {"sales": "views", "kinds": "none"}
    project.refused("--views")
    answer = project.call("rebuild", "--features", "points_sum")
    assert answer.code == 2 and "--views sales" in str(answer.error["expected"])
    cut_off(project, point, "--views", "sales")
    project.refused("--views")
    project.rebuilt("--views", "sales")
    assert project.kinds() == {"sales": "none", "kinds": "none"}
    assert project.plan()["sales"]["unfinished"] == []
    project.check(spark, sales="points_sum_2d")


def test_a_view_lacks_events_and_what_expired(spark: SparkSession, project: Project) -> None:
    project.declare("4h", sales=(THREE,), kinds=(THREE,))
    project.rebuilt("--views", "kinds")
    assert project.call("maintain").code == 0
    project.declare("4h", sales=(THREE,))
    later = sales.draw(random.Random(2), at("21T10:30"), 20, 8)
    write_file(project.folder / "events", "2.jsonl", map(record, later), age=60)
    assert project.call("run", "--once").code == 0
    project.declare("10d", sales=(THREE,), kinds=(TWO_DAYS,))
    assert project.kinds()["kinds"] == "views"
    project.rebuilt("--views", "kinds")
    assert project.kinds()["kinds"] == "none"
    project.check(spark)


def test_expiry_says_no_less_than_before(spark: SparkSession, tmp_path: Path) -> None:
    """A bucket of a late event, older than the longer history of now, is no sign that those after
    it are there."""
    words = {"history": "10d"}
    lake = Sales.new(spark, tmp_path / "lake", sales.declare([THREE]).overridden(words))
    for day in (1, 12):
        lake.feed(sales.draw(random.Random(day), at(f"{day:02}T06:00"), 60, 10))
    gone: datetime = lake.as_of() - timedelta(days=2)
    expired_before.note(lake.lake, "sales_buckets", gone)
    steps = maintenance.plan(lake.lake, Clock(NOW), ("expire",))
    assert [done.table for done in maintenance.maintain(lake.lake, steps)] == ["sales_buckets"]
    assert expired_before.of_table(lake.lake, "sales_buckets") == gone
