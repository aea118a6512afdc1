"""Alerts in a Kafka topic: each at least once, those of a key in their order."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from brokers import Broker
from lakes import Event, Lakes, TestLake, at
from tidemill.config.alert_sinks import AlertTopic
from tidemill.lake.commits import failpoints
from tidemill.lake.commits.failpoints import Injected
from tidemill.pipeline.alerts.episodes import Episodes
from tidemill.pipeline.sinks.alert_topic import TopicDelivery
from tidemill.pipeline.sinks.delivery import Delivered, NotNow
from topics import TIMEOUT

SEEN = {"name": "SEEN", "when": "view_count_1h > 0"}


def view(profile: str, time: str) -> Event:
    return (None, profile, "g", "view", at(time))


def delivery(lake: TestLake, address: str, topic: str) -> TopicDelivery:
    words = {"bootstrap_servers": address, "topic": topic, "timeout": TIMEOUT}
    definition = lake.lake.pipeline.overridden({"alert_sinks": {"kafka": words}})
    return TopicDelivery(replace(lake.lake, pipeline=definition), AlertTopic.model_validate(words))


def told(lake: TestLake, address: str, topic: str) -> dict[str, list[str]]:
    """The states of each key, in the order in which a reader of the topic gets them."""
    options = {"kafka.bootstrap.servers": address, "subscribe": topic}
    rows = lake.spark.read.format("kafka").options(**options).load()
    found: dict[str, list[str]] = {}
    for row in rows.orderBy("partition", "offset").collect():
        value: dict[str, Any] = json.loads(bytes(row.value))
        assert value["alert"] == "SEEN"
        profile, game = json.loads(bytes(row.key))
        assert value["keys"] == {"profile_id": profile, "gti": game}
        found.setdefault(profile, []).append(value["state"])
    return found


@pytest.mark.kafka
def test_a_topic_gets_each_alert(
    lakes: Lakes, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What goes on first, then each change; a process that dies behind the messages sends them
    again."""
    lake = lakes.new(alerts=[SEEN])
    topic = broker.create("fraud-alerts", partitions=2)
    sink = delivery(lake, broker.address, topic)
    for batch in ([view("a", "10:00"), view("b", "10:00")], [view("c", "11:30")]):
        lake.feed(batch)
        Episodes(lake.lake).look()
    assert list(sink.deliver()) == [Delivered(1)]
    assert list(sink.deliver()) == []
    for batch in ([view("a", "11:40")], [view("d", "12:50")], [view("a", "12:55")]):
        lake.feed(batch)
        Episodes(lake.lake).look()
    failpoints._reached.clear()
    with monkeypatch.context() as dying:
        dying.setenv(failpoints.VARIABLE, "alerts.sent")
        with pytest.raises(Injected):
            list(sink.deliver())
    a = ["fired", "resolved", "fired"]
    expected = {"c": ["fired", "resolved"], "a": a, "d": ["fired"]}
    assert told(lake, broker.address, topic) == expected
    assert list(sink.deliver()) == [Delivered(5)]
    again = {"c": [*expected["c"], "resolved"], "a": [*a, *a], "d": ["fired", "fired"]}
    assert told(lake, broker.address, topic) == again


@pytest.mark.kafka
def test_a_topic_that_does_not_take_them(lakes: Lakes, broker: Broker) -> None:
    lake = lakes.new(alerts=[SEEN])
    lake.feed([view("a", "10:00")])
    Episodes(lake.lake).look()
    sink = delivery(lake, broker.address, "nowhere-at-all")
    with pytest.raises(NotNow, match=r"alert_sinks\.kafka: the brokers have no such topic"):
        list(sink.deliver())
