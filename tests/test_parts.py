"""Rebuild of a part: features that the buckets lack, some keys, what came since a time."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

import sales
from command_line import Answer, call
from lakes import at
from runs import write_file
from sales import Sale, Sales
from tidemill import failpoints
from tidemill.features import Feature, count, max_, mean, ratio, sum_

COUNT = count().over("2d", "3h")
GOOD = count().where("ok").named("good").over("3h")
MEAN = mean("amount", scale=2).over("2d")
LARGEST = max_("points").over("2d")
SHARE = ratio("good_count", "count").named("share").over("3h")


def drawn(seed: int, start: datetime, minutes: int, number: int) -> list[Sale]:
    return sales.draw(random.Random(seed), start, minutes, number)


EARLY = drawn(1, at("19T22:00"), 2200, 60)
LATER = drawn(2, at("20T08:00"), 1500, 30)


def record(sale: Sale) -> str:
    said = {**asdict(sale), "at": sale.at.isoformat()}
    return json.dumps(
        said, default=lambda value: float(value) if isinstance(value, Decimal) else value
    )


def declared(folder: Path, *features: Feature) -> Path:
    """The pipeline's file, which can be written again with other features."""
    definition = sales.declare(features)
    words = {
        "pipeline": "sales",
        "source": {"kind": "files", "input": str(folder / "events")},
        "views": [view.words() for view in definition.views],
    }
    path = folder / "sales.yaml"
    path.write_text(yaml.safe_dump(words, sort_keys=False))
    return path


def tidemill(folder: Path, command: str, *words: object) -> Answer:
    path = folder / "sales.yaml"
    return call(command, path, *words, "--root", folder / "lake", "--json")


def check(spark: SparkSession, folder: Path, known: list[Sale], *features: Feature) -> None:
    """Fail unless gold is what brute force says, and what a recompute says."""
    lake = Sales.new(spark, folder / "lake", sales.declare(features))
    assert tidemill(folder, "reconcile").json["different"] == 0
    as_of = lake.as_of()
    for card, row in lake.gold().items():
        mine = [sale for sale in known if sale.card == card]
        three, two_days = (
            [s for s in mine if as_of - length <= sales.cut(s.at, timedelta(minutes=1)) < as_of]
            for length in (timedelta(hours=3), timedelta(days=2))
        )
        good = sum(s.ok for s in three)
        cents = [sales.cents(s.amount) for s in two_days]
        wanted: dict[str, Any] = {
            "count_2d": len(two_days),
            "count_3h": len(three),
            "good_count_3h": good,
            "amount_mean_2d": sales.mean_of(cents),
            "points_sum_3h": sum(s.points for s in three),
            "points_max_2d": max((s.points for s in two_days), default=None),
            "share_ratio_3h": good / len(three) if three else None,
        }
        shown = {column.name for column in lake.view.shown}
        assert {n: row[n] for n in shown} == {n: v for n, v in wanted.items() if n in shown}, card


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A lake of two batches; more events wait in its folder."""
    write_file(tmp_path / "events", "1.jsonl", map(record, EARLY), age=90)
    declared(tmp_path, COUNT, sum_("points").over("3h"))
    assert tidemill(tmp_path, "run", "--once").code == 0
    assert call("maintain", tmp_path / "sales.yaml", "--root", tmp_path / "lake").code == 0
    return tmp_path


def killed_at(monkeypatch: pytest.MonkeyPatch, folder: Path, time: int, *words: object) -> None:
    failpoints._reached.clear()
    with monkeypatch.context() as failing:
        failing.setenv(failpoints.VARIABLE, f"rebuild.chunk_written@{time}")
        died = tidemill(folder, "rebuild", *words)
        assert died.code == 3 and "rebuild.chunk_written" in died.error["message"], died


@pytest.mark.stream
def test_features_that_the_buckets_lack(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = (COUNT, GOOD, MEAN, LARGEST, SHARE)
    declared(folder, *features)
    refused = tidemill(folder, "run", "--once")
    assert refused.code == 2 and "rebuild sales --features" in refused.error["expected"]
    plan = tidemill(folder, "plan").json
    assert plan["kind"] == "features"
    assert plan["features"] == ["good_count", "amount_mean", "points_max"]
    assert plan["removed"] == ["points_sum_3h"]
    names = ",".join(plan["features"])
    some = tidemill(folder, "rebuild", "--features", "good_count")
    assert some.code == 2 and "nothing for amount_mean, points_max either" in some.error["message"]
    killed_at(monkeypatch, folder, 2, "--features", names)
    assert tidemill(folder, "run", "--once").code == 2, "half a rebuild is not run on"
    write_file(folder / "events", "2.jsonl", map(record, LATER), age=60)
    done = tidemill(folder, "rebuild", "--features", names)
    assert done.code == 0, done
    assert tidemill(folder, "plan").json["kind"] == "none"
    check(spark, folder, EARLY, *features)
    assert tidemill(folder, "run", "--once").json["accepted"] == len(LATER)
    check(spark, folder, EARLY + LATER, *features)


@pytest.mark.stream
def test_keys_and_what_came_since(spark: SparkSession, folder: Path) -> None:
    features = (COUNT, sum_("points").over("3h"))
    lake = Sales.new(spark, folder / "lake", sales.declare(features))
    spark.sql("DELETE FROM sales_buckets WHERE card = 'c1'")
    spark.sql("UPDATE sales_buckets SET `count` = 7 WHERE bucket_start >= '2026-11-21'")
    since = tidemill(folder, "rebuild", "--since", "2026-11-21T00:00")
    assert since.code == 0, since
    assert tidemill(folder, "rebuild", "--keys", "card=c1").code == 0
    check(spark, folder, EARLY, *features)
    assert spark.sql("SELECT sum(`count`) FROM sales_buckets").collect()[0][0] == len(EARLY)
    assert lake.view.name == "sales"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "a rebuild is of one thing, found nothing"),
        (("--from", "bronze", "--since", "2026-11-21T00:00"), "found --from and --keys, --since"),
        (("--from", "gold"), "cannot rebuild from 'gold'"),
        (("--keys", "c1"), "'c1' is no key"),
        (("--since", "yesterday"), "'yesterday' is no time"),
    ],
)
def test_what_is_no_part(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    declared(tmp_path, COUNT)
    refused = tidemill(tmp_path, "rebuild", *words)
    assert refused.code == 2 and said in refused.error["message"]
