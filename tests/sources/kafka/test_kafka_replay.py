"""A range of offsets replayed: each record counts once, whoever brings it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import oracle
import runs
from brokers import Broker
from command_line import call
from lakes import Event, at, payload
from topics import declare, source_of

pytestmark = [pytest.mark.kafka, pytest.mark.stream]


def test_a_range_is_counted_once(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """
    offset   0  1  2  3  4  5 | 6 7
    land              ├─────┤            started at 3; 6 and 7 are not read yet
    replay   ├──────────────────┤        0, 1, 2 are landed, 3, 4, 5 known, the rest left to land
    """
    topic, root = broker.create("again"), tmp_path / "lake"
    events: list[Event] = [(None, "p", "g", "view", at(f"10:0{n}")) for n in range(8)]
    broker.send(topic, map(payload, events[:6]))
    file = declare(tmp_path, source_of(broker, topic, starting_offsets={topic: {"0": 3}}))
    run = ("run", file, "--once", "--root", root, "--json")
    replay = ("replay", file, "--topic", topic, "--root", root, "--json", "--from", "0", "--to")
    early = call(*replay, "5")
    assert early.code == 2
    assert call(*run).json["accepted"] == 3
    broker.send(topic, map(payload, events[6:]))
    answer = call(*replay, "8")
    assert answer.code == 0, answer
    counts = {name: answer.json[name] for name in ("ranges", "read", "landed", "already")}
    assert counts == {"ranges": {"0": [0, 6]}, "read": 6, "landed": 3, "already": 3}
    assert call(*replay, "4").json["landed"] == 0
    assert call(*run).json["accepted"] == 5
    lake = runs.reading(spark, root)
    assert lake.table("bronze").select("record_id").distinct().count() == 8
    assert lake.gold() == oracle.features(events, oracle.as_of(events))
    beyond = call(*replay[:-3], "--from", "8", "--to", "9")
    assert beyond.code == 2
    assert beyond.error["message"] == "land has not read these offsets: it has 0 to 8"
    nothing = call(*replay[:-3], "--from", "4", "--to", "4")
    assert (nothing.code, nothing.error["where"]) == (2, "--from --to")


def test_a_source_without_offsets_is_refused(small: runs.Small, tmp_path: Path) -> None:
    root = small.copy(tmp_path / "lake")
    words = ("--topic", "t", "--from", "0", "--to", "1", "--input", small.input, "--root", root)
    answer = call("replay", "engagement", *words, "--json")
    assert (answer.code, answer.error["message"]) == (2, "its records have no offsets")
