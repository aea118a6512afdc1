"""A thread that looks, several times a second, at what the threads of a pipeline's queries do.

    Spark: active queries ──► their JVM threads ──getStackTrace──► parts ─┐
    Python: the batch's own frames, by the query's step ──────────────────┴─► Sample

A query's batch runs on one thread of the JVM; where it is in foreachBatch, a thread of this process
calls it, and what that asks of the JVM runs on the query's thread again. So one stack of each
tells the whole way. A look costs the JVM a stop of that one thread, and Python some milliseconds.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from tidemill.monitoring.profile import stack_parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY = 0.04  # seconds between two looks
LIST_EVERY = 0.2  # seconds between two lists of the queries that run
_OURS = "tidemill."


@dataclass(frozen=True)
class Sample:
    """One look at a query: when, in seconds since 1970, which run of it, Tidemill's functions and
    the parts of the JVM's stack, outermost first."""

    at: float
    run: str
    functions: tuple[str, ...]
    parts: tuple[str, ...]


@contextmanager
def sampling(
    spark: SparkSession, step_of: Mapping[str, str], take: Callable[[Sample], None]
) -> Iterator[None]:
    """Look at the queries in `step_of`, by their names in Spark, while the block runs; `take` is
    called on the sampler's thread. The values are the modules in which their batches begin."""
    stop = threading.Event()
    sampler = _Sampler(spark, step_of, take)
    thread = threading.Thread(target=sampler.run, args=(stop,), name="profile", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


class _Sampler:
    def __init__(
        self, spark: SparkSession, step_of: Mapping[str, str], take: Callable[[Sample], None]
    ):
        self._spark, self._step_of, self._take = spark, step_of, take
        self._threads: dict[tuple[str, str], Any] = {}
        self._listed = 0.0

    def run(self, stop: threading.Event) -> None:
        """Look until told to stop; a query that ends while it is looked at is no error."""
        while not stop.wait(EVERY):
            try:
                self._look()
            except Py4JError:
                self._threads = {}

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._listed >= LIST_EVERY:
            self._threads, self._listed = self._running(), now
        for (run, name), thread in self._threads.items():
            at, functions = time.time(), _functions(self._step_of[name])
            frames = stack_parts.frames_of(self._text(thread.getStackTrace()))
            if frames and not stack_parts.is_idle(frames):
                self._take(Sample(at, run, functions, tuple(stack_parts.parts_of(frames))))

    def _running(self) -> dict[tuple[str, str], Any]:
        """Return the JVM threads of the queries, by run and name."""
        active = self._spark._jsparkSession.streams().active()
        known, running = self._threads, {}
        for query in active:
            key = (query.runId().toString(), query.name())
            if key[1] in self._step_of:
                thread = known.get(key) or query.streamingQuery().queryExecutionThread()
                running[key] = thread
        return running

    def _text(self, frames: Any) -> str:
        jvm = self._spark._jvm
        assert jvm is not None
        return str(jvm.scala.runtime.ScalaRunTime.stringOf(frames))


def _functions(step: str) -> tuple[str, ...]:
    """Return Tidemill's functions on the thread whose outermost one of ours is in the step's
    module, outermost first; none where no thread is there, or several, of which one cannot tell."""
    stacks = [_of_thread(frame) for frame in sys._current_frames().values()]
    found = [stack for stack in stacks if stack and stack[0][0] == step]
    if len(found) != 1:
        return ()
    return _named(found[0])


def _of_thread(frame: FrameType | None) -> list[tuple[str, str]]:
    frames = []
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(_OURS):
            frames.append((module, frame.f_code.co_name))
        frame = frame.f_back
    return frames[::-1]


def _named(stack: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return `module.function` of each, without a comprehension's or a context manager's own."""
    names = [
        f"{module.rpartition('.')[2]}.{function}"
        for module, function in stack
        if not function.startswith("<") and function not in {"__enter__", "__exit__"}
    ]
    return tuple(dict.fromkeys(names))
