"""Limits that let nothing through, tokens, and a response log that stays bounded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from published import NOW
from tidemill.errors import UsageError
from tidemill.online.answers.limits import Limits
from tidemill.online.server import response_log
from tidemill.online.server.response_log import ResponseLog
from tidemill.online.server.tokens import Tokens

TOKEN = "a-token-of-some-length"


@pytest.mark.parametrize(
    "wrong",
    [{"keys": 0}, {"concurrent": -1}, {"seconds": 0.0}, {"stale_after": float("nan")}],
)
def test_a_limit_lets_something_through(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="is no limit"):
        Limits(**wrong)


def test_nothing_is_refused_before_it_is_stale() -> None:
    with pytest.raises(UsageError, match="before they are stale"):
        Limits(stale_after=60, refuse_after=30)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_this_machine_needs_no_token(host: str) -> None:
    assert Tokens.from_environment("T", host, {}).admits(b"")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "features.example"])
def test_a_network_needs_one(host: str) -> None:
    with pytest.raises(UsageError, match="no token is set"):
        Tokens.from_environment("T", host, {"T": " "})
    assert not Tokens.from_environment("T", host, {"T": TOKEN}).admits(b"")


def test_a_token_that_is_set_is_asked_for_on_this_machine_too() -> None:
    tokens = Tokens.from_environment("T", "127.0.0.1", {"T": TOKEN})
    assert tokens.admits(b"bearer " + TOKEN.encode())
    assert not tokens.admits(b"Basic " + TOKEN.encode())
    assert not tokens.admits(b"Bearer \xff")
    assert TOKEN not in repr(tokens)


def test_a_short_token_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError, match="shorter than 16") as caught:
        Tokens.from_environment("T", "127.0.0.1", {"T": "secret"})
    assert "secret" not in str(caught.value).replace("import secrets; print(secrets", "")


def test_the_response_log_keeps_its_newest_files(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = ResponseLog(path, file_bytes=200, files=3)
    for number in range(20):
        log.add({"number": number, "text": "x" * 60}, NOW)
    log.close()
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["log", "log.1", "log.2"]
    assert all(file.stat().st_size <= 200 for file in files)
    texts = "".join(file.read_text() for file in reversed(files))
    kept = [json.loads(line)["number"] for line in texts.splitlines()]
    assert kept == list(range(kept[0], 20))


def test_a_response_log_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    for number in range(2):
        log = ResponseLog(tmp_path / "log")
        log.add({"number": number}, NOW)
        log.close()
    lines = (tmp_path / "log").read_text().splitlines()
    assert [json.loads(line)["number"] for line in lines] == [0, 1]


def test_a_response_log_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        ResponseLog(tmp_path / "no" / "log")


def test_what_the_disk_does_not_take_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[int] = []
    monkeypatch.setattr(response_log, "WAITING", -1)
    log = ResponseLog(tmp_path / "log", on_dropped=lambda: dropped.append(1))
    log.add({"rows": [1, 2]}, NOW)
    log.close()
    assert (len(dropped), (tmp_path / "log").read_text()) == (1, "")
