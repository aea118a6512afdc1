"""Sinks of alerts beside a run: what fails is tried again, and no batch waits for it."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

import tidemill
from children import Children
from receivers import Receiver, receiving
from runs import Small
from tidemill.config.settings import Clock
from tidemill.monitoring.alert_metrics import AlertMetrics
from tidemill.monitoring.prometheus import Exporter
from tidemill.operations import alert_sending
from tidemill.operations.alert_sending import Sender, waits_between_tries
from tidemill.pipeline.sinks import webhook
from tidemill.pipeline.sinks.delivery import Delivered, NotNow

SHIPPED = Path(tidemill.__file__).parent / "config/shipped/engagement.yaml"


class Fake:
    """A sink that does what its script says, a delivery after another; then nothing is new."""

    sink, every = "fake", 0.01

    def __init__(self, *script: Delivered | Exception):
        self.script = list(script)
        self.has_ended = threading.Event()

    def deliver(self) -> Iterator[Delivered]:
        if not self.script:
            self.has_ended.set()
            return
        one = self.script.pop(0)
        if isinstance(one, Exception):
            raise one
        yield one


def sender_of(sink: Fake, exporter: Exporter) -> Sender:
    return Sender(lambda: sink, AlertMetrics(exporter))


def value(exporter: Exporter, name: str, **labels: str) -> float | None:
    return exporter.registry.get_sample_value(name, {"pipeline": "p", **labels})


def test_a_sender_goes_on_after_any_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alert_sending, "waits_between_tries", lambda: itertools.repeat(0.01))
    not_now = NotNow("HTTP 503", where="alert_sinks.webhook", expected=None)
    sink = Fake(Delivered(2), not_now, ValueError("what?"), Delivered(sent=1, refused=1))
    exporter = Exporter("p", Clock())
    sender = sender_of(sink, exporter)
    sender.start()
    assert sink.has_ended.wait(20)
    sender.stopping.set()
    sender.join(20)
    assert not sender.is_alive()
    assert value(exporter, "tidemill_alerts_sent_total", sink="fake") == 3
    assert value(exporter, "tidemill_alerts_refused_total", sink="fake") == 1
    assert value(exporter, "tidemill_alert_sink_up", sink="fake") == 1


def test_a_sender_waits_as_long_as_it_is_asked_to() -> None:
    sink = Fake(NotNow("HTTP 429", where="w", expected=None, wait=300), Delivered(1))
    exporter = Exporter("p", Clock())
    sender = sender_of(sink, exporter)
    sender.start()
    until = time.monotonic() + 20
    while value(exporter, "tidemill_alert_sink_up", sink="fake") is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    sender.stopping.set()  # which ends the wait
    sender.join(20)
    assert not sender.is_alive()
    assert value(exporter, "tidemill_alert_sink_up", sink="fake") == 0
    assert len(sink.script) == 1


def test_tries_come_later_and_later() -> None:
    waits = list(itertools.islice(waits_between_tries(), 12))
    for place, wait in enumerate(waits):
        most = min(2.0**place, 300)
        assert 0.75 * most <= wait <= most


def test_alerts_are_counted() -> None:
    exporter = Exporter("p", Clock())
    AlertMetrics(exporter).changed("v", {("A", "fired"): 2, ("A", "resolved"): 1})
    labels = {"view": "v", "alert": "A"}
    assert value(exporter, "tidemill_alerts_total", state="fired", **labels) == 2
    assert b"tidemill_alerts_total" in generate_latest(exporter.registry)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as listening:
        yield listening


def declared(folder: Path, sinks: dict[str, Any]) -> Path:
    """A file of the shipped pipeline, with a rule and sinks of it."""
    file = folder / "engagement.yaml"
    rules = "alerts:\n  - {name: SEEN, when: view_count_1d > 0}\n"
    rules += f"alert_sinks: {json.dumps(sinks)}\n"
    file.write_text(SHIPPED.read_text().replace("views:\n", f"{rules}views:\n", 1))
    return file


@pytest.mark.stream
def test_a_run_ends_although_its_webhook_does_not_answer_and_the_next_one_sends(
    small: Small, children: Children, receiver: Receiver, tmp_path: Path
) -> None:
    """And a run that goes on sends as alerts come, signed."""
    small = small.copy_all(tmp_path)
    sink = {"url": receiver.url, "secret": "${env:ALERTS_KEY}"}
    file = declared(tmp_path, {"webhook": sink})
    words = ("run", file, "--source", "files", "--input", small.input, "--root", small.root)
    assert children.tidemill(*words, "--once").ended() == 2, "the secret is not set"

    receiver.answers = [503]
    first = children.tidemill(*words, "--once", ALERTS_KEY="k")
    assert first.ended() == 0
    assert "HTTP 503" in first.err.read_text()
    assert receiver.taken == []

    running = children.tidemill(*words, ALERTS_KEY="k")
    running.until(lambda: bool(receiver.taken))
    running.process.terminate()
    assert running.ended() == 0
    lake = tidemill.open_lake(small.root, pipeline=str(file))
    assert {one["episode"] for one in lake.alerts()} == {
        message.said["data"]["episode"] for message in receiver.taken
    }
    for message in receiver.taken:
        head = message.headers
        seconds = int(head["webhook-timestamp"])
        signed = webhook.signature(b"k", head["webhook-id"], seconds, message.body)
        assert head["webhook-signature"] == signed
