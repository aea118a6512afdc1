"""Alerts to an address: each at least once and in its order, whatever refuses, fails or dies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakes import Event, Lakes, TestLake, at
from receivers import Receiver, receiving
from tidemill.errors import LakeError, UsageError
from tidemill.lake.commits import failpoints
from tidemill.lake.commits.failpoints import Injected
from tidemill.pipeline.alerts.episodes import Episodes
from tidemill.pipeline.sinks.alert_webhook import WebhookDelivery
from tidemill.pipeline.sinks.delivery import Delivered, NotNow

SEEN = {"name": "SEEN", "when": "view_count_1h > 0"}
TWICE = {"name": "TWICE", "when": "view_count_1h > 1"}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as listening:
        yield listening


def view(profile: str, time: str) -> Event:
    return (None, profile, "g", "view", at(time))


class Alerting:
    """A lake with rules, and its sink."""

    def __init__(self, lake: TestLake, receiver: Receiver):
        self.lake, self.receiver = lake, receiver

    def feed(self, *events: Event) -> None:
        self.lake.feed(events)
        Episodes(self.lake.lake).look()

    def delivery(self, **words: Any) -> WebhookDelivery:
        sinks = {"webhook": {"url": self.receiver.url, **words}}
        definition = self.lake.lake.pipeline.overridden({"alert_sinks": sinks})
        assert definition.alert_sinks and definition.alert_sinks.webhook
        lake = replace(self.lake.lake, pipeline=definition)
        return WebhookDelivery(lake, definition.alert_sinks.webhook)

    def deliver(self, **words: Any) -> list[Delivered]:
        return list(self.delivery(**words).deliver())

    @property
    def root(self) -> Path:
        return Path(self.lake.lake.place.root or "")

    @property
    def taken(self) -> list[tuple[str, str, str]]:
        return [message.alert for message in self.receiver.taken]


@pytest.fixture
def alerting(lakes: Lakes, receiver: Receiver) -> Alerting:
    return Alerting(lakes.new(alerts=[SEEN, TWICE]), receiver)


def test_a_new_sink_begins_with_what_goes_on_and_gets_each_change(alerting: Alerting) -> None:
    assert alerting.deliver() == [], "nothing has been looked at"
    alerting.feed(view("a", "10:00"), view("b", "08:10"))
    alerting.feed(view("c", "10:30"))
    alerting.feed(view("c", "11:30"))  # a is over
    assert alerting.deliver() == [Delivered(1)]
    assert alerting.taken == [("alert.fired", "SEEN", "c")]
    assert alerting.deliver() == []
    alerting.feed(view("c", "11:31"), view("d", "11:32"))
    alerting.feed(view("e", "12:31"))
    assert sum(one.sent for one in alerting.deliver()) == 5
    assert alerting.taken[1:] == [
        ("alert.fired", "SEEN", "d"),
        ("alert.fired", "TWICE", "c"),
        ("alert.resolved", "SEEN", "c"),
        ("alert.fired", "SEEN", "e"),
        ("alert.resolved", "TWICE", "c"),
    ]
    fired, resolved = (alerting.receiver.taken[place] for place in (2, 5))
    data = fired.said["data"]
    assert fired.headers["webhook-id"] == f"{data['episode']}-fired"
    assert resolved.headers["webhook-id"] == f"{data['episode']}-resolved"
    assert data == {
        "alert": "TWICE",
        "pipeline": "engagement",
        "view": "engagement",
        "keys": {"profile_id": "c", "gti": "g"},
        "episode": data["episode"],
        "state": "fired",
        "at": "2026-11-21T11:33:00.000Z",
        "fired_at": "2026-11-21T11:33:00.000Z",
        "features": {"view_count_1h": 2},
        "gold_version": data["gold_version"],
    }
    assert fired.said["timestamp"] == data["at"]


def test_what_is_not_taken_now_is_sent_again_and_what_never_is_passed_over(
    alerting: Alerting, caplog: pytest.LogCaptureFixture
) -> None:
    alerting.feed(view("a", "10:00"))
    alerting.deliver()
    alerting.feed(*(view(who, "10:01") for who in "bcde"))
    receiver = alerting.receiver
    receiver.answers = [204, 503]
    receiver.headers = {"retry-after": "9"}
    with pytest.raises(NotNow, match=r"alert_sinks\.webhook: HTTP 503") as refused:
        alerting.deliver()
    assert refused.value.wait == 9
    assert [key for _, _, key in alerting.taken] == ["a", "b"]
    receiver.answers = [404]
    assert alerting.deliver() == [Delivered(refused=1), Delivered(1), Delivered(1)]
    assert [key for _, _, key in alerting.taken] == ["a", "b", "d", "e"]
    assert "is refused: HTTP 404" in caplog.text
    assert alerting.deliver() == []


def test_killed_behind_a_message_it_comes_again_with_the_same_id(
    alerting: Alerting, monkeypatch: pytest.MonkeyPatch
) -> None:
    alerting.feed(view("a", "10:00"))
    alerting.deliver()
    alerting.feed(view("b", "10:01"), view("c", "10:01"))
    alerting.feed(view("d", "10:02"))
    failpoints._reached.clear()
    with monkeypatch.context() as dying:
        dying.setenv(failpoints.VARIABLE, "alerts.posted@2")
        with pytest.raises(Injected):
            alerting.deliver()
    alerting.feed(view("e", "10:03"))
    alerting.deliver()
    assert [key for _, _, key in alerting.taken] == ["a", "b", "c", "c", "d", "e"]
    ids = [message.headers["webhook-id"] for message in alerting.receiver.taken]
    assert ids[2] == ids[3]
    assert len(set(ids)) == 5


def test_a_new_sink_goes_on_with_what_it_began_with(alerting: Alerting) -> None:
    """Also when that is over by now, which it is told next."""
    alerting.feed(view("a", "10:00"), view("b", "10:30"))
    alerting.receiver.answers = [204, 500]
    with pytest.raises(NotNow):
        alerting.deliver()
    alerting.feed(view("c", "11:31"))
    assert [sum(one.sent for one in alerting.deliver()) for _ in range(3)] == [1, 3, 0]
    assert alerting.taken == [
        ("alert.fired", "SEEN", "a"),
        ("alert.fired", "SEEN", "b"),
        ("alert.resolved", "SEEN", "a"),
        ("alert.resolved", "SEEN", "b"),
        ("alert.fired", "SEEN", "c"),
    ]


def test_another_address_begins_with_what_goes_on(alerting: Alerting) -> None:
    alerting.feed(view("a", "10:00"))
    alerting.deliver()
    with receiving() as other:
        assert alerting.deliver(url=other.url) == [Delivered(1)]
        assert len(other.messages) == 1


def test_an_alerts_table_of_before_gets_a_change_feed(alerting: Alerting) -> None:
    alerting.feed(view("a", "10:00"))
    lake = alerting.lake
    lake.spark.sql(
        "ALTER TABLE engagement_alerts SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')"
    )
    alerting.deliver()
    assert alerting.deliver() == []
    alerting.feed(view("b", "10:01"))
    alerting.deliver()
    assert [key for _, _, key in alerting.taken] == ["a", "b"]


def test_changes_that_the_table_no_longer_has(alerting: Alerting) -> None:
    """Its log was cut off behind a checkpoint, as Delta does with time."""
    alerting.feed(view("a", "10:00"))
    often = "ALTER TABLE engagement_alerts SET TBLPROPERTIES ('delta.checkpointInterval' = '1')"
    alerting.lake.spark.sql(often)
    alerting.deliver()
    alerting.feed(view("b", "10:01"))
    log = alerting.root / "engagement_alerts" / "_delta_log"
    newest = alerting.lake.lake.commits("engagement_alerts", 1)[0].version
    alerting.feed(view("c", "10:02"))
    assert (log / "_last_checkpoint").exists()
    for version in range(newest + 1):
        (log / f"{version:020}.json").unlink()
    with pytest.raises(LakeError, match="engagement_alerts: its changes cannot be read") as failed:
        alerting.deliver()
    assert "sent.json" in str(failed.value.expected)
    assert alerting.taken == [("alert.fired", "SEEN", "a")]


def test_alerts_whose_files_are_gone(alerting: Alerting) -> None:
    alerting.feed(view("a", "10:00"))
    alerting.deliver()
    alerting.feed(view("b", "10:01"))
    for file in (alerting.root / "engagement_alerts").rglob("*.parquet"):
        file.unlink()
    with pytest.raises(LakeError, match="engagement_alerts: its changes cannot be read") as failed:
        alerting.deliver()
    assert "sent.json" in str(failed.value.expected)


def test_secrets_are_named_and_must_be_set(
    alerting: Alerting, monkeypatch: pytest.MonkeyPatch
) -> None:
    alerting.feed(view("a", "10:00"))
    words = {"url": "${env:ALERTS_TO}", "secret": "${env:ALERTS_KEY}"}
    with pytest.raises(UsageError, match="ALERTS_TO is not set"):
        alerting.deliver(**words)
    monkeypatch.setenv("ALERTS_TO", alerting.receiver.url)
    with pytest.raises(UsageError, match="ALERTS_KEY is not set"):
        alerting.deliver(**words)
    monkeypatch.setenv("ALERTS_KEY", "s3cret")
    alerting.deliver(**words)
    assert alerting.receiver.taken[0].headers["webhook-signature"].startswith("v1,")
    (mark,) = alerting.root.parent.rglob("sent.json")
    assert "127.0.0.1" not in mark.read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"url": "ftp://here"}, "is no address"),
        ({"url": "here"}, "is no address"),
        ({"url": "https://me:secret@there"}, "a secret does not stand in a pipeline's file"),
        ({"secret": "s3cret"}, "a secret does not stand in a pipeline's file"),
        ({"timeout": "soon"}, "is no length of time"),
    ],
)
def test_a_sink_that_cannot_be_is_refused(
    alerting: Alerting, words: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        alerting.delivery(**words)
    assert "s3cret" not in str(refused.value)
    assert "me:secret" not in str(refused.value)
