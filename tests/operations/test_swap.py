"""Another generation beside the living one: compared, put in its place, and taken back."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

import sales
from command_line import ending_at
from lakes import at
from runs import write_file
from sales import Sale, record
from sales_project import declare, done, tidemill
from tidemill.features import Feature, count, max_, min_, sum_
from tidemill.lake.commits.failpoints import SWAP_POINTS

OF_BUYS = sum_("points").where("kind = 'buy'").over("1d")
OLD = (count().over("1d", "3h"), sum_("points").over("1d"), min_("points").over("1d"))
NEW = (count().over("1d", "3h"), OF_BUYS, max_("points").over("1d"))
EARLY = sales.draw(random.Random(1), at("20T22:00"), 600, 40)
LATER = sales.draw(random.Random(2), at("08:00"), 100, 15)
LAST = sales.draw(random.Random(3), at("09:40"), 30, 10)


def declared(folder: Path, *features: Feature, **more: Any) -> None:
    views = [view.words() for view in sales.declare(features).views]
    declare(folder, **{"views": views, **more})


def expected(known: list[Sale], features: tuple[Feature, ...]) -> dict[str, dict[str, Any]]:
    """By brute force, of each card, at the end of the newest minute."""
    as_of = sales.cut(max(s.at for s in known), timedelta(minutes=1)) + timedelta(minutes=1)
    found = {}
    for card in {sale.card for sale in known}:
        day, three = (
            [s for s in known if s.card == card and s.at >= as_of - timedelta(hours=hours)]
            for hours in (24, 3)
        )
        counted = {"count_1d": len(day), "count_3h": len(three)}
        bought = [s.points for s in day if s.kind == "buy"]
        points = [s.points for s in day]
        found[card] = counted | (
            {"points_sum_1d": sum(points), "points_min_1d": min(points, default=None)}
            if features == OLD
            else {"points_sum_1d": sum(bought), "points_max_1d": max(points, default=None)}
        )
    return found


def gold(folder: Path) -> dict[str, dict[str, Any]]:
    """Gold as a reader of the folder sees it, who knows neither Spark nor Tidemill."""
    rows = DeltaTable(folder / "lake" / "sales_features").to_pyarrow_table().to_pylist()
    keep = [n for n in rows[0] if not n.startswith("__") and n not in ("card", "updated_at")]
    return {row["card"]: {n: row[n] for n in keep} for row in rows}


def identities(folder: Path) -> dict[str, str]:
    """Delta's id of each table of the living lake."""
    logs = (folder / "lake").glob("*/_delta_log")
    return {log.parent.name: DeltaTable(log.parent).metadata().id for log in logs}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_file(tmp_path / "events", "1.jsonl", map(record, EARLY), age=90)
    declared(tmp_path, *OLD)
    done(tmp_path, "run", "--once")
    return tmp_path


@pytest.mark.stream
def test_beside_compared_in_place_and_back(spark: SparkSession, folder: Path) -> None:
    declared(folder, *NEW)
    made = done(folder, "rebuild", "--from", "source")
    assert made["complete"]
    assert made["accepted"] == len(EARLY)
    assert gold(folder) == expected(EARLY, OLD), "the living gold is as it was"

    # while the living one runs on, the other catches up when it is told to
    write_file(folder / "events", "2.jsonl", map(record, LATER), age=60)
    declared(folder, *OLD)
    done(folder, "run", "--once")
    declared(folder, *NEW)
    (lagging,) = done(folder, "diff")["views"]
    assert done(folder, "rebuild", "--from", "source")["accepted"] == len(LATER)
    (compared,) = done(folder, "diff", "--examples", "2")["views"]
    assert lagging["different"] >= compared["different"] == 3
    old, new = expected(EARLY + LATER, OLD), expected(EARLY + LATER, NEW)
    assert compared["keys"] == 3
    assert sorted(compared["features"], key=lambda one: one["different"], reverse=True) == [
        {
            "feature": name,
            "different": sum(old[card][name] != new[card][name] for card in old),
        }
        for name in ("points_sum_1d", "count_1d", "count_3h")
    ]
    assert (compared["added"], compared["removed"]) == (["points_max_1d"], ["points_min_1d"])
    first = compared["examples"][0]
    card = first["key"]["card"]
    pair = {"gold": old[card]["points_sum_1d"], "other": new[card]["points_sum_1d"]}
    assert first["values"] == {"points_sum_1d": pair}

    version = DeltaTable(folder / "lake" / "sales_features").version()
    swapped = done(folder, "swap")
    assert swapped["views"][0]["keys_changed"] == 3
    assert swapped["generation"] != swapped["before"]
    assert gold(folder) == new
    assert DeltaTable(folder / "lake" / "sales_features").version() == version + 1, "one commit"
    assert done(folder, "reconcile")["different"] == 0
    assert done(folder, "reconcile", "--from", "events")["different"] == 0

    # it goes on as the living one
    write_file(folder / "events", "3.jsonl", map(record, LAST), age=30)
    assert done(folder, "run", "--once")["accepted"] == len(LAST)
    assert gold(folder) == expected(EARLY + LATER + LAST, NEW)

    # and back: the old one reads on from where it was
    declared(folder, *OLD)
    back = done(folder, "swap")
    assert (back["generation"], back["before"]) == (swapped["before"], swapped["generation"])
    assert gold(folder) == old
    assert done(folder, "run", "--once")["accepted"] == len(LAST)
    assert gold(folder) == expected(EARLY + LATER + LAST, OLD)
    assert done(folder, "reconcile", "--from", "events")["different"] == 0


@pytest.mark.stream
def test_stopped_anywhere_the_same_swap_finishes_it(spark: SparkSession, folder: Path) -> None:
    declared(folder, *NEW)
    done(folder, "rebuild", "--from", "source")
    features = [NEW, OLD]
    for number, point in enumerate(SWAP_POINTS):
        declared(folder, *features[number % 2])
        with ending_at(point):
            assert tidemill(folder, "swap").code == 3, point
        if point in SWAP_POINTS[:3]:
            for words in (("run", "--once"), ("reconcile",)):
                refused = tidemill(folder, *words)
                assert refused.code == 2, (point, words)
                assert "a swap was interrupted" in refused.error["message"]
                assert f"tidemill swap {folder / 'sales.yaml'}`" in refused.error["expected"]
        done(folder, "run", "--once") if point == "swap.moved" else done(folder, "swap")
        assert gold(folder) == expected(EARLY, features[number % 2]), point
        assert done(folder, "reconcile", "--from", "events")["different"] == 0


@pytest.mark.stream
def test_with_the_stateful_engine(spark: SparkSession, tmp_path: Path) -> None:
    """Another engine is another definition: gold, kept by its state, is the same."""
    features = (count().over("1d", "3h"), sum_("points").over("1d"))
    write_file(tmp_path / "events", "1.jsonl", map(record, EARLY), age=90)
    declared(tmp_path, *features)
    done(tmp_path, "run", "--once")
    before = gold(tmp_path)
    declared(tmp_path, *features, engine="stateful")
    done(tmp_path, "rebuild", "--from", "source")
    assert done(tmp_path, "diff")["views"][0]["different"] == 0
    done(tmp_path, "swap")
    assert gold(tmp_path) == before
    write_file(tmp_path / "events", "2.jsonl", map(record, LATER), age=60)
    assert done(tmp_path, "run", "--once")["accepted"] == len(LATER)
    assert done(tmp_path, "reconcile")["different"] == 0


@pytest.mark.stream
def test_a_view_that_the_living_lake_has_not(spark: SparkSession, folder: Path) -> None:
    other = sales.declare(OLD).views[0].words() | {"name": "kinds", "keys": ["kind"]}
    done(folder, "recompute")
    views = [sales.declare(OLD).views[0].words(), other]
    declared(folder, *OLD, views=views)
    done(folder, "rebuild", "--from", "source")
    sold, kinds = done(folder, "diff")["views"]
    assert (sold["different"], kinds["view"], kinds["gold_version"]) == (0, "kinds", None)
    found = len({sale.kind for sale in EARLY})
    assert kinds["keys"] == kinds["different"] == kinds["only_in_other"] == found
    assert {"count_1d", "count_3h"} < {*kinds["added"]}
    before = identities(folder)
    done(folder, "swap")
    stay = {n for n, identity in identities(folder).items() if before.get(n) == identity}
    assert stay == {"sales_features", "sales_batch", "tidemill_batches"}
    assert gold(folder) == expected(EARLY, OLD)
    assert len(DeltaTable(folder / "lake" / "kinds_features").to_pyarrow_table()) == found
    done(folder, "reconcile", "--from", "events")

    # back to a definition without it, and forth again: its buckets go with the generation
    declared(folder, *OLD)
    done(folder, "swap")
    assert not (folder / "lake" / "kinds_buckets").exists()
    assert done(folder, "reconcile", "--from", "events")["different"] == 0
    declared(folder, *OLD, views=views)
    done(folder, "swap")
    done(folder, "reconcile", "--from", "events")


@pytest.mark.stream
def test_what_cannot_be_beside(spark: SparkSession, folder: Path) -> None:
    for command in ("diff", "swap"):
        refused = tidemill(folder, command)
        assert refused.code == 2
        assert "sales.yaml --from source`" in refused.error["expected"]
    for keys in (["card", "kind"], ["kind"], ["points"]):
        other = sales.declare(OLD).views[0].words() | {"keys": keys}
        declared(folder, *OLD, views=[other])
        refused = tidemill(folder, "rebuild", "--from", "source")
        assert refused.code == 2
        assert "has other keys than its gold table" in refused.error["message"]
    declared(folder, *OLD)
    refused = tidemill(folder, "rebuild", "--keys", "card=c1", "--source", "files")
    assert "only --from source reads a source" in refused.error["message"]
    done(folder, "rebuild", "--from", "source")
    declared(folder, *NEW)
    refused = tidemill(folder, "swap")
    assert refused.code == 2
    assert "another declaration of view sales: the buckets hold" in refused.error["message"]
    refused = tidemill(folder, "rebuild", "--from", "source")
    assert refused.code == 2
    assert refused.error["where"] == str(folder / "lake" / "_rebuild" / "sales")
    assert "cannot be gone on with: view sales: is declared" in refused.error["message"]
    assert "remove this one" in refused.error["expected"]
    assert gold(folder) == expected(EARLY, OLD)
