"""Each shipped definition: its file, the events that are made for it, and every feature of it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakes import BRONZE, NOW
from shipped import ORACLES, Event, Oracle, end_of, of_buyers
from tidemill.config.pipeline_file import SHIPPED, PipelineDefinition, load, read, shipped
from tidemill.config.settings import Clock, Place
from tidemill.errors import DefinitionError
from tidemill.features import FeatureView, contains
from tidemill.lake.open import open_for_writing
from tidemill.lake.relations import SparkReader
from tidemill.operations import reconcile
from tidemill.pipeline.connection import Opening, source_of
from tidemill.pipeline.silver import validation
from tidemill.pipeline.steps import clean_step, dimension_step, feature_step
from tidemill.query import explain
from tidemill.query.engines.folder_reader import FolderReader
from tidemill.query.json_values import json_of
from tidemill.sources.generator.mix import Mix
from tidemill.sources.generator.source import Generator

START = datetime(2026, 11, 20, 8, tzinfo=timezone.utc)
PLAIN = Mix(profiles=12, titles=6, malformed=0, future=0)
MIXED = Mix(profiles=12, titles=6, late=0.1, duplicate=0.05, malformed=0.05, future=0.01)
MANGLED = Mix(late=0, duplicate=0, malformed=1)

#   08:00    08:40            08:00 a day later    08:20      08:58   09:00
#     |--------|                   |                 |----------|-------|
#      minutes that come first                                    then
FIRST, THEN = (*range(40), *range(1460, 1498)), range(1498, 1500)


def made(name: str, mix: Mix, rate: int = 8) -> Generator:
    """The generator of a definition's own events."""
    source = load(name).source
    assert source.kind == "generator"
    return Generator(start=START, rate=rate, mix=mix, events=source.events)


def lines(generator: Generator, minutes: range | tuple[int, ...]) -> list[str]:
    return [line for minute in minutes for line in generator.records(minute)]


def changes() -> list[str]:
    """What becomes of customers, some of it before the first event, in one batch and no order."""
    generator = Generator(start=START - timedelta(hours=4), rate=1, mix=PLAIN, events="customers")
    return lines(generator, range(1500))[::-1]


def oracle_of(name: str) -> Oracle:
    """The oracle of a definition, with what its events take of dimensions."""
    oracle = ORACLES[name]
    return replace(oracle, also=of_buyers(changes())) if load(name).enrich else oracle


class Shipped:
    """An open lake of a definition, fed by calling the batch functions."""

    def __init__(self, spark: SparkSession, root: Path, definition: PipelineDefinition):
        self.lake = open_for_writing(spark, Place(root), definition)
        self.view = definition.views[0]
        self.records = 0
        self.batch = -1
        for dimension in definition.dimensions:
            rows, name = self._bronze(changes()), dimension.name
            dimension_step.dimension_batch(rows, 0, lake=self.lake, name=name)

    def step(self, payloads: list[str]) -> None:
        """One batch through clean and feature."""
        self.batch += 1
        words: dict[str, Any] = {"lake": self.lake}
        clean_step.clean_batch(self._bronze(payloads), self.batch, **words)
        new = self.table("events").where(F.col("batch") == self.batch)
        words |= {"clock": Clock(NOW), "follows": "event"}
        feature_step.feature_batch(new, self.batch, **words)

    def _bronze(self, payloads: list[str]):
        frame = bronze(self.lake.spark, payloads, self.records)
        self.records += len(payloads)
        return frame

    def table(self, name: str):
        of = self.lake.pipeline.pipeline if name == "events" else self.view.name
        return self.lake.spark.table(f"{of}_{name}")

    def gold(self) -> dict[tuple[str, ...], Event]:
        rows = [row.asDict() for row in self.table("features").collect()]
        return {tuple(row[key] for key in self.view.keys): row for row in rows}

    def mode(self) -> str:
        ledger = self.lake.gold_state(self.view).ledger
        assert ledger is not None
        return str(ledger["mode"])


def bronze(spark: SparkSession, payloads: list[str], first: int = 0):
    rows = [
        (f"r{first + i:06d}", text, "t", 0, first + i, NOW, NOW, NOW.date())
        for i, text in enumerate(payloads)
    ]
    return spark.createDataFrame(rows, BRONZE).coalesce(1)


def test_every_shipped_definition_has_an_oracle() -> None:
    assert shipped() == sorted(ORACLES)


@pytest.mark.parametrize("name", shipped())
def test_a_file_begins_with_what_it_is_for(name: str) -> None:
    first, second, *_ = (SHIPPED / f"{name}.yaml").read_text().splitlines()
    assert first.startswith("# ") and first.endswith(".")
    assert second == f"pipeline: {name}"


@pytest.mark.parametrize("name", shipped())
def test_a_view_is_the_same_when_its_words_are_read_again(name: str) -> None:
    for view in load(name).views:
        again = FeatureView.model_validate(yaml.safe_load(yaml.safe_dump(view.words())))
        assert again == view
        assert again.definition == view.definition


@pytest.mark.parametrize("name", shipped())
def test_the_oracle_knows_every_feature(name: str) -> None:
    assert {column.name for column in load(name).views[0].shown} == set(ORACLES[name].nothing())


@pytest.mark.parametrize("name", shipped())
def test_made_events_are_the_same_each_time_and_have_the_definitions_columns(name: str) -> None:
    definition, generator = load(name), made(name, PLAIN)
    assert lines(generator, range(60)) == lines(made(name, PLAIN), range(60))
    assert lines(generator, range(60)) != lines(replace(generator, seed=8), range(60))
    view = definition.events
    required = {n for n, type_ in view.event_schema.items() if not type_.endswith("?")}
    events = [json.loads(line) for line in lines(generator, range(60))]
    assert all({"event_id", view.event_time} | required <= set(event) for event in events)
    found = {column for event in events for column in event}
    assert found == {"event_id", view.event_time, *view.event_schema} - {*definition.enriched}


@pytest.mark.parametrize("name", shipped())
def test_clean_takes_every_event_and_refuses_every_fault(spark: SparkSession, name: str) -> None:
    taken, refused = (
        list(dict.fromkeys(lines(made(name, mix), range(30)))) for mix in (PLAIN, MANGLED)
    )
    judged = validation.judge(bronze(spark, taken + refused), load(name)).orderBy("record_id")
    reasons = [", ".join(row["reasons"]) for row in judged.select("reasons").collect()]
    assert set(reasons[: len(taken)]) == {""}
    faults = set(reasons[len(taken) :])
    assert "" not in faults
    assert len(faults) == 5, faults


@pytest.mark.parametrize("name", shipped())
def test_every_feature_is_what_brute_force_says(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    lake, oracle = Shipped(spark, tmp_path / "lake", load(name)), oracle_of(name)
    generator, payloads, told = made(name, MIXED), [], set()
    for minutes, mode in ((FIRST, "recompute"), (THEN, "incremental")):
        payloads += lines(generator, minutes)
        lake.step(lines(generator, minutes))
        assert lake.mode() == mode
        told |= check(lake, oracle, payloads)
    assert reconcile.reconcile(lake.lake, lake.view).different == 0
    assert told == set(oracle.nothing()), "a feature that is empty for every key tests nothing"
    check_both_engines(lake)


def check_both_engines(lake: Shipped) -> None:
    """What DuckDB says of the lake is what Spark says, where it answers at all."""
    root, view = lake.lake.place.folder, lake.view
    assert root is not None
    said: list[str] = []
    of_spark = SparkReader(lambda: lake.lake.spark)
    reading = replace(lake.lake, reader=FolderReader(root, "auto", of_spark, said.append, "here"))
    for key in [*sorted(lake.gold())[:3], tuple("nobody" for _ in view.keys)]:
        asked = explain.asked(view, list(key))
        as_of = lake.lake.gold_state(view).as_of
        for at in (None, as_of and as_of - timedelta(minutes=1)):
            mine, theirs = (explain.explain(one, asked, at) for one in (reading, lake.lake))
            assert json_of(mine) == json_of(theirs)
    mine, theirs = (reconcile.reconcile(one, view) for one in (reading, lake.lake))
    assert replace(mine, engine="spark") == theirs
    assert bool(said) == (mine.engine == "spark") == (view.name in LEFT_TO_SPARK), said


LEFT_TO_SPARK = {
    "card_fraud",
    "device_stats",
    "enriched_purchases",
    "product_signals",
}  # sketches, mostly


def check(lake: Shipped, oracle: Oracle, payloads: list[str]) -> set[str]:
    """Compare gold with the oracle; return the features that are not empty for every key."""
    events = oracle.events(payloads)
    assert lake.table("events").count() == len(events) < len(payloads)
    as_of = lake.lake.gold_state(lake.view).as_of
    assert as_of == end_of(events)
    wanted, found, nothing = oracle.rows(events, as_of), lake.gold(), oracle.nothing()
    assert {key for key, row in wanted.items() if row != nothing} <= set(found) <= set(wanted)
    wrong = [
        f"{key} {name}: {row[name]}, not {value}"
        for key, row in found.items()
        for name, value in wanted[key].items()
        if not same(row[name], value)
    ]
    assert not wrong, wrong
    return {name for name in nothing if any(row[name] != nothing[name] for row in wanted.values())}


def same(found: Any, wanted: Any) -> bool:
    """Whether a value of gold is the oracle's: floats to their last digits, filters by what they
    contain."""
    if isinstance(wanted, set):
        strangers = sum(contains(found, f"nobody-{i}") for i in range(1000))
        return all(contains(found, value) for value in wanted) and strangers <= 10
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, float):
        return found is not None and math.isclose(found, wanted, rel_tol=1e-9)
    return type(found) is type(wanted) and bool(found == wanted)


def test_only_a_stolen_card_breaks_the_velocity_rule() -> None:
    oracle, source = ORACLES["card_fraud"], load("card_fraud").source
    events = oracle.events(lines(made("card_fraud", Mix(), source.rate), range(20, 30)))
    as_of = START + timedelta(minutes=30)
    counts = {
        card: row["transaction_count_5m"] for (card,), row in oracle.rows(events, as_of).items()
    }
    assert sum(number > 5 for number in counts.values()) == 1
    assert max(counts.values()) > 5


def test_a_definitions_generator_makes_its_events_in_batches_of_its_size(tmp_path: Path) -> None:
    source = source_of(load("device_stats"), Opening(Place(tmp_path), Clock(NOW)))
    assert isinstance(source, Generator)
    assert (source.events, source.most_records) == ("devices", 100_000)
    assert source.capped(0, 150) < 130
    assert source.before(source.capped(0, 150)) <= 100_000


def test_unknown_events_are_refused_with_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    text = (SHIPPED / "card_fraud.yaml").read_text()
    path.write_text(text.replace("events: cards", "events: card"))
    with pytest.raises(DefinitionError, match=r"unknown events 'card'.*cards"):
        read(path)
