"""Reads of the store that requests share: who asks while reads are under way gets the next one.

    request 1 ──► read ──► answer
    request 2 ──┐
    request 3 ──┴► wait ─► one read of both ──► answers

One client waits for nobody. Sixteen at once cost a few round trips instead of sixteen, and the
store as much less work. A request that gives up leaves the read to the others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from tidemill.online.answers.served_view import ServedView
from tidemill.online.store import Key, OnlineStore, Row

AT_ONCE = 2  # reads under way; more only take turns on one connection's event loop
MOST = 2000  # keys of one read
Rows = list[Row | None]
Asked = tuple[ServedView, list[Key]]


class SharedReads:
    """The reads of one event loop."""

    def __init__(self, store: OnlineStore, on_read: Callable[[float], None] = lambda _: None):
        """Hold the store; `on_read` is told the seconds of each read."""
        self._store, self._on_read = store, on_read
        self._under_way = 0
        self._waiting: list[tuple[Asked, asyncio.Future[Rows]]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def rows(self, asked: Sequence[Asked]) -> list[Rows]:
        """Return the rows of each view and keys; StoreError when the store does not answer."""
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in asked]
        self._waiting += zip(asked, futures, strict=True)
        if self._under_way < AT_ONCE:
            self._begin(loop)
        return [await future for future in futures]

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        task = loop.create_task(self._read())
        self._under_way += 1
        self._tasks.add(task)  # the loop itself holds a task only weakly
        task.add_done_callback(self._tasks.discard)

    async def _read(self) -> None:
        """Read what waits, until nothing does."""
        try:
            while self._waiting:
                view, keys, taken = self._taken()
                try:
                    begun = time.perf_counter()
                    found = await self._store.read_async(view.state, keys)
                    self._on_read(time.perf_counter() - begun)
                except Exception as error:
                    _fail(taken, error)
                else:
                    _share(taken, found)
        finally:
            self._under_way -= 1

    def _taken(self) -> tuple[ServedView, list[Key], list[tuple[int, asyncio.Future[Rows]]]]:
        """Take those who wait for rows of the same view as the first, as many as one read holds."""
        view = self._waiting[0][0][0]
        keys: list[Key] = []
        taken, left = [], []
        for one in self._waiting:
            (of, its), future = one
            if of is view and (not keys or len(keys) + len(its) <= MOST):
                keys += its
                taken.append((len(its), future))
            else:
                left.append(one)
        self._waiting = left
        return view, keys, taken


def _share(taken: Sequence[tuple[int, asyncio.Future[Rows]]], found: Rows) -> None:
    start = 0
    for count, future in taken:
        if not future.done():  # its request may have given up
            future.set_result(found[start : start + count])
        start += count


def _fail(taken: Sequence[tuple[int, asyncio.Future[Rows]]], error: Exception) -> None:
    for _, future in taken:
        if not future.done():
            future.set_exception(error)
