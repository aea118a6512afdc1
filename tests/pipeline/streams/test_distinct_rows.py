"""Distinct events, which policy counts, features of a stream, and how much state there will be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from command_line import call
from lakes import at
from runs import run_once, write_file
from stream_lakes import SIDES, WORDS, StreamLake, declared, join, records
from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.errors import UsageError
from tidemill.operations.expected_state import expected_state

FIRST = {"keys": ["item", "kind"], "watermark": "10m", "columns": ["price"]}


@pytest.mark.stream
def test_the_first_event_of_each_key(spark: SparkSession, tmp_path: Path) -> None:
    lake = StreamLake.new(
        spark, tmp_path / "lake", declared([{"name": "first_seen", "distinct": FIRST}])
    )
    lake.feed(("in", "a", at("09:00")), ("out", "a", at("09:01")))
    lake.run()
    lake.feed(("in", "a", at("09:05")), ("in", "b", at("09:05")))  # a came in five minutes ago
    lake.run()
    lake.feed(("in", "z", at("09:30")))
    lake.run()
    lake.feed(("in", "a", at("09:25")))  # forgotten
    lake.run()
    rows = [(row["kind"], row["item"], row["price"]) for row in lake.rows("first_seen")]
    assert sorted(rows) == [
        ("in", "a", 1),
        ("in", "a", 6),
        ("in", "b", 4),
        ("in", "z", 5),
        ("out", "a", 2),
    ]
    assert {row["event_id"] for row in lake.rows("first_seen")} >= {"r000001", "r000006"}


@pytest.mark.stream
def test_the_policy_says_which_watermark_counts(spark: SparkSession, tmp_path: Path) -> None:
    """A buy eleven minutes behind: too late by the asks' watermark, not by its own."""
    buys = {**SIDES["right"], "watermark": "30m"}
    streams = [
        {"name": f"by_{policy}", "join": join(right=buys, policy=policy)}
        for policy in ("min", "max")
    ]
    lake = StreamLake.new(spark, tmp_path / "lake", declared(streams))
    lake.feed(("ask", "a", at("09:00")), ("look", "z", at("09:30")))
    lake.run()
    lake.feed(("buy", "a", at("09:19")))
    lake.run()
    assert lake.pairs("by_min") == {(1, 3)}
    assert lake.pairs("by_max") == set()


@pytest.mark.stream
def test_features_of_a_stream(tmp_path: Path) -> None:
    """A second pipeline takes the pairs as its events, by the table's change data feed."""
    events = [
        ("ask", "a", at("09:00")),
        ("buy", "a", at("09:10")),
        ("ask", "b", at("09:00")),
        ("buy", "b", at("09:30")),
        ("ask", "c", at("09:00")),
    ]
    write_file(tmp_path / "events", "1.jsonl", records(events))
    source = {"kind": "files", "input": str(tmp_path / "events")}
    streams = [{"name": "bought", "join": join()}]
    root, shop = tmp_path / "lake", tmp_path / "shop.yaml"
    shop.write_text(json.dumps({**WORDS, "source": source, "streams": streams}))
    ran = call("run", shop, "--once", "--root", root)
    assert ran.code == 0, ran.err
    assert "stream        bought: 2 rows" in ran.out
    view = {
        "name": "delays",
        "keys": ["item"],
        "event_time": "at",
        "schema": {"item": "string", "seconds_between": "double"},
        "features": [
            {"mean": {"of": "seconds_between", "scale": 3}, "over": ["1d"], "name": "delay"}
        ],
    }
    feed = {"kind": "delta_feed", "table": str(root / "bought")}
    words = {"pipeline": "purchases", "source": feed, "views": [view]}
    run_once(root, PipelineDefinition.model_validate(words))
    path = tmp_path / "purchases.yaml"
    path.write_text(json.dumps(words))
    text = "SELECT item, delay_mean_1d FROM delays_features ORDER BY item"
    answer = call("query", text, "--root", root, "--json")
    assert answer.json["rows"] == [["a", 600.0], ["b", 1800.0]]


def test_how_much_state_there_will_be(spark: SparkSession, tmp_path: Path) -> None:
    """A thousand a second, an hour and ten minutes: 4.2 million, and 0.6 million of the others."""
    streams = [
        {"name": "answered", "join": join(), "max_state_rows": 1_000_000},
        {"name": "first_seen", "distinct": FIRST},
        {
            "name": "visits",
            "sessions": {"keys": ["item"], "gap": "1h", "watermark": "1m", "page": "kind"},
        },
    ]
    definition = declared(streams)
    lake = StreamLake.new(spark, tmp_path / "lake", definition)
    assert [one["state_rows"] for one in expected_state(lake.lake, None)] == [None, None]
    lake.feed(("ask", "a", at("09:00")), ("ask", "a", at("11:00")))
    measured = expected_state(lake.lake, None)
    assert [one["rate"] for one in measured] == [0.000278] * 2  # two in two hours
    answered, first = expected_state(lake.lake, 1000)
    assert answered["inputs"]["ask"] == {"kept_seconds": 4200, "rows": 4_200_000}
    assert answered["inputs"]["buy"] == {"kept_seconds": 600, "rows": 600_000}
    assert (answered["state_rows"], first["state_rows"]) == (4_800_000, 600_000)
    with pytest.raises(UsageError, match="a rate of -1"):
        expected_state(lake.lake, -1)

    path = tmp_path / "shop.yaml"
    path.write_text(json.dumps({**WORDS, "streams": streams}))
    said = call("plan", path, "--rate", "1000", "--root", tmp_path / "lake")
    assert said.code == 0, said.err
    assert "answered: 4,800,000 rows of state at 1,000 events a second for each input" in said.out
    assert "  ask: kept for 4,200 s, 4,200,000 rows" in said.out
    assert "  more than max_state_rows: 1,000,000, where the pipeline stops" in said.out
