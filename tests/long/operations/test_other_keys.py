"""A view whose keys change: with one more, one less, others, or one of another type.

run ──► other keys ──► plan: bronze ──► rebuild --from bronze, cut off and again ──► compared
                                        gold, its history, days, alerts, the online store
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sales
from command_line import call, ending_at
from lakes import at
from runs import write_file
from sales import record
from sales_project import declare, done, tidemill
from tidemill.features import count

SALES = sales.draw(random.Random(1), at("20:00") - timedelta(days=1), 13 * 60, 60)
AS_OF = sales.cut(max(sale.at for sale in SALES), timedelta(minutes=1)) + timedelta(minutes=1)
NAMES = {"ware": "kind"}
MANY = 3  # sales of which an alert tells
FOLLOWERS = {
    "served_history": "refresh",
    "alerts": [{"name": "BUSY", "view": "sales", "when": f"count_1d > {MANY}"}],
}
KEYS = (("card",), ("card", "ware"), ("ware",), ("points",), ("ware", "card"))


def declared(folder: Path, keys: Sequence[str], **more: Any) -> None:
    view = sales.declare([count().over("1d")]).views[0].words()
    select = {"ware": {"string": "kind"}}
    declare(folder, [{**view, "keys": [*keys], "select": select}], **more)


def counted(keys: Sequence[str], end: datetime = AS_OF) -> Counter[tuple[Any, ...]]:
    """The sales of each key that had any, in the day up to a time."""
    inside = [sale for sale in SALES if end - timedelta(days=1) <= sale.at < end]
    return Counter(tuple(getattr(sale, NAMES.get(key, key)) for key in keys) for sale in inside)


def table(
    spark: SparkSession, folder: Path, name: str, keys: Sequence[str], kind: str = ""
) -> Counter[tuple[Any, ...]]:
    rows = spark.read.format("delta").load(str(folder / "lake" / name))
    rows = rows.where(kind) if kind else rows
    found = rows.select(*keys, "count_1d").collect()
    shown = {tuple(row[:-1]): row[-1] for row in found}
    assert len(shown) == len(found), "a key stands twice"
    return Counter(shown)


@pytest.mark.stream
def test_each_follows_in_a_rebuild_from_bronze(spark: SparkSession, tmp_path: Path) -> None:
    write_file(tmp_path / "events", "1.jsonl", map(record, SALES), age=90)
    declared(tmp_path, KEYS[0], **FOLLOWERS)
    done(tmp_path, "run", "--once")
    before = KEYS[0]
    for number, keys in enumerate((*KEYS[1:], *KEYS[:1])):
        declared(tmp_path, keys, **FOLLOWERS)
        assert done(tmp_path, "plan")["kind"] == "bronze"
        refused = tidemill(tmp_path, "run", "--once")
        assert refused.code == 2 and "--from bronze" in refused.error["expected"]
        assert table(spark, tmp_path, "sales_features", before) == counted(before)
        with ending_at(("clean.events_written", "renew.table_emptied")[number % 2]):
            assert tidemill(tmp_path, "rebuild", "--from", "bronze").code == 3
        assert table(spark, tmp_path, "sales_features", before) == counted(before)
        done(tmp_path, "rebuild", "--from", "bronze")
        done(tmp_path, "run", "--once")
        assert table(spark, tmp_path, "sales_features", keys) == counted(keys)
        assert done(tmp_path, "reconcile", "--from", "events")["different"] == 0

        told = table(spark, tmp_path, "sales_history", keys, "kind = 'row'")
        assert told == counted(keys), "it answers of these keys alone"
        busy = {key for key, events in counted(keys).items() if events > MANY}
        open_now = [tuple(one["key"].values()) for one in done(tmp_path, "alerts")["alerts"]]
        assert sorted(open_now) == sorted(busy)
        done(tmp_path, "recompute")
        days = table(spark, tmp_path, "sales_batch", keys, "row_kind = 'row'")
        assert days == counted(keys, at("00:00"))

        store = ("--store", tmp_path / "store.db")
        done(tmp_path, "publish", *store)
        words = (*store, "--pipeline", tmp_path / "sales.yaml", "--root", tmp_path / "lake")
        answer = call("audit", "sales", *words, "--json")
        assert answer.code == 0, answer
        before = keys


@pytest.mark.stream
def test_a_key_called_as_an_answer_has_a_column(spark: SparkSession, tmp_path: Path) -> None:
    write_file(tmp_path / "events", "1.jsonl", map(record, SALES), age=90)
    for words in ({"served_history": "maintenance"}, {"alerts": FOLLOWERS["alerts"]}):
        declared(tmp_path, ["kind"], **words)
        refused = tidemill(tmp_path, "run", "--once")
        assert refused.code == 2 and f"with {next(iter(words))} no key" in refused.error["message"]
        assert "select: {sales_kind: {string: kind}}" in refused.error["message"]
    declared(tmp_path, ["kind"])
    done(tmp_path, "run", "--once")
    assert table(spark, tmp_path, "sales_features", ["kind"]) == counted(["kind"])
    store = ("--store", tmp_path / "store.db")
    done(tmp_path, "publish", *store)
    words = (*store, "--pipeline", tmp_path / "sales.yaml", "--root", tmp_path / "lake")
    refused = call("audit", "sales", *words, "--json")
    assert refused.code == 2 and "has a key called kind" in refused.error["message"]


@pytest.mark.stream
def test_with_the_stateful_engine(spark: SparkSession, tmp_path: Path) -> None:
    early, later = SALES[:40], SALES[40:]
    write_file(tmp_path / "events", "1.jsonl", map(record, early), age=90)
    declared(tmp_path, ["card", "ware"], engine="stateful")
    done(tmp_path, "run", "--once")
    declared(tmp_path, ["ware"], engine="stateful")
    assert tidemill(tmp_path, "run", "--once").code == 2
    done(tmp_path, "rebuild", "--from", "bronze")
    assert done(tmp_path, "reconcile")["different"] == 0
    write_file(tmp_path / "events", "2.jsonl", map(record, later), age=60)
    done(tmp_path, "run", "--once")
    assert table(spark, tmp_path, "sales_features", ["ware"]) == counted(["ware"])
    assert done(tmp_path, "reconcile")["different"] == 0
