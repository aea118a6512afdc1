"""The keys' base under rebuilds, other declarations and the commands that read."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

import sales
from command_line import call
from lakes import at
from runs import write_file
from sales import Sale, Sales, record
from sales_project import tidemill
from tidemill.features import Feature, count, max_, min_, sum_

DAY = timedelta(days=1)
FEATURES = (count().over("lifetime", "3h"), sum_("points").over("lifetime"))
MORE = (max_("points").over("lifetime"), min_("points").over("lifetime"))
EVENTS = [
    sale
    for day in range(4)
    for sale in sales.draw(random.Random(day), at("00:10") - (4 - day) * DAY, 1400, 15)
]
LATER = sales.draw(random.Random(9), at("00:10") - 3 * DAY, 4200, 20)  # some of it is folded


def declared(folder: Path, *features: Feature) -> None:
    views = sales.declare(features, history="1d").views
    words = {
        "pipeline": "sales",
        "source": {"kind": "files", "input": str(folder / "events")},
        "views": [view.words() for view in views],
    }
    (folder / "sales.yaml").write_text(yaml.safe_dump(words, sort_keys=False))


def check(spark: SparkSession, folder: Path, known: list[Sale], *features: Feature) -> Sales:
    """Fail unless gold is what brute force says, and both judges agree."""
    for words in ((), ("--from", "events"), ("--engine", "duckdb")):
        compared = tidemill(folder, "reconcile", *words)
        assert compared.code == 0, compared
        assert compared.json["different"] == 0, words
    lake = Sales.new(spark, folder / "lake", sales.declare(features, history="1d"))
    shown = {column.name for column in lake.view.shown}
    for card, row in lake.gold().items():
        mine = [sale for sale in known if sale.card == card]
        recent = [s for s in mine if s.at >= lake.as_of() - timedelta(hours=3)]
        wanted = {
            "count_lifetime": len(mine),
            "count_3h": len(recent),
            "points_sum_lifetime": sum(s.points for s in mine),
            "points_max_lifetime": max(s.points for s in mine),
            "points_min_lifetime": min(s.points for s in mine),
        }
        assert {n: row[n] for n in shown} == {n: v for n, v in wanted.items() if n in shown}, card
    return lake


def bases(spark: SparkSession) -> dict[str, int]:
    """The events in the base of each key."""
    rows = spark.table("sales_buckets").where("bucket_start < TIMESTAMP '1901-01-01T00:00:00Z'")
    return {row["card"]: row["count"] for row in rows.select("card", "count").collect()}


@pytest.mark.stream
def test_rebuilds_of_parts_and_other_declarations(spark: SparkSession, tmp_path: Path) -> None:
    write_file(tmp_path / "events", "1.jsonl", map(record, EVENTS), age=90)
    declared(tmp_path, *FEATURES)
    assert tidemill(tmp_path, "run", "--once").code == 0
    steps = tidemill(tmp_path, "maintain").json["steps"]
    assert "into the keys' base" in next(s["reason"] for s in steps if s["action"] == "expire")
    check(spark, tmp_path, EVENTS, *FEATURES)
    assert sum(bases(spark).values()) > 30

    # events of a folded time count at once, and are folded by the next upkeep
    write_file(tmp_path / "events", "2.jsonl", map(record, LATER), age=60)
    assert tidemill(tmp_path, "run", "--once").json["accepted"] == len(LATER)
    known = EVENTS + LATER
    check(spark, tmp_path, known, *FEATURES)

    # some keys: their base goes, and comes again
    before = bases(spark)
    assert tidemill(tmp_path, "rebuild", "--keys", "card=c0").code == 0
    assert bases(spark) == {card: n for card, n in before.items() if card != "c0"}
    check(spark, tmp_path, known, *FEATURES)
    assert tidemill(tmp_path, "maintain").code == 0
    assert set(bases(spark)) == set(before)
    check(spark, tmp_path, known, *FEATURES)

    # what came since: not from within the base
    refused = tidemill(tmp_path, "rebuild", "--since", "2026-11-18T00:00")
    assert refused.code == 2
    assert "are folded into the base of each key" in refused.error["message"]
    assert "1900-01-01T00:00:00Z, which makes all again" in refused.error["expected"]
    assert tidemill(tmp_path, "rebuild", "--since", "1900-01-01T00:00").code == 0
    assert bases(spark) == {}
    check(spark, tmp_path, known, *FEATURES)
    assert tidemill(tmp_path, "maintain").code == 0

    # features that the base lacks
    declared(tmp_path, *FEATURES, *MORE)
    plan = tidemill(tmp_path, "plan").json
    assert plan["kind"] == "features"
    assert tidemill(tmp_path, "rebuild", "--features", ",".join(plan["features"])).code == 0
    check(spark, tmp_path, known, *FEATURES, *MORE)
    assert tidemill(tmp_path, "maintain").code == 0
    check(spark, tmp_path, known, *FEATURES, *MORE)

    # without lifetimes the base expires, and they need it again
    declared(tmp_path, count().over("3h"))
    assert tidemill(tmp_path, "run", "--once").code == 0
    assert tidemill(tmp_path, "maintain").code == 0
    declared(tmp_path, *FEATURES[:1])
    plan = tidemill(tmp_path, "plan").json
    assert (plan["kind"], plan["since"]) == ("since", "1900-01-01T00:00")
    assert tidemill(tmp_path, "run", "--once").code == 2
    assert tidemill(tmp_path, "rebuild", "--since", plan["since"]).code == 0
    check(spark, tmp_path, known, *FEATURES[:1])

    where = ("--pipeline", tmp_path / "sales.yaml", "--root", tmp_path / "lake", "--json")
    explained = call("explain", "sales", "c1", *where).json
    assert explained["features"][0]["window"]["start"] is None
