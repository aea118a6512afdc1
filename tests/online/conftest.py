"""Stores of both kinds: a file, and a real Redis that the run starts once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import redis_server
from redis_server import RedisServer
from tidemill.online.store_address import StoreAddress


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """The run's only Redis; a test that stops it starts one of its own."""
    with redis_server.running(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(params=["file", pytest.param("redis", marks=pytest.mark.redis)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> StoreAddress:
    """An empty store of each kind."""
    if request.param == "file":
        return StoreAddress(str(tmp_path / "online.sqlite"))
    server: RedisServer = request.getfixturevalue("redis")
    server.client().flushall()
    return StoreAddress(server.url)
