"""One message to an address: signed as the specification has it, and what its answers mean."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from receivers import Receiver, receiving
from tidemill.errors import UsageError
from tidemill.pipeline.sinks import webhook

# Signed by the reference library, standardwebhooks 1.0.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLjSw"
ID, SECONDS, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNED = "v1,q6KMVIJHk4Gs770FfR5f591Ftx7uVJSGl5wHV1ri978="


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as listening:
        yield listening


def post(receiver: Receiver, key: bytes | None = b"k", timeout: float = 5) -> webhook.Reply:
    return webhook.post(receiver.url, key, "m1", b"{}", timeout)


def test_a_signature_is_that_of_the_specification() -> None:
    assert webhook.signature(webhook.key_of(SECRET, "x"), ID, SECONDS, BODY) == SIGNED


def test_a_secret_of_another_form_is_its_own_bytes() -> None:
    assert webhook.key_of("säcret", "x") == "säcret".encode()


def test_a_secret_that_is_no_base64_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError, match="the secret cannot be read") as refused:
        webhook.key_of("whsec_not base64!", "alert_sinks.webhook.secret")
    assert "not base64" not in str(refused.value)


def test_what_is_posted_can_be_verified(receiver: Receiver) -> None:
    assert post(receiver) == webhook.Reply(taken=True, text="HTTP 204")
    (message,) = receiver.messages
    seconds = int(message.headers["webhook-timestamp"])
    assert abs(time.time() - seconds) < 60
    assert message.headers["webhook-id"] == "m1"
    assert message.headers["content-type"] == "application/json"
    expected = webhook.signature(b"k", "m1", seconds, message.body)
    assert message.headers["webhook-signature"] == expected


def test_without_a_secret_nothing_is_signed(receiver: Receiver) -> None:
    post(receiver, None)
    assert "webhook-signature" not in receiver.messages[0].headers


@pytest.mark.parametrize(
    ("status", "taken", "later"),
    [
        (200, True, False),
        (202, True, False),
        (302, False, False),
        (400, False, False),
        (401, False, False),
        (404, False, False),
        (408, False, True),
        (429, False, True),
        (500, False, True),
        (503, False, True),
    ],
)
def test_what_an_answer_means(receiver: Receiver, status: int, taken: bool, later: bool) -> None:
    receiver.answers, receiver.headers = [status], {"location": receiver.url}
    reply = post(receiver)
    assert (reply.taken, reply.later) == (taken, later)
    assert reply.text == f"HTTP {status}"
    assert len(receiver.messages) == 1, "a redirection is not followed"


@pytest.mark.parametrize(
    ("said", "wait"), [("7", 7.0), ("", 0.0), ("Wed, 25 Nov 2026 10:00:00 GMT", 0.0), ("-1", 0.0)]
)
def test_how_long_an_answer_asks_to_wait(receiver: Receiver, said: str, wait: float) -> None:
    receiver.answers, receiver.headers = [503], {"retry-after": said}
    assert post(receiver).wait == wait


def test_an_address_that_nobody_listens_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    reply = webhook.post(f"http://127.0.0.1:{port}/", None, "m", b"{}", 1)
    assert (reply.taken, reply.later) == (False, True)
    assert "refused" in reply.text


def test_an_address_that_does_not_answer_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        reply = webhook.post(address, None, "m", b"{}", 0.2)
    assert (reply.taken, reply.later) == (False, True)
    assert "timed out" in reply.text
