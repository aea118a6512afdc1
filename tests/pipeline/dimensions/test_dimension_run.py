"""Whole runs of a pipeline with a dimension, by the command line: files of changes, of events."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from change_log import Change, customer
from command_line import Answer, call
from dimension_lakes import WORDS, DimensionLake, declared, purchase
from lakes import NOW, at
from runs import write_file
from tidemill.config.pipeline_file import read
from tidemill.config.settings import Clock, Place
from tidemill.errors import InputError, LakeError
from tidemill.lake import discovery
from tidemill.lake.commits import failpoints
from tidemill.lake.open import open_for_reading
from tidemill.monitoring import status
from tidemill.monitoring.status import Watched
from tidemill.pipeline import bronze
from tidemill.pipeline.steps import dimension_step
from tidemill.sources.delta_feed.source import DeltaFeed

pytestmark = pytest.mark.stream
SPENDING = [one for one in WORDS["views"] if one["name"] == "spending"]


def declare(folder: Path, **words: Any) -> Path:
    for name in ("purchases", "changes"):
        (folder / name).mkdir(exist_ok=True)
    dimension = {
        **WORDS["dimensions"][0],
        "source": {"kind": "files", "input": str(folder / "changes")},
    }
    said = {
        **WORDS,
        "source": {"kind": "files", "input": str(folder / "purchases")},
        "dimensions": [dimension],
        "views": SPENDING,
        **words,
    }
    path = folder / "purchases.yaml"
    path.write_text(yaml.safe_dump(json.loads(json.dumps(said))))
    return path


def tidemill(folder: Path, command: str, *words: object) -> Answer:
    answer = call(command, folder / "purchases.yaml", *words, "--root", folder / "lake", "--json")
    assert answer.code == 0, (answer.out, answer.err)
    return answer


def opened(spark: SparkSession, folder: Path) -> DimensionLake:
    definition = read(folder / "purchases.yaml")
    return DimensionLake(open_for_reading(spark, Place(folder / "lake"), definition))


def spending(lake: DimensionLake) -> dict[str, tuple]:
    names = ("basic_count_1d", "gold_count_1d", "gold_sum_1d", "credit_max_1d")
    return {row["buyer"]: tuple(row[n] for n in names) for row in lake.rows("spending_features")}


def groups(lake: DimensionLake) -> dict[str, int]:
    rows = lake.rows("by_segment_features")
    return {row["group"]: row["count_1d"] for row in rows if row["count_1d"]}


BASIC = Change(10, at("08:00"), None, customer(1, "basic", 5), "c")
GOLD = Change(20, at("09:00"), None, customer(1, "gold", 9), "u")
LATE = Change(15, at("08:00"), None, customer(2, "gold", 7), "c")


def test_a_run_and_the_repair_of_what_came_late(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(tmp_path, views=WORDS["views"])
    write_file(tmp_path / "changes", "1.jsonl", [GOLD.record(), BASIC.record(True), "null", "{"])
    events = [purchase(1, "c1", at("08:30"), 10), purchase(2, "c1", at("09:30"), 20)]
    events.append(purchase(3, "c2", at("09:30"), 40))
    write_file(tmp_path / "purchases", "1.jsonl", events)
    tidemill(tmp_path, "run", "--once")
    lake = opened(spark, tmp_path)
    assert spending(lake) == {"c1": (1, 1, 20, 9)}, "every feature of c2 is empty"
    assert groups(lake) == {"basic": 1, "gold": 1, "unknown": 1}

    # a dimension's row that comes late changes no event that was written ...
    write_file(tmp_path / "changes", "2.jsonl", [LATE.record()])
    tidemill(tmp_path, "run", "--once")
    assert "c2" not in spending(lake)
    # ... until its key is rebuilt, which leaves the others as they are
    before = {row["buyer"]: row for row in lake.rows("spending_features")}
    failpoints._reached.clear()
    with monkeypatch.context() as dying:
        dying.setenv(failpoints.VARIABLE, "rebuild.events_looked_up")
        words = ("--keys", "buyer=c2", "--root", tmp_path / "lake")
        assert call("rebuild", tmp_path / "purchases.yaml", *words).code == 3
    tidemill(tmp_path, "rebuild", "--keys", "buyer=c2")
    after = {row["buyer"]: row for row in lake.rows("spending_features")}
    assert spending(lake) == {"c1": (1, 1, 20, 9), "c2": (0, 1, 40, 7)}
    assert after["c1"] == before["c1"]
    assert groups(lake) == {"basic": 1, "gold": 2}, "a view of other keys has the events' new ones"
    for of in ("buckets", "events"):
        views = tidemill(tmp_path, "reconcile", "--from", of).json["views"]
        assert [view["different"] for view in views] == [0, 0]

    # feature goes on behind the events that were written again
    write_file(tmp_path / "purchases", "2.jsonl", [purchase(4, "c2", at("09:40"), 2)])
    tidemill(tmp_path, "run", "--once")
    assert spending(lake)["c2"] == (0, 2, 42, 7)
    check_what_is_told(tmp_path, lake)

    # from bronze both are made again, with the dimension as it is now
    tidemill(tmp_path, "rebuild", "--from", "bronze")
    assert spending(lake) == {"c1": (1, 1, 20, 9), "c2": (0, 2, 42, 7)}


def check_what_is_told(folder: Path, lake: DimensionLake) -> None:
    """The dimension's queries are in `tidemill_batches`, `top`, `describe` and maintenance."""
    told = lake.table("tidemill_batches").where("view = 'customer'").orderBy("committed_at")
    rows = [(r["query"], r["events"], r["quarantined"]) for r in told.collect()]
    batches = [("dimension", 1, 0), ("dimension", 4, 1), ("land_changes", 1, None)]
    assert sorted(rows, key=str) == [*batches, ("land_changes", 4, None)]
    unmatched = lake.table("tidemill_batches").where("query = 'clean'").orderBy("batch").collect()
    assert [row["unmatched"] for row in unmatched] == [{"customer": 1}, {"customer": 0}]
    flows = discovery.flows(discovery.Folder(folder / "lake"), Place(folder / "lake"))
    frame = status.frame(Place(folder / "lake"), [Watched(flow) for flow in flows], Clock(NOW))
    (shown,) = frame["pipelines"]
    queries = ["land", "land_changes", "dimension", "clean", "feature", "feature"]
    assert [query["query"] for query in shown["queries"]] == queries
    described = call("describe", "spending", *of(folder), "--json").json
    names = [table["table"] for table in described["tables"]]
    assert {"customer_bronze", "customer_dimension"} <= set(names)
    tidemill(folder, "maintain")
    question = "SELECT customer_id, segment, credit FROM customer_current ORDER BY customer_id"
    answer = call("query", question, *of(folder), "--json").json
    assert answer["rows"] == [["c1", "gold", 9], ["c2", "gold", 7]]


def of(folder: Path) -> tuple[object, ...]:
    return ("--pipeline", folder / "purchases.yaml", "--root", folder / "lake")


def test_a_new_attribute_and_a_changed_type(spark: SparkSession, tmp_path: Path) -> None:
    """A field that appears is read by nobody, and is a column once it is declared; a value of
    another type is refused, and the others go on."""
    lake = DimensionLake.new(spark, tmp_path / "lake", declared())
    grown = {**json.loads(GOLD.record())}
    grown["after"] = {**grown["after"], "city": "Lyon"}
    strange = {**json.loads(GOLD.record()), "after": {**customer(3), "credit": "much"}}
    lake.change([BASIC.record(), json.dumps(grown), json.dumps(strange)])
    assert lake.newest() == {"c1": {"segment": "gold", "credit": 9}}
    assert lake.refused() == [["wrong_type:credit"]]
    schema = {**WORDS["dimensions"][0]["schema"], "city": "string?"}
    definition = declared(dimensions=[{**WORDS["dimensions"][0], "schema": schema}])
    again = DimensionLake.new(spark, tmp_path / "lake", definition)
    again.change_batch, again.records = lake.change_batch, lake.records
    later = json.loads(Change(30, at("10:00"), None, customer(2), "c").record())
    later["after"]["city"] = "Porto"
    again.change([json.dumps(later)])
    rows = again.rows("customer_dimension")
    assert {row["customer_id"]: row["city"] for row in rows} == {"c1": None, "c2": "Porto"}


def test_the_feed_of_a_delta_table_as_a_source(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "crm"
    table = f"delta.`{folder}`"
    spark.sql(
        f"CREATE TABLE {table} (customer_id STRING, segment STRING, credit BIGINT) "
        "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    dimension = {**WORDS["dimensions"][0], "format": "delta_feed"}
    lake = DimensionLake.new(spark, tmp_path / "lake", declared(dimensions=[dimension]))
    first = "INSERT INTO {} VALUES ('c1', 'basic', 1), ('c2', 'gold', 2), ('c3', NULL, 3)"
    then = (
        "UPDATE {} SET credit = credit + 10 WHERE customer_id <> 'c3'",
        "DELETE FROM {} WHERE customer_id = 'c2'",
        "UPDATE {} SET customer_id = 'c4' WHERE customer_id = 'c3'",
        "INSERT INTO {} VALUES ('c2', 'basic', 5)",
    )
    for statements in ((first,), then):
        for statement in statements:
            spark.sql(statement.format(table))
        follow(DeltaFeed(str(folder)), lake, tmp_path / "checkpoint")
        rows = spark.read.format("delta").load(str(folder)).collect()
        wanted = {r["customer_id"]: {"segment": r["segment"], "credit": r["credit"]} for r in rows}
        assert lake.newest() == wanted


def follow(feed: DeltaFeed, lake: DimensionLake, checkpoint: Path) -> None:
    """Bring what a feed has into the dimension, by a stream."""
    feed.check(once=True)
    records = bronze.stamped(feed.stream(lake.spark), lake.lake.pipeline, Clock(NOW))
    step = partial(dimension_step.dimension_batch, lake=lake.lake, name="customer")
    writer = records.writeStream.foreachBatch(step).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()


def test_a_table_without_a_feed_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no Delta table"):
        DeltaFeed(str(tmp_path / "none")).check(once=True)
    table = tmp_path / "plain"
    spark.range(1).write.format("delta").save(str(table))
    with pytest.raises(InputError, match="its change data feed is off"):
        DeltaFeed(str(table)).check(once=True)


def kinds(folder: Path) -> list[tuple[str, str]]:
    changes = tidemill(folder, "plan").json["views"]
    return [(change["kind"], change["why"]) for change in changes]


def refused_until_from_bronze(folder: Path, why: str) -> None:
    """Every command that would mix the two says which columns, and what to do."""
    assert [kind for kind, _ in kinds(folder)] == ["bronze", "bronze"]
    for command in (("run", "--once"), ("reconcile",), ("rebuild", "--keys", "buyer=c1")):
        answer = call(
            *command[:1],
            folder / "purchases.yaml",
            *command[1:],
            "--json",
            "--root",
            folder / "lake",
        )
        assert answer.code == 2, answer
        assert why in str(answer.error["message"]), answer
        assert "--from bronze" in str(answer.error["expected"])
    tidemill(folder, "rebuild", "--from", "bronze")
    assert [kind for kind, _ in kinds(folder)] == ["none", "none"]


def test_events_that_took_something_else_are_not_mixed_with_new_ones(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A column of a dimension, one more, another attribute, another order of changes: the past is
    looked up again, or nothing runs."""
    views = json.loads(json.dumps(WORDS["views"]))
    for view in views:
        del view["schema"]["credit"]
        view["features"] = [{"count": {}, "over": ["1d"]}]
    declare(tmp_path, views=views, enrich=[], dimensions=[])
    write_file(tmp_path / "changes", "1.jsonl", [BASIC.record()])
    write_file(tmp_path / "purchases", "1.jsonl", [purchase(1, "c1", at("08:30"), 10)])
    tidemill(tmp_path, "run", "--once")

    (enrich,) = WORDS["enrich"]
    declare(tmp_path, views=views, enrich=[{**enrich, "columns": {"segment": "segment"}}])
    taken = "[customer, segment, {buyer: customer_id}]"
    refused_until_from_bronze(
        tmp_path, f"segment of purchases_events was nothing, declared {taken}"
    )
    lake = opened(spark, tmp_path)
    assert groups(lake) == {"basic": 1}

    for view in views:
        view["schema"]["credit"] = "bigint?"
        view["features"].append({"max": "credit", "over": ["1d"]})
    declare(tmp_path, views=views)
    refused_until_from_bronze(tmp_path, "credit of purchases_events was nothing, declared")
    credits = {row["buyer"]: row["credit_max_1d"] for row in lake.rows("spending_features")}
    assert credits == {"c1": 5}

    (customers,) = json.loads(json.dumps(WORDS["dimensions"]))
    customers["source"]["input"] = str(tmp_path / "changes")
    customers["schema"]["tier"] = "string?"
    other = {**enrich, "columns": {"segment": "tier", "credit": "credit"}}
    declare(tmp_path, views=views, enrich=[other], dimensions=[customers])
    refused_until_from_bronze(tmp_path, f"segment of purchases_events was {taken}")
    assert groups(lake) == {"unknown": 1}

    customers["order"] = "time"
    declare(tmp_path, views=views, enrich=[other], dimensions=[customers])
    refused_until_from_bronze(tmp_path, "order of customer_dimension was lsn, declared time")


def test_a_lake_that_does_not_say_what_its_events_took(spark: SparkSession, tmp_path: Path) -> None:
    """It is of an earlier version, and says it from now on, of the columns that it has."""
    lake = DimensionLake.new(spark, tmp_path, declared())
    lake.step([purchase(1, "c1", at("08:30"))])
    (enrich,), (customers,) = WORDS["enrich"], WORDS["dimensions"]
    spark.sql("ALTER TABLE purchases_events UNSET TBLPROPERTIES ('tidemill.enriched')")
    DimensionLake.new(spark, tmp_path, declared())
    other = declared(
        enrich=[{**enrich, "columns": {"segment": "tier", "credit": "credit"}}],
        dimensions=[{**customers, "schema": {**customers["schema"], "tier": "string?"}}],
    )
    with pytest.raises(LakeError, match="segment of purchases_events was"):
        DimensionLake.new(spark, tmp_path, other)
