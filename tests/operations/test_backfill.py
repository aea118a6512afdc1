"""Rebuild of a part: features that the buckets lack, some keys, what came since a time."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import sales
from command_line import call
from lakes import NOW, at
from runs import write_file
from sales import Sale, Sales, record
from sales_project import tidemill
from tidemill.config import dataflow
from tidemill.config.settings import Clock, Place
from tidemill.features import (
    Feature,
    approx_distinct,
    count,
    max_,
    mean,
    most_frequent,
    ratio,
    sum_,
)
from tidemill.lake.catalog import register
from tidemill.lake.commits import failpoints, ledger, writer
from tidemill.lake.integrity import interrupted_rebuilds
from tidemill.lake.schema import evolution
from tidemill.operations import reconcile
from tidemill.operations.rebuild import staging
from tidemill.operations.rebuild.staging import Read
from tidemill.pipeline.gold import changes
from tidemill.pipeline.queries import Pipeline
from tidemill.pipeline.silver import hour_buckets
from tidemill.sources.null_source import Absent

COUNT = count().over("2d", "3h")
GOOD = count().where("ok").named("good").over("3h")
MEAN = mean("amount", scale=2).over("2d")
LARGEST = max_("points").over("2d")
SHARE = ratio("good_count", "count").named("share").over("3h")
OFTEN = most_frequent("merchant", 20).over("2d")
MERCHANTS = approx_distinct("merchant").over("2d")


def drawn(seed: int, start: datetime, minutes: int, number: int) -> list[Sale]:
    return sales.draw(random.Random(seed), start, minutes, number)


EARLY = drawn(1, at("19T22:00"), 2200, 60)
LATER = drawn(2, at("20T08:00"), 1500, 30)


def declared(folder: Path, *features: Feature, **more: object) -> Path:
    """The pipeline's file, which can be written again with other features."""
    definition = sales.declare(features)
    words = {
        "pipeline": "sales",
        "source": {"kind": "files", "input": str(folder / "events")},
        "views": [view.words() for view in definition.views],
        **more,
    }
    path = folder / "sales.yaml"
    path.write_text(yaml.safe_dump(words, sort_keys=False))
    return path


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
            "merchant_most_frequent_2d": Counter(s.merchant for s in two_days if s.merchant),
            "merchant_approx_distinct_2d": len({s.merchant for s in two_days} - {None}),
        }
        shown = {column.name for column in lake.view.shown}
        often = row.get("merchant_most_frequent_2d", ())
        row["merchant_most_frequent_2d"] = {item["item"]: item["count"] for item in often}
        assert {n: row[n] for n in shown} == {n: v for n, v in wanted.items() if n in shown}, card


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A lake of two batches; more events wait in its folder."""
    write_file(tmp_path / "events", "1.jsonl", map(record, EARLY), age=90)
    declared(tmp_path, COUNT, sum_("points").over("3h"))
    assert tidemill(tmp_path, "run", "--once").code == 0
    assert call("maintain", tmp_path / "sales.yaml", "--root", tmp_path / "lake").code == 0
    return tmp_path


def stopped_at(monkeypatch: pytest.MonkeyPatch, folder: Path, point: str, *words: object) -> None:
    """A rebuild that ends at a point, with an exception."""
    failpoints._reached.clear()
    with monkeypatch.context() as failing:
        failing.setenv(failpoints.VARIABLE, point)
        died = tidemill(folder, "rebuild", *words)
        assert died.code == 3, died
        assert point.startswith("clean") or point.partition("@")[0] in died.error["message"], died


@pytest.mark.stream
def test_features_that_the_buckets_lack(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = (COUNT, GOOD, MEAN, LARGEST, SHARE, OFTEN, MERCHANTS)
    declared(folder, *features)
    refused = tidemill(folder, "run", "--once")
    assert refused.code == 2 and "sales.yaml --features" in refused.error["expected"]
    plan = tidemill(folder, "plan").json
    assert plan["kind"] == "features"
    assert plan["features"][:3] == ["good_count", "amount_mean", "points_max"]
    assert plan["features"][3:] == ["merchant_most_frequent", "merchant_approx_distinct"]
    assert plan["removed"] == ["points_sum_3h"]
    names = ",".join(plan["features"])
    some = tidemill(folder, "rebuild", "--features", "good_count")
    assert some.code == 2 and "nothing for amount_mean, points_max," in some.error["message"]
    stopped_at(monkeypatch, folder, "rebuild.chunk_written@2", "--features", names)
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
    of_key = tidemill(folder, "rebuild", "--keys", "card=c1")
    check(spark, folder, EARLY, *features)
    is_key = "SELECT count(*) FROM sales_buckets WHERE card = 'c1'"
    assert of_key.json["buckets"] == spark.sql(is_key).collect()[0][0]
    assert spark.sql("SELECT sum(`count`) FROM sales_buckets").collect()[0][0] == len(EARLY)
    assert lake.view.name == "sales"


@pytest.mark.stream
def test_keys_of_one_of_two_views(spark: SparkSession, tmp_path: Path) -> None:
    of_cards, of_kinds, of_points = (sales.declare([COUNT]).views[0].words() for _ in range(3))
    of_kinds |= {"name": "kinds", "keys": ["kind"]}
    of_points |= {"name": "by_points", "keys": ["points", "ok"]}
    declared(tmp_path, COUNT, views=[of_cards, of_kinds, of_points])
    write_file(tmp_path / "events", "1.jsonl", map(record, EARLY), age=90)
    assert tidemill(tmp_path, "run", "--once").code == 0
    register(spark, Place(tmp_path / "lake"))

    def held(view: str) -> int:
        return int(spark.sql(f"SELECT sum(`count`) FROM {view}_buckets").collect()[0][0])

    spark.sql("DELETE FROM sales_buckets WHERE card = 'c1'")
    spark.sql("DELETE FROM kinds_buckets WHERE kind = 'buy'")
    less = held("kinds")
    assert less < len(EARLY) and held("sales") < len(EARLY)
    assert tidemill(tmp_path, "rebuild", "--keys", "card=c1").code == 0
    assert (held("sales"), held("kinds")) == (len(EARLY), less), "a view of other keys is left"
    assert tidemill(tmp_path, "rebuild", "--keys", "kind=buy", "--keys", "card=c0").code == 0
    assert (held("sales"), held("kinds")) == (len(EARLY), len(EARLY))
    one = next(sale for sale in EARLY if sale.points > 0)
    same = f"points = {one.points} AND ok = {one.ok}"
    spark.sql(f"UPDATE by_points_buckets SET `count` = 70 WHERE {same}")
    written = f"points=0{one.points},ok={str(one.ok).upper()}"
    assert tidemill(tmp_path, "rebuild", "--keys", written).code == 0
    assert held("by_points") == len(EARLY), "keys of other types than text"
    refused = tidemill(tmp_path, "rebuild", "--keys", "points=1")
    assert refused.code == 2
    assert refused.error["message"] == "points are not the keys of view sales, kinds, by_points"
    assert refused.error["expected"] == "card=... or kind=... or points=...,ok=..."
    refused = tidemill(tmp_path, "rebuild", "--keys", "points=1,5,ok=true")
    assert refused.code == 2 and refused.error["message"] == "'1,5' is no BIGINT"


# -- stopped half-way ----------------------------------------------------------------------------

POINTS = sum_("points").over("3h")
MORE = drawn(4, at("21T10:30"), 30, 20)
STOPS = [*("rebuild.chunk_written@1" for _ in range(3)), "rebuild.put_in_place"]


@pytest.fixture(scope="module")
def damaged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of three days and two batches, of which the hours hold the first; somebody changed its
    buckets, and gold and hours were made of that."""
    folder = tmp_path_factory.mktemp("damaged")
    declared(folder, COUNT, POINTS)
    write_file(folder / "events", "1.jsonl", map(record, EARLY), age=90)
    assert tidemill(folder, "run", "--once").code == 0
    lake = Sales.new(spark, folder / "lake", sales.declare((COUNT, POINTS)))
    spark.sql("UPDATE sales_buckets SET `count` = `count` + 50 WHERE card = 'c1'")
    spark.sql("UPDATE sales_buckets SET `count` = 9 WHERE bucket_start >= '2026-11-21'")
    lake.refresh(lake.as_of())
    hour_buckets.bring_up(lake.lake, lake.view)
    write_file(folder / "events", "2.jsonl", map(record, LATER), age=60)
    assert tidemill(folder, "run", "--once").code == 0
    return folder


def copied(folder: Path, to: Path) -> Path:
    """A lake that may be changed, of the same events."""
    shutil.copytree(folder / "lake", to / "lake")
    shutil.copy(folder / "sales.yaml", to)
    return to


def bucket_rows(spark: SparkSession, folder: Path) -> list[tuple[Any, ...]]:
    rows = spark.read.format("delta").load(str(folder / "lake" / "sales_buckets")).collect()
    return sorted(map(tuple, rows), key=str)


@pytest.mark.stream
@pytest.mark.parametrize("part", [("--keys", "card=c1"), ("--since", "2026-11-19T23:30")])
def test_stopped_anywhere_nobody_reads_half_of_it(
    part: tuple[str, str],
    spark: SparkSession,
    damaged: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until it is put in place nothing is changed; from then on gold and hours are made again by
    whoever writes next, by whatever way."""
    folder = copied(damaged, tmp_path)
    features, before = (COUNT, POINTS), bucket_rows(spark, folder)
    for stop in STOPS:
        stopped_at(monkeypatch, folder, stop, *part)
        lake = Sales.new(spark, folder / "lake", sales.declare(features))
        unfinished = interrupted_rebuilds.of_view(lake.lake, lake.view)
        assert unfinished[0]["of"] == "keys or since"
        if stop != STOPS[-1]:
            assert bucket_rows(spark, folder) == before, "half of it is seen"
    check_every_way(spark, folder, features)
    assert tidemill(folder, "plan").json["unfinished"]
    done = tidemill(folder, "rebuild", *part)
    assert done.code == 0, done
    assert tidemill(folder, "plan").json["unfinished"] == []
    assert not [*(folder / "lake").glob("*rebuild*")]
    other = ("--since", "2026-11-21T00:00") if part[0] == "--keys" else ("--keys", "card=c1")
    assert tidemill(folder, "rebuild", *other).code == 0
    check(spark, folder, EARLY + LATER, *features)


def check_every_way(spark: SparkSession, folder: Path, features: tuple[Feature, ...]) -> None:
    """Fail unless gold is what the buckets say: as the next writer leaves it where it is, after
    another batch by an incremental refresh, and by a recompute with hours."""
    root = shutil.copytree(folder / "lake", folder / "copy")
    for mode, batch in (("incremental", 1), ("recompute", 3)):
        definition = sales.declare(features).overridden({"refresh": mode})
        lake = Sales.new(spark, root, definition).at(batch)
        lake.refresh(lake.as_of())
        assert reconcile.reconcile(lake.lake, lake.view).different == 0, "where it stands"
        lake.feed(MORE)
        assert reconcile.reconcile(lake.lake, lake.view).different == 0, mode
        hour_buckets.bring_up(lake.lake, lake.view)
        lake.feed(MORE[:3])
        lake.refresh(lake.as_of() + timedelta(minutes=1))
        assert reconcile.reconcile(lake.lake, lake.view).different == 0, "with hours made again"


@pytest.mark.stream
def test_what_came_meanwhile_stays(
    spark: SparkSession, damaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch before the same rebuild goes on, and one after it has last looked."""
    folder, features = copied(damaged, tmp_path), (COUNT, POINTS)
    since = ("--since", "2026-11-19T00:00")
    stopped_at(monkeypatch, folder, "rebuild.chunk_written@2", *since)
    lake = Sales.new(spark, folder / "lake", sales.declare(features))
    (begun,) = interrupted_rebuilds.stagings(lake.lake, lake.view)
    new = write_file(damaged / "events", "3.jsonl", map(record, MORE), age=30)
    try:
        assert tidemill(folder, "run", "--once").code == 0
    finally:
        new.unlink()
    with monkeypatch.context() as blind:
        read = Read(begun["batch"], begun["events"])
        blind.setattr(staging, "read_so_far", lambda lake, view: read)
        assert tidemill(folder, "rebuild", *since).code == 0
    check(spark, folder, EARLY + LATER + MORE, *features)
    assert spark.table("sales_buckets").agg({"batch": "max"}).collect()[0][0] == 2
    stopped_at(monkeypatch, folder, "rebuild.put_in_place", *since)
    (begun,) = interrupted_rebuilds.stagings(lake.lake, lake.view)
    assert (begun["batch"], begun["events"]) == (2, 2)
    spark.sql(
        f"ALTER TABLE {begun['table']} SET TBLPROPERTIES ('{interrupted_rebuilds.STATE}' = '{{}}')"
    )
    assert tidemill(folder, "rebuild", "--keys", "card=c1").code == 0
    check(spark, folder, EARLY + LATER + MORE, *features)


def test_the_events_that_feature_has_read(
    spark: SparkSession, damaged: Path, tmp_path: Path
) -> None:
    """Clean is ahead by a batch, and has joined files since; then feature stands in a version."""
    folder = copied(damaged, tmp_path)
    lake = Sales.new(spark, folder / "lake", sales.declare((COUNT, POINTS)))
    assert staging.read_so_far(lake.lake, lake.view) == Read(1, 1)
    told = {"generation": lake.lake.generation, "batch": 2}
    with writer.carrying(spark, told):
        later = spark.table("sales_events").limit(1).withColumn("batch", F.lit(2).cast("bigint"))
        later.write.format("delta").mode("append").saveAsTable("sales_events")
    spark.sql("OPTIMIZE sales_events")
    assert staging.read_so_far(lake.lake, lake.view) == Read(1, 1)
    offset = lake.lake.checkpoint("feature").folder / "offsets" / "1"
    *head, text = offset.read_text().splitlines()
    offset.write_text("\n".join((*head, json.dumps({**json.loads(text), "index": 3}))))
    assert staging.read_so_far(lake.lake, lake.view) is None


def test_a_rebuild_that_an_earlier_version_left_half_way(
    spark: SparkSession, damaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It replaced days in the bucket table itself, and went on as if nothing had been."""
    folder, features = copied(damaged, tmp_path), (COUNT, POINTS)
    lake = Sales.new(spark, folder / "lake", sales.declare(features))
    told = {"generation": lake.lake.generation, "batch": 1, ledger.UPKEEP: "buckets from events"}
    with writer.carrying(spark, told):
        spark.sql("UPDATE sales_buckets SET `count` = 1, batch = 1 WHERE card <> 'c2'")
    state = {"spec": "x", "done": 0, "id": "y", "through": "2026-11-20"}
    evolution.tell(spark, "sales_buckets", {interrupted_rebuilds.STATE: json.dumps(state)})
    with monkeypatch.context() as then:
        then.setattr(ledger.Commit, "of_rebuild", False)
        lake.refresh(lake.as_of() + timedelta(minutes=1))
    assert reconcile.reconcile(lake.lake, lake.view).different > 0
    assert tidemill(folder, "plan").json["unfinished"][0]["table"] == "sales_buckets"
    assert tidemill(folder, "refresh").json["mode"] == "recompute"
    assert reconcile.reconcile(lake.lake, lake.view).different == 0
    assert tidemill(folder, "plan").json["unfinished"] == []
    check_every_way(spark, folder, features)


def test_rows_that_change_while_a_refresh_reads_them(
    spark: SparkSession, damaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a catalog allows: the refresh begins again, and its commit names the newer version."""
    folder, features = copied(damaged, tmp_path), (COUNT, POINTS)
    lake = Sales.new(spark, folder / "lake", sales.declare(features))
    told = {"generation": lake.lake.generation, "batch": 1, ledger.REBUILD: "x"}

    def put_in_place(point: str) -> None:
        if point == "refresh.changes_computed" and not changed:
            changed.append(point)
            with writer.carrying(spark, {**told, ledger.UPKEEP: "buckets from events"}):
                spark.sql("UPDATE sales_buckets SET `count` = 3 WHERE card = 'c1'")

    changed: list[str] = []
    monkeypatch.setattr(changes, "reach", put_in_place)
    monkeypatch.setattr(type(lake.lake.place), "folder", None)
    lake.refresh(lake.as_of() + timedelta(minutes=1))
    assert changed and reconcile.reconcile(lake.lake, lake.view).different == 0


@pytest.mark.stream
def test_from_bronze_stopped_anywhere(
    spark: SparkSession, damaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No source is asked for, as `run` names it; what is half-way is refused or finished; readers
    see the gold from before until one commit replaces it."""
    folder, features = copied(damaged, tmp_path), (COUNT, POINTS)
    declared(folder, *features).write_text(unnamed_source(folder))  # feature has three batches
    files = ("--source", "files", "--input", damaged / "events")
    before = Sales.new(spark, folder / "lake", sales.declare(features))
    gold, version = before.gold(), before.newest("features")
    for stop in ("renew.checkpoint_forgotten", "renew.table_emptied", "renew.table_emptied@2"):
        stopped_at(monkeypatch, folder, stop, "--from", "bronze")
        refused = tidemill(folder, "run", "--once", *files)
        assert refused.code == 2 and "--from bronze" in refused.error["expected"], stop
    stopped_at(monkeypatch, folder, "clean.events_written", "--from", "bronze")
    for words in (("refresh",), ("reconcile", "--repair"), ("rebuild", "--keys", "card=c1")):
        refused = tidemill(folder, *words)
        assert refused.code == 2 and "sales.yaml --once`" in refused.error["expected"], words
    assert before.gold() == gold
    assert tidemill(folder, "run", "--once", *files).code == 0
    assert before.newest("features") == version + 1
    check(spark, folder, EARLY + LATER, *features)


def unnamed_source(folder: Path) -> str:
    """The pipeline's file without its input, with little to read in a batch."""
    words = yaml.safe_load((folder / "sales.yaml").read_text())
    words |= {"source": {"kind": "files"}, "max_files_per_trigger": 20}
    return yaml.safe_dump(words, sort_keys=False)


@pytest.mark.stream
def test_a_batch_is_limited_by_bytes(spark: SparkSession, damaged: Path, tmp_path: Path) -> None:
    """Each of bronze's two files is more than 1k: a file is the least that a batch reads."""
    for limit, batches in (("128m", 1), ("1k", 2)):
        definition = sales.declare((COUNT, POINTS)).overridden({"max_bytes_per_trigger": limit})
        lake = Sales.new(spark, damaged / "lake", definition).lake
        reader = Pipeline(lake, Absent(), Clock(NOW), "event")
        seen: list[int] = []
        query = (
            reader.follow(dataflow.by_checkpoint("clean"))
            .writeStream.foreachBatch(lambda rows, batch, seen=seen: seen.append(batch))
            .option("checkpointLocation", str(tmp_path / limit))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        assert len(seen) == batches


@pytest.mark.stream
def test_what_expired_is_made_again_for_longer_windows(spark: SparkSession, tmp_path: Path) -> None:
    write_file(tmp_path / "events", "1.jsonl", map(record, EARLY), age=90)
    declared(tmp_path, count().over("3h"), history="10d")
    assert tidemill(tmp_path, "run", "--once").code == 0
    declared(tmp_path, count().over("3h"), history="1d")
    done = tidemill(tmp_path, "maintain").json["steps"]
    assert ("expire", "sales_buckets") in {(step["action"], step["table"]) for step in done}
    declared(tmp_path, COUNT, history="10d")
    plan = tidemill(tmp_path, "plan").json
    assert plan["kind"] == "since" and f"--since {plan['since']}" in plan["way"]
    refused = tidemill(tmp_path, "run", "--once")
    assert refused.code == 2 and f"--since {plan['since']}" in refused.error["expected"]
    late = tidemill(tmp_path, "rebuild", "--since", "2026-11-21T00:00")
    assert late.code == 2, "not enough"
    assert tidemill(tmp_path, "rebuild", "--since", plan["since"]).code == 0
    check(spark, tmp_path, EARLY, COUNT)
    assert tidemill(tmp_path, "reconcile", "--from", "events").json["different"] == 0
    write_file(tmp_path / "events", "2.jsonl", map(record, LATER), age=60)
    assert tidemill(tmp_path, "run", "--once").code == 0
    check(spark, tmp_path, EARLY + LATER, COUNT)


@pytest.mark.stream
def test_one_more_value_of_the_only_feature(spark: SparkSession, tmp_path: Path) -> None:
    write_file(tmp_path / "events", "1.jsonl", map(record, EARLY), age=90)
    declared(tmp_path, count().by("kind", ["buy", "look"]).over("2d"))
    assert tidemill(tmp_path, "run", "--once").code == 0
    declared(tmp_path, count().by("kind", ["buy", "look", "back"]).over("2d"))
    plan = tidemill(tmp_path, "plan").json
    assert (plan["kind"], plan["features"]) == ("features", ["count"])
    assert tidemill(tmp_path, "rebuild", "--features", "count").code == 0
    assert tidemill(tmp_path, "plan").json["kind"] == "none"
    assert tidemill(tmp_path, "reconcile", "--from", "events").json["different"] == 0


@pytest.mark.stream
def test_one_more_value_takes_its_records_out_of_quarantine(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_file(tmp_path / "events", "1.jsonl", map(record, EARLY), age=90)
    declared(tmp_path, count().by("kind", ["buy"]).over("2d"))
    assert tidemill(tmp_path, "run", "--once").json["quarantined"] > 0
    both = count().by("kind", ["buy", "look"]).over("2d")
    declared(tmp_path, both)
    plan = tidemill(tmp_path, "plan").json
    assert plan["kind"] == "bronze" and "--from bronze" in plan["way"]
    assert tidemill(tmp_path, "run", "--once").code == 2
    assert tidemill(tmp_path, "rebuild", "--features", "count").code == 2
    assert tidemill(tmp_path, "rebuild", "--from", "bronze").code == 0
    gold = Sales.new(spark, tmp_path / "lake", sales.declare([both])).gold()
    for kind in ("buy", "look"):
        wanted = {card: sum(s.card == card and s.kind == kind for s in EARLY) for card in gold}
        assert {card: row[f"{kind}_count_2d"] for card, row in gold.items()} == wanted
    assert tidemill(tmp_path, "plan").json["kind"] == "none"
    assert tidemill(tmp_path, "run", "--once").code == 0


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
