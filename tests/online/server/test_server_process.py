"""`tidemill serve` as a process: its start without Spark, what it refuses, how it ends."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from children import Child, Children
from command_line import call
from published import a_store
from tidemill.online.store_address import FILE_NAME

DOCUMENT = {"view": "cards", "keys": [[1, "a"]], "features": ["count_1d"]}
MOST = 2.0  # seconds of a start, on a quiet machine
NOISE = 4  # how much slower a busy one may be


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    yield Children(tmp_path)


def url(child: Child) -> str:
    child.until(lambda: "Ctrl-C" in child.out.read_text())
    found = re.search(r"http://\S+", child.out.read_text())
    assert found
    return found[0].rstrip(";")


def ask(where: str) -> int:
    request = urllib.request.Request(where, json.dumps(DOCUMENT).encode())
    with urllib.request.urlopen(request, timeout=10) as response:
        count: int = json.load(response)["rows"][0]["values"]["count_1d"]
        return count


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_starts_at_once_and_ends_clean(
    children: Children, tmp_path: Path, number: signal.Signals
) -> None:
    begun = time.monotonic()
    Path(a_store(tmp_path)).rename(tmp_path / FILE_NAME)
    child = children.tidemill("serve", "--root", tmp_path, "--port", "0")
    where = url(child)
    assert time.monotonic() - begun < MOST * NOISE
    assert ask(where) == 3
    child.process.send_signal(number)
    assert child.ended() == 0
    assert child.err.read_text() == ""
    assert child.out.read_text().startswith("serving 2 views at http://127.0.0.1:")


def test_requests_under_way_are_answered_at_the_end(children: Children, tmp_path: Path) -> None:
    child = children.tidemill("serve", "--store", a_store(tmp_path), "--port", "0")
    where, answers = url(child), []
    asking = threading.Event()

    def keep_asking() -> None:
        while True:
            try:
                answers.append(ask(where))
            except OSError:
                return
            asking.set()

    thread = threading.Thread(target=keep_asking)
    thread.start()
    assert asking.wait(10)
    child.process.send_signal(signal.SIGTERM)
    assert child.ended() == 0
    thread.join()
    assert set(answers) == {3}


def test_it_imports_no_spark(tmp_path: Path) -> None:
    said = (
        "import sys, tidemill\n"
        "loaded = lambda: [m for m in ('pyspark','fastapi','httpx','redis') if m in sys.modules]\n"
        "print(loaded())\n"
        "from tidemill.online.server import application\n"
        "tidemill.serve, tidemill.FeatureClient\n"
        "print('pyspark' in loaded(), 'redis' in loaded())"
    )
    answer = subprocess.run(
        [sys.executable, "-c", said], capture_output=True, text=True, check=True
    )
    assert answer.stdout.splitlines() == ["[]", "False False"]


def test_what_it_does_not_start_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEMILL_TOKEN", raising=False)
    path = a_store(tmp_path)
    refused = [
        (("--store", tmp_path / "none.sqlite"), 3, "there is no online store"),
        (("--store", path, "--host", "0.0.0.0"), 2, "no token is set"),
        (("--store", path, "--stale-after", "soon"), 2, "'soon' is no length of time"),
        (("--store", path, "--refuse-after", "1s"), 2, "before they are stale"),
        (("--store", "kafka://x"), 2, "unknown kind of store"),
        (("--store", path, "--root", tmp_path), 2, "a store is served, or that of a lake's folder"),
        (("--root", tmp_path), 3, "there is no online store"),
        (("--store", path, "--response-log", tmp_path / "no/log"), 2, "cannot be written"),
    ]
    for words, code, text in refused:
        answer = call("serve", "--port", 0, *words)
        assert (answer.code, text in answer.err) == (code, True), (words, answer.err)
        assert answer.err.count("\n") == 1
    with socket.create_server(("127.0.0.1", 0)) as held:
        answer = call("serve", "--store", path, "--port", held.getsockname()[1])
    assert answer.code == 2
    assert "Address already in use" in answer.err


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidemill.online import extras

    monkeypatch.setattr(extras, "_SERVE", ("fastapi", "no_such_package"))
    answer = call("serve", "--store", a_store(tmp_path))
    assert answer.code == 2
    assert "no_such_package" in answer.err
    assert "pip install 'tidemill[serve]'" in answer.err


def test_a_body_that_does_not_come_and_bytes_that_are_no_http(
    children: Children, tmp_path: Path
) -> None:
    words = ("serve", "--store", a_store(tmp_path), "--port", "0", "--timeout", "1s")
    child = children.tidemill(*words)
    port = int(url(child).split(":")[2].partition("/")[0])

    def said(sent: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", port), 10) as connection:
            connection.sendall(sent)
            answer = b""
            while some := connection.recv(1 << 16):
                answer += some
            return answer

    head = b"POST /v1/features HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"
    slow = said(head)
    assert slow.startswith(b"HTTP/1.1 408")
    assert b"the body did not come" in slow
    assert said(b"person-17 person-17\r\n\r\n").startswith(b"HTTP/1.1 400")
    child.process.send_signal(signal.SIGTERM)
    assert child.ended() == 0
    assert "person-17" not in child.err.read_text()
    assert "Traceback" not in child.err.read_text()
