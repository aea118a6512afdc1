"""What each fault of a Kafka source looks like: its exit code, its message, and no secret in it."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import runs
from brokers import PASSWORD, Broker
from children import Children
from command_line import Answer, call
from lakes import at, payload
from tidemill.sources.kafka.faults import explained
from topics import declare, of_topic, source_of

WRONG = "wr0ng-secret"


def run(folder: Path, source: dict[str, Any]) -> Answer:
    file = declare(folder, source)
    return call("run", file, "--once", "--root", folder / "lake", "--json")


def test_an_unreachable_broker(tmp_path: Path) -> None:
    source = {"kind": "kafka", "bootstrap_servers": "127.0.0.1:1", "topics": ["t"]}
    answer = run(tmp_path, {**source, "timeout": "2s"})
    assert answer.code == 3
    assert answer.error["kind"] == "source"
    assert answer.error["where"] == "source.bootstrap_servers"
    assert "no broker takes a connection: 127.0.0.1:1 (" in str(answer.error["message"])
    assert not (tmp_path / "lake").exists()


def test_a_broker_that_does_not_answer_is_left_after_the_time_limit(tmp_path: Path) -> None:
    """The address drops what comes: a listener whose queue is full."""

    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
        clients = [socket.socket() for _ in range(3)]
        for client in clients:
            client.setblocking(False)
            client.connect_ex(deaf.getsockname())
        begun = time.monotonic()
        named = {"kind": "kafka", "bootstrap_servers": address, "topics": ["t"]}
        answer = run(tmp_path, {**named, "timeout": "1s"})
        for client in clients:
            client.close()
    assert answer.code == 3
    assert "timed out" in str(answer.error["message"])
    assert time.monotonic() - begun < 10


@pytest.mark.kafka
def test_an_unknown_topic(broker: Broker, tmp_path: Path) -> None:
    answer = run(tmp_path, source_of(broker, "nowhere"))
    assert answer.code == 3
    assert answer.error["message"] == "the brokers have no such topic"


@pytest.mark.kafka
def test_offsets_out_of_range(broker: Broker, tmp_path: Path) -> None:
    topic = broker.create("short")
    broker.send(topic, ["{}"])
    answer = run(tmp_path, source_of(broker, topic, starting_offsets={topic: {"0": 900}}))
    assert answer.code == 3
    assert "offset was changed from 900 to 1" in str(answer.error["message"])
    assert "starting_offsets that exist" in str(answer.error["expected"])


@pytest.mark.kafka
def test_wrong_credentials_are_told_and_printed_nowhere(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the right ones: neither password is in what is printed or written."""
    topic = broker.create("locked")
    broker.send(topic, [payload(("a", "p", "g", "view", at("10:00")))])
    security = {"protocol": "SASL_PLAINTEXT", "username": "tidemill", "password": "${env:KAFKA_PW}"}
    locked = {"bootstrap_servers": f"127.0.0.1:{broker.sasl_port}", "security": security}
    source = source_of(broker, topic, **locked)
    answer = run(tmp_path, source)
    assert answer.code == 2
    assert answer.error["message"] == "the environment variable KAFKA_PW is not set"

    monkeypatch.setenv("KAFKA_PW", WRONG)
    answer = run(tmp_path, source)
    assert answer.code == 3
    said = "the brokers refuse the login: Authentication failed: Invalid username or password"
    assert answer.error["message"] == said
    monkeypatch.setenv("KAFKA_PW", PASSWORD)
    good = run(tmp_path, source)
    assert (good.code, good.json["accepted"]) == (0, 1)
    for secret in (WRONG, PASSWORD):
        assert secret not in answer.out + answer.err + good.out + good.err
        assert not subprocess.run(["grep", "-rlaF", secret, tmp_path], capture_output=True).stdout


@pytest.mark.kafka
def test_a_message_of_ten_megabytes(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """It is read whole, beyond the client's own limit of a fetch, and refused for its field."""
    topic = broker.create("large", max_message_bytes="15000000")
    event = payload(("a", "p" * 10_000_000, "g", "view", at("10:00")))
    broker.send(topic, [event, payload(("b", "p", "g", "view", at("10:00")))])
    rows = runs.run_once(tmp_path / "lake", of_topic(broker, topic))
    clean = next(row for row in rows if row.query == "clean")
    assert (clean.counts["accepted"], clean.counts["quarantined"]) == (1, 1)
    lake = runs.reading(spark, tmp_path / "lake")
    assert lake.table("bronze").where(f"length(raw_payload) = {len(event)}").count() == 1
    assert lake.table("quarantine").first().reasons == ["too_long:profile_id"]


@pytest.mark.kafka
def test_doctor_checks_jars_brokers_and_topics(broker: Broker, tmp_path: Path) -> None:
    topic = broker.create("checked")
    words = ("--source", "kafka", "--bootstrap-servers", broker.address, "--json")
    good = call("doctor", "--root", tmp_path, *words, "--topics", topic)
    checks = {check["name"]: check for check in good.json["checks"]}
    assert [checks[name]["ok"] for name in ("jars of kafka", "source", "topics")] == [True] * 3
    bad = call("doctor", "--root", tmp_path, *words, "--topics", "nowhere")
    assert bad.code == 1
    assert bad.json["checks"][-1]["found"] == "source: the brokers have no such topic"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Failed to find data source: kafka. Make sure", "has no Kafka source"),
        ("org.apache.kafka.x.TopicAuthorizationException: Not authorized: [t]", "Not authorized"),
        ("kafka.common.errors.TimeoutException: Timed out waiting", "do not answer in time"),
    ],
)
def test_texts_of_the_client(text: str, message: str) -> None:
    assert message in str(explained(text))


def test_other_errors_are_not_kafkas() -> None:
    assert explained("java.util.concurrent.TimeoutException: lock") is None


def test_without_jars_a_run_says_how_to_fetch_them(children: Children, tmp_path: Path) -> None:
    """The user's home folder is empty: no session is started, nothing is fetched."""
    source = {"kind": "kafka", "bootstrap_servers": "127.0.0.1:1", "topics": ["t"]}
    file, home = declare(tmp_path, source), tmp_path / "home"
    home.mkdir()
    words = ("run", file, "--once", "--root", tmp_path / "lake", "--json")
    child = children.tidemill(*words, HOME=str(home))
    assert child.ended() == 2
    error = json.loads(child.out.read_text())["error"]
    assert (error["kind"], error["where"]) == ("setup", "jars")
    assert error["expected"].startswith("`tidemill doctor --warm --source kafka`")
    assert not list(home.iterdir())
