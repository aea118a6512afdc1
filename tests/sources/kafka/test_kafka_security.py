"""TLS, SCRAM, certificates of clients and rules of access, as a real broker has them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from brokers import PASSWORD, Broker
from command_line import Answer, call
from lakes import at, payload
from topics import declare, source_of

pytestmark = pytest.mark.kafka

NAMED = "${env:KAFKA_PW}"
WRONG = "wr0ng-secret"


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PW", PASSWORD)


def by_tls(broker: Broker, topic: str, port: int, **security: str) -> dict[str, Any]:
    """A source that trusts the broker's certificate."""
    trust = {"truststore": str(broker.folder / "trust.p12"), "truststore_password": NAMED}
    return source_of(
        broker, topic, bootstrap_servers=f"127.0.0.1:{port}", security={**trust, **security}
    )


def by_scram(broker: Broker, topic: str) -> dict[str, Any]:
    login = {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "username": "tidemill"}
    return by_tls(broker, topic, broker.tls_port, **login, password=NAMED)


def by_certificate(broker: Broker, topic: str) -> dict[str, Any]:
    own = {"keystore": str(broker.folder / "tls.p12"), "keystore_password": NAMED}
    return by_tls(broker, topic, broker.tls_port + 1, protocol="SSL", **own)


def without(source: dict[str, Any], *words: str) -> dict[str, Any]:
    security = {n: value for n, value in source["security"].items() if n not in words}
    return {**source, "security": security}


def run(folder: Path, source: dict[str, Any]) -> Answer:
    folder.mkdir(exist_ok=True)
    file = declare(folder, source)
    return call("run", file, "--once", "--root", folder / "lake", "--json")


def assert_hidden(answer: Answer, folder: Path, *secrets: str) -> None:
    """In nothing that was printed, and in no file that a run wrote."""
    for word in secrets:
        assert word not in answer.out + answer.err
        assert not subprocess.run(["grep", "-rlaF", word, folder], capture_output=True).stdout


@pytest.mark.stream
@pytest.mark.parametrize("secured", [by_scram, by_certificate])
def test_events_come_by_tls(secured, secret: None, broker: Broker, tmp_path: Path) -> None:
    topic = broker.create(f"tls-{secured.__name__}")
    broker.send(topic, [payload((name, "p", "g", "view", at("10:00"))) for name in "ab"])
    answer = run(tmp_path, secured(broker, topic))
    assert (answer.code, answer.json["accepted"]) == (0, 2), answer.err
    assert_hidden(answer, tmp_path, PASSWORD)


def test_a_wrong_password_of_scram(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = broker.create("scram")
    monkeypatch.setenv("KAFKA_PW", PASSWORD)
    monkeypatch.setenv("WRONG_PW", WRONG)
    source = by_scram(broker, topic)
    source["security"]["password"] = "${env:WRONG_PW}"
    answer = run(tmp_path, source)
    assert answer.code == 3
    assert str(answer.error["message"]).startswith("the brokers refuse the login: ")
    assert answer.error["expected"].startswith("the username and password")
    assert_hidden(answer, tmp_path, WRONG, PASSWORD)


def test_a_certificate_that_is_not_trusted(secret: None, broker: Broker, tmp_path: Path) -> None:
    """The client trusts the machine's authorities alone, and so not this broker."""
    source = by_scram(broker, broker.create("strange"))
    answer = run(tmp_path, without(source, "truststore", "truststore_password"))
    assert answer.code == 3
    assert "the broker's certificate is not trusted" in str(answer.error["message"])
    assert "source.security.truststore" in str(answer.error["expected"])


def test_a_truststore_that_is_not_there(secret: None, broker: Broker, tmp_path: Path) -> None:
    source = by_scram(broker, "any")
    source["security"]["truststore"] = str(tmp_path / "none.p12")
    answer = run(tmp_path, source)
    assert answer.code == 3
    message = str(answer.error["message"])
    assert message.startswith("the file of keys or certificates ") and "none.p12" in message
    assert "NoSuchFileException" in message


def test_a_client_without_its_certificate(secret: None, broker: Broker, tmp_path: Path) -> None:
    source = by_certificate(broker, broker.create("unnamed"))
    answer = run(tmp_path, without(source, "keystore", "keystore_password"))
    assert answer.code == 3
    assert answer.error["message"] == (
        "the brokers refuse the login: they take a client by its certificate (bad_certificate)"
    )


def test_a_topic_that_a_rule_denies(secret: None, broker: Broker, tmp_path: Path) -> None:
    """The user logs in, and may do all but look at this one."""
    topic = broker.create("denied")
    broker.send(topic, [payload(("a", "p", "g", "view", at("10:00")))])
    broker.deny(topic, "tidemill")
    answer = run(tmp_path, by_scram(broker, topic))
    assert answer.code == 3
    assert answer.error["message"] == ("the brokers do not allow it: Topic authorization failed.")
    assert answer.error["expected"] == "READ and DESCRIBE on the topics for this user"
