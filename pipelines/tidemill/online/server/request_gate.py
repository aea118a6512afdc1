"""What every request passes, in this order: who asks, how many at once, how much, how long.

    401 no token   403 a foreign host name   429 too many at once   413 too large
    408 a body that does not come   503 no answer in time
    500 a defect, of which only the place is logged

It stands before the application, so that what is refused costs next to nothing. No line that it
logs holds anything of a request but its route.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.requests import ClientDisconnect

from tidemill.errors import RequestError
from tidemill.online.answers.limits import Limits
from tidemill.online.server.refusal_bodies import DEFECT, HEADERS, Body, body_of, body_of_error
from tidemill.online.server.request_metrics import RequestMetrics
from tidemill.online.server.tokens import Tokens

log = logging.getLogger(__name__)
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

STEPS = 20  # looks at what is under way in the time that a request may take
OPEN = frozenset({"/health", "/ready"})  # what an orchestrator asks; says nothing of the data


class RequestGate:
    """An ASGI application around another."""

    def __init__(
        self, application: Application, limits: Limits, tokens: Tokens, metrics: RequestMetrics
    ):
        """Hold what is asked of each request; nothing is under way."""
        self._application, self._limits = application, limits
        self._tokens, self._metrics = tokens, metrics
        self._time = _TimeLimit(limits.seconds)
        self._under_way = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or let it through."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        passage = _Passage(scope, receive, send, self._limits.body_bytes)
        try:
            await self._answered(scope, passage)
        finally:
            self._metrics.answered(scope["path"], passage.status, passage.seconds)

    async def _answered(self, scope: Message, passage: _Passage) -> None:
        if refused := self._refusal(scope):
            await passage.refuse(*refused)
            return
        self._under_way += 1
        try:
            async with self._time:
                await self._application(scope, passage.receive, passage.send)
        except asyncio.TimeoutError:
            await passage.refuse(*self._too_slow(passage))
        except ClientDisconnect:
            pass
        except Exception as error:
            log.error("a request to %s failed: %s", _route(scope), _place(error))
            await passage.refuse(500, DEFECT)
        finally:
            self._under_way -= 1

    def _refusal(self, scope: Message) -> tuple[int, Body] | None:
        """Return the status and body for what is not let in."""
        headers = dict(scope["headers"])
        if scope["path"] not in OPEN:
            if not self._tokens.admits(headers.get(b"authorization", b"")):
                expected = "Authorization: Bearer <token>"
                return 401, body_of("request", "no valid token", "header", expected)
            if not self._tokens.takes_host(headers.get(b"host", b"")):
                expected = "127.0.0.1, localhost or [::1]; with a token any"
                return 403, body_of("request", "not asked by this machine's name", "Host", expected)
            if self._under_way >= self._limits.concurrent:
                return 429, body_of(
                    "request", "too many requests at once", None, "fewer, or again in a moment"
                )
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length[:18]) > self._limits.body_bytes:
            return 413, body_of_error(_too_large(self._limits.body_bytes))
        return None

    def _too_slow(self, passage: _Passage) -> tuple[int, Body]:
        seconds = f"within {self._limits.seconds:g} s"
        if not passage.is_read:
            return 408, body_of("request", "the body did not come", "body", seconds)
        return 503, body_of("store", "the online store did not answer in time", None, seconds)


class _TimeLimit:
    """How long a request may take: it is cancelled then, and its block raises TimeoutError.

    One timer looks after all requests that are under way, as the one that `asyncio.timeout` makes
    for each takes a twelfth of the time of an answer. A request ends up to a `STEPS`th late.
    """

    def __init__(self, seconds: float):
        self._seconds = seconds
        self._ends: dict[asyncio.Task[Any], float] = {}  # by when they began, so by their ends too
        self._late: set[asyncio.Task[Any]] = set()
        self._is_watched = False

    async def __aenter__(self) -> None:
        loop, task = asyncio.get_running_loop(), _this_task()
        self._ends[task] = loop.time() + self._seconds
        if not self._is_watched:
            self._is_watched = True
            loop.call_later(self._seconds / STEPS, self._look, loop)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        task = _this_task()
        self._ends.pop(task, None)
        if task not in self._late:
            return
        self._late.remove(task)
        if sys.version_info >= (3, 11):
            task.uncancel()
        if kind is not None and issubclass(kind, asyncio.CancelledError):
            raise asyncio.TimeoutError

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        while self._ends and (first := next(iter(self._ends.items())))[1] <= now:
            task = first[0]
            del self._ends[task]
            self._late.add(task)
            task.cancel()
        self._is_watched = bool(self._ends)
        if self._is_watched:
            loop.call_later(self._seconds / STEPS, self._look, loop)


def _this_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


class _Passage:
    """One request on its way: counts its body, and knows whether an answer has begun."""

    def __init__(self, scope: Message, receive: Receive, send: Send, most: int):
        self._receive, self._send, self._most = receive, send, most
        self._begun = time.perf_counter()
        self._bytes = 0
        self.is_read = scope["method"] in ("GET", "HEAD")
        self.status = 0
        self.seconds = 0.0

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._bytes += len(message.get("body", b""))
            self.is_read = not message.get("more_body", False)
            if self._bytes > self._most:
                raise _too_large(self._most)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.seconds = time.perf_counter() - self._begun
            took = f"app;dur={self.seconds * 1000:.3f}".encode()
            message["headers"] = [*message.get("headers", ()), (b"server-timing", took), *_SAFE]
            if not self.is_read:  # what is left of the body is not the next request
                message["headers"].append((b"connection", b"close"))
        await self._send(message)

    async def refuse(self, status: int, body: Body) -> None:
        """Send an answer of our own, unless one has begun."""
        if self.status:
            return
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        more = HEADERS.get(status, {})
        headers += [(name.encode(), value.encode()) for name, value in more.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})


_SAFE = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]


def _too_large(most: int) -> RequestError:
    expected = f"at most {most:,} bytes"
    return RequestError("the body is too large", status=413, where="body", expected=expected)


def _route(scope: Message) -> str:
    return getattr(scope.get("route"), "path", "an unknown path")


def _place(error: BaseException) -> str:
    """Return kind and place of an error: its message may hold a key."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {last.filename.rpartition('/')[2]}:{last.lineno}"
