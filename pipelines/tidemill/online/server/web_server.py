"""The process that serves: a socket, uvicorn, and an end without noise at Ctrl-C and SIGTERM."""

from __future__ import annotations

import gc
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from tidemill.errors import UsageError
from tidemill.online.server.request_gate import Application

KEPT = 75  # seconds that an unused connection stays: longer than the usual proxy's
LEAVING = 5  # seconds that requests under way have at the end


def run(
    application: Application, host: str, port: int, on_listening: Callable[[str], None]
) -> None:
    """Serve until Ctrl-C or SIGTERM; requests under way are answered first. `on_listening` is told
    the URL. UsageError where nothing can listen there."""
    listener = _listener(host, port)
    config = uvicorn.Config(
        application,
        log_config=None,
        access_log=False,  # its lines hold paths
        server_header=False,
        timeout_keep_alive=KEPT,
        timeout_graceful_shutdown=LEAVING,
    )
    server = _Server(config)
    with listener:
        on_listening(_url(host, listener.getsockname()[1]))
        with _set_aside():
            server.run(sockets=[listener])


@contextmanager
def _set_aside() -> Iterator[None]:
    """Have the garbage collector leave alone what is there already, modules above all. Else it
    looks through all of it now and then, for tens of milliseconds, while every request waits.

    At the end it may again: DuckDB complains of each object that outlives its module.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class _Server(uvicorn.Server):
    """Uvicorn, which raises a signal again after it has ended; here that would be an error."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self._end) for number in _ENDING}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.handle_exit(number, frame)  # a second Ctrl-C waits for nothing


_ENDING = (signal.SIGINT, signal.SIGTERM)


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror}",
            where="--port",
            expected="a port that no other process has, on an address of this machine",
        ) from error
    # Connections inherit it. asyncio sets it only where a socket names its protocol, which those of
    # `create_server` do not; a head and its body would lie 40 ms apart.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
