"""Events take what dimensions say at their time, once; what came late is repaired by its keys.

08:00            09:00            10:00
  |----- basic -----|----- gold ----->      c1, type 2
     e1 08:30           e2 09:30
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from change_log import Change, customer
from dimension_lakes import WORDS, DimensionLake, declared, purchase, with_history
from lakes import NOW, at
from tidemill.config.settings import Clock, Place
from tidemill.operations.rebuild.wanted import wanted
from tidemill.operations.rebuild.work import Work
from tidemill.pipeline import runner
from tidemill.pipeline.connection import Opening
from tidemill.pipeline.queries import Pipeline
from tidemill.pipeline.silver.lookup import Readings
from tidemill.sources.files.source import Files

BASIC = Change(10, at("08:00"), None, customer(1, "basic", 5), "c")
GOLD = Change(20, at("09:00"), None, customer(1, "gold", 9), "u")
E1 = purchase(1, "c1", at("08:30"), 10)
E2 = purchase(2, "c1", at("09:30"), 20)
E3 = purchase(3, "c2", at("09:30"), 40)
EARLY = purchase(4, "c1", at("07:59"))


def taken(lake: DimensionLake) -> dict[str, tuple]:
    rows = lake.table("purchases_events").collect()
    return {row["event_id"]: (row["segment"], row["credit"]) for row in rows}


def told(lake: DimensionLake) -> dict:
    return lake.ledgers("purchases_events")[0]


def test_as_of_the_events_time(spark: SparkSession, tmp_path: Path) -> None:
    lake = DimensionLake.new(spark, tmp_path / "lake", declared())
    lake.change([GOLD.record(), BASIC.record()])
    lake.clean([E1, E2, E3, EARLY, E2])
    nothing = (None, None)
    assert taken(lake) == {"e1": ("basic", 5), "e2": ("gold", 9), "e3": nothing, "e4": nothing}
    assert told(lake)["unmatched"] == {"customer": 2}
    assert (told(lake)["accepted"], told(lake)["duplicates"]) == (4, 1)


def test_the_newest_row_of_a_dimension_without_history(spark: SparkSession, tmp_path: Path) -> None:
    lake = DimensionLake.new(spark, tmp_path / "lake", with_history("type1"))
    lake.change([GOLD.record(), BASIC.record()])
    lake.clean([E1, EARLY])
    assert taken(lake) == {"e1": ("gold", 9), "e4": ("gold", 9)}
    lake.change([Change(30, at("10:00"), {"customer_id": "c1"}, None, "d").record()])
    lake.clean([E2])
    assert taken(lake)["e2"] == (None, None)


def test_each_new_version_is_seen_by_the_next_batch_or_after_refresh(
    spark: SparkSession, tmp_path: Path
) -> None:
    words = [{**WORDS["enrich"][0], "refresh": "5m"}]
    lake = DimensionLake.new(spark, tmp_path / "lake", declared(enrich=words))
    seconds = [0.0]
    readings = Readings(lambda: seconds[0])
    lake.change([BASIC.record()])
    lake.clean([E1], readings=readings)
    lake.change([GOLD.record()])
    seconds[0] = 299.0
    lake.clean([E2], readings=readings)
    assert taken(lake) == {"e1": ("basic", 5), "e2": ("basic", 5)}, "not yet five minutes old"
    seconds[0] = 300.0
    lake.clean([purchase(5, "c1", at("09:45"))], readings=readings)
    assert taken(lake)["e5"] == ("gold", 9)
    assert [batch["dimensions"]["customer"] for batch in lake.ledgers("purchases_events")] == [
        *(2, 1, 1),
    ]


def test_a_batch_that_comes_again_after_the_dimension_has_changed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It is the same batch: what it took first stays."""
    root = tmp_path / "lake"
    lake = DimensionLake.new(spark, root, declared())
    lake.change([BASIC.record()])
    start = lake.records
    lake.step([E1, E2])
    before = taken(lake)
    assert before == {"e1": ("basic", 5), "e2": ("basic", 5)}
    lake.change([GOLD.record()])
    lake.records = start
    stands = len(lake.ledgers("purchases_events"))
    lake.clean([E1, E2], batch=0)
    assert taken(lake) == before
    assert len(lake.ledgers("purchases_events")) == stands


def gold(lake: DimensionLake, view: str) -> dict[str, dict]:
    key = lake.lake.pipeline.view(view).keys[0]
    return {row[key]: row for row in lake.rows(f"{view}_features")}


def test_attributes_are_inputs_filters_and_keys_of_features(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = DimensionLake.new(spark, tmp_path / "lake", declared())
    lake.change([GOLD.record(), BASIC.record()])
    lake.step([E1, E2, E3])
    spending = gold(lake, "spending")
    assert list(spending) == ["c1"], "c2 has no row in the dimension: every feature is empty"
    c1 = spending["c1"]
    assert (c1["basic_count_1d"], c1["gold_count_1h"], c1["gold_sum_1d"]) == (1, 1, 20)
    assert c1["credit_max_1d"] == 9
    groups = {key: row["count_1d"] for key, row in gold(lake, "by_segment").items()}
    assert groups == {"basic": 1, "gold": 1, "unknown": 1}


@pytest.mark.parametrize("view", ["spending", "by_segment"])
def test_late_rows_are_repaired_by_the_keys_they_change(
    spark: SparkSession, tmp_path: Path, view: str
) -> None:
    """Also where what is late is a key: the events leave the one that they had."""
    views = [one for one in WORDS["views"] if one["name"] == view]
    definition = declared(views=views)
    root = tmp_path / "lake"
    lake = DimensionLake.new(spark, root, definition)
    late = Change(10, at("08:00"), None, customer(2, "gold", 7), "c")
    lake.change([BASIC.record(), GOLD.record()])
    lake.step([E1, E2, E3])
    lake.change([late.record()])
    key = {"buyer": "c2"} if view == "spending" else {"group": "unknown"}
    # feature's checkpoint is a stream's: this lake has none, so the parts are called as they are
    said: list[str] = []
    work = Work(
        Opening(Place(root), Clock(NOW)),
        definition,
        wanted(None, (), (), [key], None),
        said.append,
        lambda rows: None,
    )
    from tidemill.operations.rebuild import enriched_events

    again = enriched_events.look_up_again(work, lake.lake)
    assert taken(lake) == {"e1": ("basic", 5), "e2": ("gold", 9), "e3": ("gold", 7)}
    keys = {key["buyer"] if view == "spending" else key["group"] for key in again.keys}
    assert keys == ({"c2"} if view == "spending" else {"unknown", "gold"})
    assert said[-1].endswith("1 events take something else of their dimensions")
    before = len(lake.ledgers("purchases_events"))
    assert enriched_events.look_up_again(work, lake.lake) == again, "found again after a crash"
    assert len(lake.ledgers("purchases_events")) == before


def test_a_first_start_fills_dimensions_before_an_event_is_cleaned(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`run` takes all that a dimension's source has before its queries start; once the dimension
    has had a batch, it waits for none."""
    lake = DimensionLake.new(spark, tmp_path / "lake", declared())
    purchases, changes = (Files(tmp_path / name) for name in ("purchases", "changes"))
    pipeline = Pipeline(lake.lake, purchases, Clock(NOW), "event", feeds={"customer": changes})
    purchases.folder.mkdir()
    changes.folder.mkdir()
    order: list[str] = []
    stop = runner.Stop()

    def started(*_: object) -> None:
        order.append("all")
        stop.asked.set()

    monkeypatch.setattr(runner, "finish", lambda name, *_: order.append(name))
    monkeypatch.setattr(runner, "_start_ready", started)
    runner.run(pipeline, stop)
    assert order == ["land_customer", "dimension_customer", "all"]

    lake.change([])
    assert runner.queries_to_fill(pipeline) == ["land_customer", "dimension_customer"]
    lake.change(["null"])
    assert runner.queries_to_fill(pipeline) == []
