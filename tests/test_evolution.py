"""A view that changes while its lake lives: columns come and go, nothing is half applied."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sales
from lakes import at
from sales import Sales
from tidemill import evolution, reconcile
from tidemill.errors import LakeError
from tidemill.features import Feature, count, mean, sum_

COUNT = count().over("3h", "1h")
SUM = sum_("amount", scale=2).over("1h")
OTHER = count().where("ok").named("good").over("1h")


def reopened(lake: Sales, *features: Feature, **words: Any) -> Sales:
    root = lake.lake.place.root
    assert root is not None
    return Sales.new(lake.lake.spark, root, sales.declare(features, **words)).at(lake.batch)


def kind(lake: Sales, *features: Feature, **words: Any) -> str:
    view = sales.declare(features, **words).views[0]
    return evolution.change(lake.lake.spark, view).kind


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
    view = sales.declare(features).views[0].model_copy(update=words)
    assert evolution.change(lake.lake.spark, view).kind == "bronze"


def test_the_same_name_for_something_else_is_missing(lake: Sales) -> None:
    other = sum_("amount", scale=2).where("ok").over("1h")
    found = evolution.change(lake.lake.spark, sales.declare([COUNT, other]).views[0])
    assert (found.kind, found.missing) == ("features", ("amount_sum",))


def test_when_empty_alone_is_no_other_column(lake: Sales) -> None:
    other = reopened(lake, COUNT, SUM, when_empty="delete")
    other.refresh(at("23:00"))
    assert other.gold() == {}
    assert kind(other, COUNT, SUM, when_empty="delete") == "none"
