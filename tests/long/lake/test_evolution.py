"""A view that changes while its lake lives: columns come and go, nothing is half applied."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sales
from lakes import NOW, Lakes, TestLake, at, payload
from sales import Sales
from tidemill.config.pipeline_file import PipelineDefinition, load
from tidemill.config.settings import Clock
from tidemill.errors import LakeError
from tidemill.features import Feature, approx_distinct, count, mean, most_frequent, quantiles, sum_
from tidemill.lake.schema import creation, evolution, expired_before
from tidemill.operations import maintenance, reconcile

COUNT = count().over("3h", "1h")
SUM = sum_("amount", scale=2).over("1h")
OTHER = count().where("ok").named("good").over("1h")


def reopened(lake: Sales, *features: Feature, **words: Any) -> Sales:
    root = lake.lake.place.root
    assert root is not None
    return Sales.new(lake.lake.spark, root, sales.declare(features, **words)).at(lake.batch)


def kind(lake: Sales, *features: Feature, **words: Any) -> str:
    return change(lake, sales.declare(features, **words)).kind


def change(lake: Sales | TestLake, declared: PipelineDefinition) -> evolution.Change:
    return evolution.change(replace(lake.lake, pipeline=declared), declared.views[0])


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Sales:
    made = Sales.new(spark, tmp_path / "lake", sales.declare([COUNT, SUM]))
    made.feed(sales.draw(random.Random(1), at("06:00"), 60, 30))
    return made


def counted(lake: Sales, name: str) -> dict[str, Any]:
    return {card: row[name] for card, row in lake.gold().items()}


def test_a_window_more_and_a_feature_less_are_one_commit(lake: Sales) -> None:
    before = lake.gold()
    assert kind(lake, count().over("3h", "2h"), mean("points").over("1h")) == "features"
    assert kind(lake, count().over("3h", "2h")) == "gold"
    other = reopened(lake, count().over("3h", "2h"))
    assert lake.gold() == before, "gold is as it was until the refresh"
    version = other.newest("features")
    done = other.refresh(other.as_of())
    assert done.committed and other.newest("features") == version + 1
    assert set(next(iter(other.gold().values()))) == {"card", "count_3h", "count_2h", "updated_at"}
    assert counted(other, "count_3h") == {card: row["count_3h"] for card, row in before.items()}
    assert reconcile.reconcile(other.lake, other.view).different == 0
    other.feed(sales.draw(random.Random(2), at("07:00"), 5, 10))
    assert other.mode() == "incremental"
    assert reconcile.reconcile(other.lake, other.view).different == 0


def test_what_the_buckets_let_go_is_not_taken_for_held(lake: Sales) -> None:
    less = reopened(lake, COUNT)
    less.feed(sales.draw(random.Random(3), at("07:00"), 5, 10))
    assert kind(less, COUNT, SUM) == "features"
    with pytest.raises(LakeError, match="the buckets hold nothing for amount_sum") as caught:
        reopened(less, COUNT, SUM)
    assert "tidemill rebuild sales --features amount_sum" in str(caught.value)


@pytest.mark.parametrize(
    ("words", "features"),
    [
        ({"bucket": "5m"}, [COUNT, SUM]),
        ({"keys": ["card", "merchant"]}, [COUNT, SUM]),
    ],
)
def test_another_grain_needs_all_of_it(lake: Sales, words: dict, features: list[Feature]) -> None:
    words = {
        **words,
        **({"schema": {**sales.SCHEMA, "merchant": "string"}} if "keys" in words else {}),
    }
    declared = sales.declare(features)
    view = declared.views[0].model_copy(update=words)
    other = declared.model_copy(update={"views": (view,)})
    assert change(lake, other).kind == "bronze"


def test_the_same_name_for_something_else_is_missing(lake: Sales) -> None:
    other = sum_("amount", scale=2).where("ok").over("1h")
    declared = sales.declare([COUNT, other])
    found = change(lake, declared)
    assert (found.kind, found.missing) == ("features", ("amount_sum",))


# -- what expired --------------------------------------------------------------------------------


def expired(lake: Sales) -> None:
    steps = maintenance.plan(lake.lake, Clock(NOW), ("expire",))
    assert [done.table for done in maintenance.maintain(lake.lake, steps)] == ["sales_buckets"]


def with_history(history: str, *features: Feature) -> PipelineDefinition:
    return sales.declare(features).overridden({"history": history})


@pytest.mark.parametrize("told", [True, False], ids=["by the table", "by its log alone"])
def test_longer_windows_need_what_has_expired(
    spark: SparkSession, tmp_path: Path, told: bool
) -> None:
    """However long `history` is today. A lake of version 0.1 says it in its log alone."""
    lake = Sales.new(spark, tmp_path / "lake", with_history("1d", COUNT))
    for day in (18, 19, 20):
        lake.feed(sales.draw(random.Random(day), at(f"{day}T06:00"), 60, 10))
    expired(lake)
    if not told:
        spark.sql(f"ALTER TABLE sales_buckets UNSET TBLPROPERTIES ('{expired_before.PROPERTY}')")
    longer = with_history("10d", count().over("2d", "1h"))
    found = change(lake, longer)
    assert (found.kind, found.since) == ("since", f"2026-11-18T{lake.as_of():%H}:00")
    root = lake.lake.place.root
    assert root is not None
    with pytest.raises(LakeError, match="expired") as caught:
        Sales.new(spark, root, longer)
    assert f"tidemill rebuild sales --since {found.since}" in str(caught.value)
    within = with_history("10d", count().over("1d", "1h"))
    assert change(lake, within).kind == "gold"
    both = with_history("10d", count().over("2d"), sum_("points").over("1h"))
    assert change(lake, both).kind == "views"
    lake.feed(sales.draw(random.Random(4), at("22T06:00"), 60, 10))
    assert change(lake, longer).kind == "gold", "time went on"
    made = lake.lake.tables.of(lake.view).buckets
    creation.create(lake.lake, made, replace=True)
    said = lake.lake.metadata(made.name).properties
    assert expired_before.PROPERTY not in said, "a rebuild from bronze"


def test_history_of_the_pipeline_is_that_of_its_views() -> None:
    longer = with_history("800d", COUNT)
    assert longer.kept_of(longer.views[0]) == timedelta(days=800)
    shorter = sales.declare([COUNT], history="30d").overridden({"history": "800d"})
    assert shorter.kept_of(shorter.views[0]) == timedelta(days=30)
    assert with_history("2d", COUNT).kept_of(longer.views[0]) == timedelta(days=2)


def test_a_value_of_which_records_were_refused_needs_all_of_it(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.clean([payload((None, "p", "g", "share", at("10:00")))])
    declared = lakes.declared()

    def plan(*values: str) -> evolution.Change:
        more = {"count": {"by": {"event_type": [*values]}}, "over": ["1h"], "name": "more"}
        view = {**declared, "features": [*declared["features"], more]}
        other = load("engagement").overridden({"views": [view], "quality": {}})
        return change(lake, other)

    assert plan("view", "select").kind == "features"
    assert plan("view", "never").kind == "features", "no record of it was refused"
    found = plan("view", "share")
    assert found.kind == "bronze"
    assert (
        found.why == "records with event_type share are in quarantine, refused when it was unknown"
    )


def test_no_feature_that_the_buckets_hold_needs_all_of_it(lake: Sales) -> None:
    assert kind(lake, OTHER) == "bronze"
    assert kind(lake, OTHER, COUNT) == "features"


# -- sketches ------------------------------------------------------------------------------------

SKETCHES = (
    approx_distinct("merchant").over("3h"),
    quantiles("amount", [0.5]).over("3h"),
    most_frequent("merchant", 3).over("3h"),
)


@pytest.fixture
def sketched(spark: SparkSession, tmp_path: Path) -> Sales:
    made = Sales.new(spark, tmp_path / "lake", recomputed(*SKETCHES))
    made.feed(sales.draw(random.Random(1), at("06:00"), 60, 300))
    return made


def recomputed(*features: Feature) -> PipelineDefinition:
    return sales.declare(features).overridden({"refresh": "recompute"})


def test_another_result_of_a_sketch_is_written_for_every_key(
    sketched: Sales, spark: SparkSession
) -> None:
    root = sketched.lake.place.root
    assert root is not None
    others = (SKETCHES[0], quantiles("amount", [0.1, 0.9]).over("3h"), SKETCHES[2])
    other = Sales.new(spark, root, recomputed(*others)).at(sketched.batch)
    assert reconcile.reconcile(other.lake, other.view).different == len(other.gold())
    other.refresh(other.as_of())
    assert {len(row["amount_quantiles_3h"]) for row in other.gold().values()} == {2}
    assert reconcile.reconcile(other.lake, other.view).different == 0


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("amount_quantiles_3h", "array(1.0D)"),
        ("amount_quantiles_3h", "array()"),
        ("amount_quantiles_3h", "NULL"),
        ("merchant_approx_distinct_3h", "merchant_approx_distinct_3h + 3"),
        ("merchant_most_frequent_3h", "slice(merchant_most_frequent_3h, 2, 2)"),
        ("merchant_most_frequent_3h", "array(named_struct('item', 'm1', 'count', 1L))"),
    ],
)
def test_a_sketch_that_another_writer_changed_is_found_and_repaired(
    sketched: Sales, spark: SparkSession, column: str, value: str
) -> None:
    before = sketched.gold()
    spark.sql(f"UPDATE sales_features SET {column} = {value} WHERE card = 'c1'")
    assert reconcile.reconcile(sketched.lake, sketched.view).different == 1
    assert reconcile.repaired(sketched.lake, sketched.view)["repaired"] >= 1
    after = sketched.gold()["c1"]
    assert {n: v for n, v in after.items() if n != "updated_at"} == {
        n: v for n, v in before["c1"].items() if n != "updated_at"
    }


def test_when_empty_alone_is_no_other_column(lake: Sales) -> None:
    other = reopened(lake, COUNT, SUM, when_empty="delete")
    other.refresh(at("23:00"))
    assert other.gold() == {}
    assert kind(other, COUNT, SUM, when_empty="delete") == "none"


def test_a_selected_column_of_another_type_is_something_else(
    spark: SparkSession, tmp_path: Path
) -> None:
    """2.4 is 2 as a bigint: what reads the column is made again, and nothing else."""
    features = [COUNT, count().where("share > 2").named("dear").over("1h")]
    whole, exact = ({"share": {type_: "amount / 10"}} for type_ in ("bigint", "double"))
    lake = Sales.new(spark, tmp_path / "lake", sales.declare(features, select=whole))
    lake.feed(sales.draw(random.Random(1), at("06:00"), 60, 30))
    assert change(lake, sales.declare(features, select=whole)).kind == "none"
    found = change(lake, sales.declare(features, select=exact))
    assert (found.kind, found.missing, found.features) == (
        "features",
        ("dear_count",),
        ("dear_count",),
    )
    assert kind(lake, COUNT, select=exact) == "gold"
