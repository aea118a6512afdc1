"""What changes in gold, in a topic: whoever keeps the highest version of each key has gold."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import runs
from brokers import Broker
from children import Children
from command_line import call
from dimension_lakes import declared
from lakes import Event, Lakes, TestLake, at
from tidemill.config.pipeline_file import load
from tidemill.config.settings import Place
from tidemill.errors import LakeError, SourceError
from tidemill.lake.commits import failpoints
from tidemill.operations.source_checks import checks_of_source
from tidemill.pipeline.sinks import gold_topic
from tidemill.sources.kafka.words import KafkaSink
from topics import TIMEOUT, declare

A1: Event = ("a1", "p1", "g", "view", at("10:00"))
A2: Event = ("a2", "p1", "g", "view", at("10:01"))
B1: Event = ("b1", "p2", "g", "select", at("10:02"))


def words_of(address: str, topic: str = "t", **more: Any) -> KafkaSink:
    said = {"bootstrap_servers": address, "topic": topic, "timeout": TIMEOUT, **more}
    return KafkaSink.model_validate(said)


def messages(spark: SparkSession, words: KafkaSink) -> list[tuple[str, dict[str, Any]]]:
    options = {"kafka.bootstrap.servers": words.bootstrap_servers, "subscribe": words.topic}
    rows = spark.read.format("kafka").options(**options).load().orderBy("partition", "offset")
    return [(bytes(r.key).decode(), json.loads(bytes(r.value))) for r in rows.collect()]


def kept(sent: list[tuple[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """What a reader has that keeps of each key the message with the highest version."""
    newest: dict[str, dict[str, Any]] = {}
    for key, value in sent:
        if value["version"] >= newest.get(key, value)["version"]:
            newest[key] = value
    return {key: value["features"] for key, value in newest.items() if not value["deleted"]}


def gold(lake: TestLake) -> dict[str, dict[str, Any]]:
    names = [column.name for column in lake.view.values]
    rows = lake.table("features").collect()
    return {
        json.dumps([r.profile_id, r.gti], separators=(",", ":")): {n: r[n] for n in names}
        for r in rows
    }


@pytest.mark.kafka
def test_a_topic_follows_gold(
    lakes: Lakes, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First every row, then what changed; a process that dies behind the messages sends them
    again, with the same versions."""
    lake = lakes.new()
    words = words_of(broker.address, broker.create("gold", partitions=2))

    def send() -> list[tuple[str, dict[str, Any]]]:
        gold_topic.send(lake.lake, lake.view, words)
        return messages(lake.spark, words)

    lake.feed([A1, B1])
    first = send()
    assert [value["version"] for _, value in first] == [1, 1]
    assert kept(first) == gold(lake)
    assert send() == first, "nothing is new"

    lake.feed([A2])
    failpoints._reached.clear()
    with monkeypatch.context() as dying:
        dying.setenv(failpoints.VARIABLE, "sink.sent")
        with pytest.raises(failpoints.Injected):
            send()
    again = send()
    places = [(key, value["version"]) for key, value in again]
    assert places.count(('["p1","g"]', 2)) == 2
    assert len(places) == len(first) + 2
    assert kept(again) == gold(lake)
    (value,) = (v for k, v in again if k == '["p1","g"]' and v["version"] == 1)
    assert value["keys"] == {"profile_id": "p1", "gti": "g"}
    assert (value["view"], value["updated_at"]) == ("engagement", "2026-11-21T10:03:00.000000Z")

    lake.spark.sql("DELETE FROM engagement_features WHERE profile_id = 'p2'")
    after = send()
    assert [key for key, value in after if value["deleted"]] == ['["p2","g"]']
    assert kept(after) == gold(lake)


@pytest.mark.kafka
def test_changes_that_gold_no_longer_has(lakes: Lakes, broker: Broker) -> None:
    lake, words = lakes.new(), words_of(broker.address, broker.create("lost"))
    lake.feed([A1])
    gold_topic.send(lake.lake, lake.view, words)
    lake.feed([A2])
    for feed in (lakes.folder).rglob("_change_data/*"):
        feed.unlink()
    with pytest.raises(LakeError, match="its changes cannot be read") as failed:
        gold_topic.send(lake.lake, lake.view, words)
    assert "sent.json" in str(failed.value.expected)
    (mark,) = lakes.folder.rglob("sent.json")
    mark.unlink()
    gold_topic.send(lake.lake, lake.view, words)
    assert kept(messages(lake.spark, words)) == gold(lake)


@pytest.mark.kafka
@pytest.mark.stream
def test_a_run_sends_at_its_end(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    runs.write_file(tmp_path / "in", "1.jsonl", runs.records_of([A1, B1]))
    words = words_of(broker.address, broker.create("run"))
    source = {"kind": "files", "input": str(tmp_path / "in")}
    sink = {"kafka": {"bootstrap_servers": words.bootstrap_servers, "topic": words.topic}}
    file = declare(tmp_path, source, sink=sink)
    assert call("run", file, "--once", "--root", tmp_path / "lake").code == 0
    assert kept(messages(spark, words)) == gold(runs.reading(spark, tmp_path / "lake"))


@pytest.mark.kafka
@pytest.mark.crash
def test_killed_behind_its_messages_a_run_sends_them_again(
    spark: SparkSession, broker: Broker, children: Children, tmp_path: Path
) -> None:
    """`kill -9` between the messages and the note of them; more events come before the next run."""
    words = words_of(broker.address, broker.create("killed", partitions=2))
    sink = {"kafka": {"bootstrap_servers": words.bootstrap_servers, "topic": words.topic}}
    source, root = {"kind": "files", "input": str(tmp_path / "in")}, tmp_path / "lake"
    file = declare(tmp_path, source, sink=sink)
    run = ("run", file, "--once", "--root", root)

    runs.write_file(tmp_path / "in", "1.jsonl", runs.records_of([A1, B1]), age=60)
    child = children.tidemill(*run, TIDEMILL_FAIL_AT="sink.sent:kill")
    assert child.ended() == -signal.SIGKILL, child.err.read_text()
    first = messages(spark, words)
    assert kept(first) == gold(runs.reading(spark, root)) and len(first) == 2

    runs.write_file(tmp_path / "in", "2.jsonl", runs.records_of([A2]))
    assert call("run", *run[1:]).code == 0
    sent = messages(spark, words)
    assert sent[: len(first)] != sent and kept(sent) == gold(runs.reading(spark, root))
    versions = {value["version"] for _, value in sent}
    assert versions == {row["version"] for row in runs.reading(spark, root).ledgers()}


def test_a_sink_that_does_not_answer(tmp_path: Path) -> None:
    sink = {"kafka": {"bootstrap_servers": "127.0.0.1:1", "topic": "t", "timeout": "1s"}}
    (tmp_path / "in").mkdir()
    source = {"kind": "files", "input": str(tmp_path / "in")}
    definition = load("engagement").overridden({"sink": sink, "source": source})
    checks = {c.name: c for c in checks_of_source(definition, Place(tmp_path / "lake"))}
    assert not checks["sink"].ok
    assert checks["sink"].found.startswith("sink.kafka.bootstrap_servers: no broker takes")


@pytest.mark.kafka
def test_a_topic_that_the_brokers_do_not_have(lakes: Lakes, broker: Broker) -> None:
    lake, words = lakes.new(), words_of(broker.address, "nowhere-at-all", timeout="2s")
    lake.feed([A1])
    with pytest.raises(SourceError, match="the brokers have no such topic") as failed:
        gold_topic.send(lake.lake, lake.view, words)
    assert failed.value.where == "sink.kafka"


def test_the_topic_of_several_views_names_the_view() -> None:
    sink = {"kafka": {"bootstrap_servers": "h:1", "topic": "t"}}
    with pytest.raises(ValueError, match="a topic of several views has"):
        declared(sink=sink)
    named = declared(sink={"kafka": {**sink["kafka"], "topic": "gold_{view}"}})
    assert named.sink and named.sink.kafka.topic_of("spending") == "gold_spending"


def test_a_secret_of_a_sink_is_named() -> None:
    security = {"protocol": "SASL_SSL", "username": "me", "password": "x"}
    with pytest.raises(ValueError, match="does not stand in a pipeline's file"):
        words_of("h:1", security=security)
