"""The same answers from a real Redis, which is stopped and comes back."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import redis_server
from published import BANKS, NOW, publish, served
from tidemill import FeatureClient
from tidemill.config.settings import iso
from tidemill.online.open_store import open_store

pytestmark = pytest.mark.redis
KEY = {"bank": 1, "card": "a"}
ASKED = {"views": {"cards": {"features": ["count_1d"]}, "banks": {}}, "keys": [KEY]}
PATIENCE = 20.0


def until(there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_redis_answers_dies_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with redis_server.running(tmp_path) as redis:
        publish(open_store(redis.url, writes=True))
        publish(open_store(redis.url, writes=True), BANKS, {(1,): [7]})
        with served(redis.url) as server:
            first = server.ask(ASKED)
            assert first.status_code == 200
            assert first.json()["views"]["banks"]["rows"][0]["values"] == {"approx_distinct_1d": 7}
            assert server.http.get("/ready").status_code == 200
            monkeypatch.setenv("TIDEMILL_NOW", iso(NOW))
            with FeatureClient(redis.url) as client:
                row = client.features("cards", [(1, "a")], ["count_1d"])["rows"][0]
            assert row["values"] == {"count_1d": 3}

            redis.stop()
            refused = server.ask(ASKED)
            assert refused.status_code == 503
            assert refused.json()["error"]["kind"] == "store"
            until(lambda: server.http.get("/ready").status_code == 503)
            assert server.http.get("/health").status_code == 200

            redis.restart()  # empty: what was published is gone
            until(lambda: server.http.get("/v1/features/cards").status_code == 404)
            publish(open_store(redis.url, writes=True))
            publish(open_store(redis.url, writes=True), BANKS, {(1,): [7]})
            until(lambda: server.http.get("/ready").status_code == 200)
            assert server.ask(ASKED).json() == first.json()
