"""Running a pipeline's queries from the main thread: once in order, or together until stopped.

The main thread starts and watches the queries, ticks the wall clock, records what the batches did
and ends everything between two batches when asked to.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from types import FrameType
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from tidemill.config.settings import iso
from tidemill.errors import InputError, QueryError
from tidemill.features.windows import duration
from tidemill.lake.batches import BatchRow, Versions
from tidemill.operations import maintenance
from tidemill.pipeline import batch_log
from tidemill.pipeline.failures import explained
from tidemill.pipeline.queries import ONCE, Pipeline, Trigger

log = logging.getLogger(__name__)

POLL = 0.25
RECORD_EVERY = 60.0
Tell = Callable[[Sequence[BatchRow]], None]


@dataclass
class Stop:
    """A wish to stop: set by SIGINT or SIGTERM, obeyed between batches; a second SIGINT ends at
    once."""

    wished: threading.Event = field(default_factory=threading.Event)

    def __bool__(self) -> bool:
        """Return whether to stop."""
        return self.wished.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait, at most so long, and return whether to stop."""
        return self.wished.wait(seconds)

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Listen to SIGINT and SIGTERM; call it when Spark is up, whose own handler it replaces."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {s: signal.signal(s, self._heard) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        if self and number == signal.SIGINT:
            os._exit(130)
        self.wished.set()


@dataclass
class Watch:
    """Tells of batches as they are committed, and records them, at most once a minute."""

    pipeline: Pipeline
    tell: Tell
    versions: Versions = field(init=False)
    rows: list[BatchRow] = field(default_factory=list)
    _kept: int = 0
    _recorded: float = field(default_factory=time.monotonic)
    _progress: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin after what is committed now, which is recorded first."""
        self.versions = batch_log.record(self.pipeline.lake)

    def look(self, queries: Sequence[StreamingQuery]) -> None:
        """Tell of new batches when the last query has finished one, which ends a batch's way, or
        when all queries rest; a look reads the history of every table."""
        batches = [_finished(query) for query in queries]
        if batches != self._progress and (
            batches[-1:] != self._progress[-1:]
            or not any(query.status["isTriggerActive"] for query in queries)
        ):
            self._progress = batches
            self.catch_up()
        if time.monotonic() - self._recorded >= RECORD_EVERY:
            self.record()

    def catch_up(self) -> None:
        """Tell of every commit that has not been told."""
        rows = batch_log.since(self.pipeline.lake, self.versions)
        self.versions = batch_log.seen(self.pipeline.lake, rows, self.versions)
        self.rows += rows
        if rows:
            self.tell(rows)

    def record(self) -> None:
        """Tell of every commit, also one that no query made, and bring `tidemill_batches` up to
        it."""
        self.catch_up()
        batch_log.append(self.pipeline.lake, self.rows[self._kept :])
        self._kept, self._recorded = len(self.rows), time.monotonic()


@dataclass
class Upkeep:
    """Maintains the lake between batches, as often as the pipeline says: vacuum and tidy once a
    day, the rest each time."""

    pipeline: Pipeline
    tell: Tell
    _every: timedelta | None = None
    _due: datetime = field(init=False)

    def __post_init__(self) -> None:
        """Count from the last upkeep that the lake tells of, else from now."""
        declared, now = self.pipeline.definition.maintenance, datetime.now(timezone.utc)
        self._due = now
        if declared:
            self._every = duration(declared.every)
            self._due = (maintenance.last(self.pipeline.lake) or now) + self._every

    def look(self, queries: Sequence[StreamingQuery]) -> None:
        """Maintain the lake when it is due and no query is in a batch; when they never rest, after
        twice the time beside them, which is as safe and slower."""
        now = datetime.now(timezone.utc)
        if not self._every or now < self._due:
            return
        busy = any(query.status["isTriggerActive"] for query in queries)
        if busy and now < self._due + self._every:
            return
        lake = self.pipeline.lake
        vacuumed = maintenance.last(lake, "vacuum")
        daily = vacuumed is None or now - vacuumed >= timedelta(days=1)
        actions = maintenance.ACTIONS if daily else maintenance.OFTEN
        done = maintenance.maintain(lake, maintenance.plan(lake, self.pipeline.clock, actions))
        if done:
            self.tell([maintenance.row_of(lake, done)])
        self._due = datetime.now(timezone.utc) + self._every


def run_once(pipeline: Pipeline, stop: Stop, tell: Tell) -> list[BatchRow]:
    """Bring everything that is there through the queries, in order; return what was done."""
    pipeline.claim()
    watch = Watch(pipeline, tell)
    for name in pipeline.queries:
        if stop:
            break
        finish(name, pipeline, stop, watch)
    if not stop:
        pipeline.refresh()
    watch.record()
    return watch.rows


def finish(name: str, pipeline: Pipeline, stop: Stop, watch: Watch) -> None:
    """Run one query over everything that is there, telling of its batches."""
    with _explained(name):
        query = pipeline.start(name, ONCE)
        while not query.awaitTermination(POLL):  # type: ignore[arg-type]
            watch.look([query])
            if stop:
                stop_after_batch(query)
    watch.catch_up()


def run(
    pipeline: Pipeline,
    stop: Stop,
    tell: Tell,
    until: Callable[[Sequence[BatchRow]], bool] = lambda rows: False,
    meanwhile: Callable[[Pipeline], None] = lambda pipeline: None,
) -> list[BatchRow]:
    """Run the queries together until stopped, or `until` what was done is enough; return it.
    `meanwhile` is called again and again beside them."""
    declared = dict(pipeline.definition.triggers)
    triggers = {q: processing_time(declared[q.partition("_")[0]]) for q in pipeline.queries}
    pipeline.claim()
    watch, upkeep = Watch(pipeline, tell), Upkeep(pipeline, tell)
    running: dict[str, StreamingQuery] = {}
    ticked = None
    try:
        while not stop.wait(POLL) and not until(watch.rows):
            _start_ready(pipeline, triggers, running)
            _watch_over(running)
            if pipeline.clock.minute_end() != ticked:
                ticked = pipeline.clock.minute_end()
                _check_source(pipeline)
                if pipeline.follows == "wall" and not pipeline.states:
                    tick(pipeline)
            watch.look(list(running.values()))
            upkeep.look(list(running.values()))
            meanwhile(pipeline)
    finally:
        for query in running.values():
            stop_after_batch(query)
    watch.record()
    return watch.rows


def _start_ready(
    pipeline: Pipeline, triggers: dict[str, Trigger], running: dict[str, StreamingQuery]
) -> None:
    """Start what is not running yet; land waits for a source that has nothing to tell its kind
    by."""
    for name in pipeline.queries:
        if name not in running and (name != "land" or pipeline.source.ready()):
            with _explained(name):
                running[name] = pipeline.start(name, triggers[name])


def _check_source(pipeline: Pipeline) -> None:
    """Fail for a wrong file that came while running and that Spark reads as nothing (0 bytes)."""
    try:
        pipeline.source.check(once=False)
    except InputError as error:
        raise QueryError(error.message, where=error.where, expected=error.expected) from error


def tick(pipeline: Pipeline) -> None:
    """Refresh each view whose ledger is older than the current minute."""
    lake, now = pipeline.lake, pipeline.clock.minute_end()
    for view in pipeline.definition.views:
        there = lake.gold_state(view)
        if there.as_of is None or there.as_of < now:
            pipeline.refresh()
            return


def _watch_over(running: dict[str, StreamingQuery]) -> None:
    for name, query in running.items():
        if query.isActive:
            continue
        error = query.exception()
        if error is not None:
            raise explained(error, name)
        raise QueryError(
            f"{name} ended by itself, without an exception",
            expected="a query that runs; is another process using its checkpoint?",
        )


@contextmanager
def _explained(name: str) -> Iterator[None]:
    try:
        yield
    except PySparkException as error:
        raise explained(error, name) from error


def stop_after_batch(query: StreamingQuery) -> None:
    """Stop the query when the batch it is in is done; a later batch may be cut off, which is
    safe."""
    before = _finished(query)
    while query.isActive and query.status["isTriggerActive"] and _finished(query) == before:
        time.sleep(POLL)  # Spark tells of a finished batch only when asked
    query.stop()


def _finished(query: StreamingQuery) -> tuple[int, int]:
    """Return the last batch told of and its rows: a query at rest tells of its next one, with 0."""
    progress = query.lastProgress
    return (progress.batchId, progress.numInputRows) if progress else (-1, 0)


def processing_time(text: str) -> Trigger:
    """Return the trigger for a length such as `30s`."""
    return {"processingTime": f"{int(duration(text).total_seconds())} seconds"}


def summary(pipeline: Pipeline, rows: Sequence[BatchRow], seconds: float) -> dict[str, Any]:
    """Return a run's totals: feature batches committed, clean's counts, keys changed over all
    refreshes."""
    there = pipeline.lake.gold_state(pipeline.definition.views[0])
    cleaned = [row.counts for row in rows if row.query == "clean"]
    names = ("events", "accepted", "quarantined", "duplicates")
    return {
        "batches": len({row.batch for row in rows if row.query == "feature"}),
        **{name: sum(counts[name] for counts in cleaned) for name in names},
        "keys_changed": sum(row.counts.get("keys_changed", 0) for row in rows),
        "as_of": there.as_of and iso(there.as_of),
        "gold_version": there.version,
        "seconds": round(seconds, 3),
    }
