"""A real Redis server for tests, on a free port of this machine, its data in memory alone."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 20.0


@dataclass
class RedisServer:
    """A server that runs; `restart` gives an empty one at the same port."""

    folder: Path
    port: int
    settings: tuple[str, ...]
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self, **words: Any) -> Any:
        import redis

        return redis.Redis(port=self.port, **words)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        self.stop()
        self.process = _started(self.folder, self.port, self.settings)


@contextmanager
def running(folder: Path, *settings: str) -> Iterator[RedisServer]:
    """Start a server with these settings; skip where Redis is not installed."""
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    port = _free_port()
    server = RedisServer(folder, port, settings, _started(folder, port, settings))
    try:
        yield server
    finally:
        server.stop()


def _free_port() -> int:
    """A free port; nodes of a cluster talk at the one that is 10,000 above it."""
    while True:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port: int = free.getsockname()[1]
        if port < 55_000:
            return port


def _started(folder: Path, port: int, settings: tuple[str, ...]) -> subprocess.Popen[bytes]:
    plain = ("--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
    with (folder / "redis.log").open("ab") as log:
        process = subprocess.Popen(
            ["redis-server", *plain, *settings], cwd=folder, stdout=log, stderr=log
        )
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return process
        except OSError:
            assert process.poll() is None, (folder / "redis.log").read_text()
            assert time.monotonic() < deadline, "no Redis in time"
            time.sleep(0.05)
