"""Events through a real broker: the same features, each record once, whatever happens between."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import oracle
import runs
from brokers import Broker
from children import Children
from command_line import call
from lakes import Event, at, payload
from runs import Small
from tidemill.errors import SourceError
from topics import declare, of_topic, source_of

pytestmark = [pytest.mark.kafka, pytest.mark.stream]


def test_the_same_events_through_files_and_kafka_give_the_same_gold(
    spark: SparkSession, broker: Broker, small: Small, tmp_path: Path
) -> None:
    topic = broker.create("plays", 2)
    broker.send(topic, small.records[:5], partition=0)
    broker.send(topic, small.records[5:], partition=1)
    runs.run_once(tmp_path / "lake", of_topic(broker, topic))
    lake = runs.reading(spark, tmp_path / "lake")
    runs.check_whole(lake, small.records, small.events)
    through_kafka = lake.gold()
    assert through_kafka == runs.reading(spark, small.root).gold()


def test_what_bronze_keeps_and_where_poison_ends(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Five records, of which two are events: the others are refused with their positions."""
    topic, root = broker.create("poison"), tmp_path / "lake"
    good: list[Event] = [("a", "p", "g", "view", at("10:00")), ("b", "p", "g", "view", at("10:01"))]
    first, second = map(payload, good)
    poison = b"\xff\x00\xfe"
    broker.send(topic, [first, None, poison, "{", second], key="k", headers={"trace": b"7"})
    runs.run_once(root, of_topic(broker, topic))
    lake = runs.reading(spark, root)
    rows = lake.table("bronze").orderBy("offset").collect()
    assert [row.record_id for row in rows] == [f"poison/0/{n}" for n in range(5)]
    assert [row.raw_payload for row in rows] == [first, None, "base64:/wD+", "{", second]
    assert {(row.topic, row.partition) for row in rows} == {("poison", 0)}
    assert all(row.source_ts is not None for row in rows)
    refused = lake.table("quarantine").orderBy("offset").collect()
    assert [(row.offset, row.reasons) for row in refused] == [(n, ["malformed"]) for n in (1, 2, 3)]
    assert lake.gold() == oracle.features(good, oracle.as_of(good))


def test_retention_ran_past_us(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """A run stops and says so, and moves nothing; who accepts the loss goes on with the rest."""
    topic, root = broker.create("kept_short"), tmp_path / "lake"
    events: list[Event] = [(f"e{n}", "p", "g", "view", at(f"10:0{n}")) for n in range(6)]
    broker.send(topic, map(payload, events[:2]))
    runs.run_once(root, of_topic(broker, topic))
    before = runs.versions(root)
    broker.send(topic, map(payload, events[2:]))
    broker.expire(topic, 4)
    with pytest.raises(SourceError) as failed:
        runs.run_once(root, of_topic(broker, topic))
    assert failed.value.exit_code == 3
    assert "do not have the records that come next" in failed.value.message
    assert "fail_on_data_loss: false" in str(failed.value.expected)
    assert runs.versions(root) == before

    runs.run_once(root, of_topic(broker, topic, fail_on_data_loss=False))
    left = [*events[:2], *events[4:]]
    assert runs.reading(spark, root).gold() == oracle.features(left, oracle.as_of(left))


@pytest.mark.crash
def test_killed_while_a_partition_is_added(
    spark: SparkSession, broker: Broker, children: Children, tmp_path: Path
) -> None:
    """A run gets a partition more, is killed with its JVM in the middle, and the next one ends the
    work: nothing is lost, nothing comes twice."""
    topic, root = broker.create("growing", 2), tmp_path / "lake"
    events: list[Event] = [
        (f"e{n}", f"p{n % 7}", "g", "view", at(f"{8 + n % 3:02}:{n % 60:02}")) for n in range(1500)
    ]
    records = [payload(event) for event in events]
    for partition in (0, 1):
        broker.send(topic, records[partition:1000:2], partition=partition)
    slowly = {"triggers": dict.fromkeys(("land", "clean", "feature"), "1s")}
    file = declare(tmp_path, source_of(broker, topic), max_offsets_per_trigger=100, **slowly)
    child = children.tidemill("run", file, "--root", root, "--json")
    log = root / "engagement_bronze" / "_delta_log"
    child.until(lambda: (log / f"{2:020}.json").exists())
    broker.grow(topic, 3)
    broker.send(topic, records[1000:], partition=2)
    child.until(lambda: '"2":' in newest_offsets(root))
    os.killpg(child.process.pid, signal.SIGKILL)
    child.ended()
    answer = call("run", file, "--once", "--wait", "30s", "--root", root, "--json")
    assert answer.code == 0, answer
    lake = runs.reading(spark, root)
    positions = {(row.partition, row.offset) for row in lake.table("bronze").collect()}
    assert positions == {(part, n) for part in range(3) for n in range(500)}
    runs.check_whole(lake, records, events)


def newest_offsets(root: Path) -> str:
    """The text of the newest batch that land has planned."""
    files = (root / "_checkpoints" / "engagement_land" / "offsets").glob("[0-9]*")
    newest = max(files, key=lambda path: int(path.name), default=None)
    return newest.read_text().splitlines()[-1] if newest else ""
