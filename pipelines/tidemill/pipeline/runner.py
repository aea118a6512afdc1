"""Running a pipeline's queries from the main thread: once in order, or together until stopped.

The main thread starts and watches the queries, ticks the wall clock, records what the batches did,
tells the observers and ends everything between two batches when asked to.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from types import FrameType

from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from tidemill.errors import InputError, QueryError
from tidemill.features.windows import duration
from tidemill.lake.batches import BatchRow, Versions
from tidemill.lake.commits import ledger
from tidemill.pipeline import batch_log
from tidemill.pipeline.failures import explained
from tidemill.pipeline.observer import Observer
from tidemill.pipeline.queries import ONCE, Pipeline, Trigger
from tidemill.pipeline.totals import Totals

POLL = 0.25
RECORD_EVERY = 60.0


@dataclass
class Stop:
    """A request to stop: set by SIGINT or SIGTERM, obeyed between batches; a second SIGINT ends at
    once."""

    asked: threading.Event = field(default_factory=threading.Event)

    def __bool__(self) -> bool:
        """Return whether to stop."""
        return self.asked.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait, at most so long, and return whether to stop."""
        return self.asked.wait(seconds)

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
        self.asked.set()


@dataclass
class Recorder:
    """Tells observers of batches as they are committed, and records them, at most once a minute.

    Nothing is kept of a batch that is recorded but what the totals say.
    """

    pipeline: Pipeline
    observers: Sequence[Observer] = ()
    totals: Totals = field(default_factory=Totals)
    versions: Versions = field(init=False)
    _pending: list[BatchRow] = field(default_factory=list)
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
            batches[-1:] != self._progress[-1:] or not _is_busy(queries)
        ):
            self._progress = batches
            self.catch_up()
        if time.monotonic() - self._recorded >= RECORD_EVERY:
            self.record()

    def catch_up(self) -> None:
        """Tell of every commit that has not been told."""
        rows = batch_log.since(self.pipeline.lake, self.versions)
        self.versions = batch_log.seen(self.pipeline.lake, rows, self.versions)
        self._pending += rows
        if rows:
            self.totals.add(rows)
            for observer in self.observers:
                observer.on_batch(rows)

    def record(self) -> None:
        """Tell of every commit, also one that no query made, and bring `tidemill_batches` up to
        it."""
        self.catch_up()
        batch_log.append(self.pipeline.lake, self._pending, self.versions)
        self._pending, self._recorded = [], time.monotonic()


def run_once(
    pipeline: Pipeline, stop: Stop, observers: Sequence[Observer] = (), totals: Totals | None = None
) -> Totals:
    """Bring everything that is there through the queries, in order; return what was done, added
    to `totals` where given."""
    pipeline.claim()
    recorder = Recorder(pipeline, observers, totals or Totals())
    for name in pipeline.queries:
        if stop:
            break
        if pipeline.fills_gold(name):
            fill(name, pipeline, stop, recorder)
        else:
            finish(name, pipeline, stop, recorder)
    if not stop:
        pipeline.refresh()
    recorder.record()
    return recorder.totals


def fill(name: str, pipeline: Pipeline, stop: Stop, recorder: Recorder) -> None:
    """Run the query that fills gold for the first time: nobody has read any of it yet, so it is
    refreshed once, in the last batch, or behind the one that a stop makes the last."""
    finish(name, replace(pipeline, refreshes="last batch"), stop, recorder)
    if stop:
        pipeline.refresh()


def finish(name: str, pipeline: Pipeline, stop: Stop, recorder: Recorder) -> None:
    """Run one query over everything that is there, telling of its batches; one that has nothing to
    read is not started."""
    if pipeline.has_nothing_to_read(name):
        return
    with _explained(name):
        query = pipeline.start(name, ONCE)
        try:
            while not query.awaitTermination(POLL):  # type: ignore[arg-type]
                recorder.look([query])
                pipeline.watch(name, query)
                if stop:
                    stop_after_batch(query)
        except QueryError:
            stop_after_batch(query)
            raise
    recorder.catch_up()


def run(
    pipeline: Pipeline, stop: Stop, observers: Sequence[Observer] = (), totals: Totals | None = None
) -> Totals:
    """Run the queries together until stopped, or until an observer has enough; return what was
    done, added to `totals` where given."""
    declared = dict(pipeline.definition.triggers)
    triggers = {
        query.checkpoint: processing_time(declared.get(query.name, query.trigger))
        for query in pipeline.graph
    }
    pipeline.claim()
    recorder = Recorder(pipeline, observers, totals or Totals())
    for observer in observers:
        observer.on_start(pipeline)
    running: dict[str, StreamingQuery] = {}
    ticked, checked = None, datetime.now(timezone.utc)
    try:
        for name in queries_to_fill(pipeline):
            if not stop:
                finish(name, pipeline, stop, recorder)
        while not stop.wait(POLL) and not any(o.has_enough for o in observers):
            _start_ready(pipeline, triggers, running)
            _watch_over(pipeline, running)
            if pipeline.clock.minute_end() != ticked:
                ticked = pipeline.clock.minute_end()
                checked = _check_source(pipeline, checked)
                if pipeline.follows == "wall" and not pipeline.states:
                    tick(pipeline)
            recorder.look(list(running.values()))
            for observer in observers:
                observer.on_idle(pipeline, _is_busy(running.values()))
    finally:
        for query in running.values():
            stop_after_batch(query)
        for observer in observers:
            observer.on_stop()
    recorder.record()
    return recorder.totals


def queries_to_fill(pipeline: Pipeline) -> list[str]:
    """Return the queries, in their order, that bring up to date what no batch has filled yet of the
    dimensions that events take columns of: events that are cleaned before would have nulls.

    They take all that their sources have at the time; one that has nothing is waited for no longer.
    """
    lake, wanted = pipeline.lake, {one.dimension for one in pipeline.definition.enrich}
    empty = {
        name
        for name in wanted
        if ledger.newest_append(lake, lake.tables.dimensions[name].rows.name, lake.generation)
        is None
    }
    return [query.checkpoint for query in pipeline.graph if query.dimension in empty]


def _is_busy(queries: Iterable[StreamingQuery]) -> bool:
    return any(query.status["isTriggerActive"] for query in queries)


def _start_ready(
    pipeline: Pipeline, triggers: dict[str, Trigger], running: dict[str, StreamingQuery]
) -> None:
    """Start what is not running yet and has something to read by now: its first batch would be an
    empty one, as dear as one of some rows."""
    for query in pipeline.graph:
        name = query.checkpoint
        if name not in running and pipeline.has_begun(name):
            with _explained(name):
                running[name] = pipeline.start(name, triggers[name])


def _check_source(pipeline: Pipeline, since: datetime) -> datetime:
    """Fail for a wrong file that came after a time and that Spark reads as nothing (0 bytes);
    return the time of this look."""
    now = datetime.now(timezone.utc)
    try:
        for source in (pipeline.source, *pipeline.feeds.values()):
            source.check_new(since)
    except InputError as error:
        raise QueryError(error.message, where=error.where, expected=error.expected) from error
    return now


def tick(pipeline: Pipeline) -> None:
    """Refresh each view whose ledger is older than the current minute."""
    lake, now = pipeline.lake, pipeline.clock.minute_end()
    for view in pipeline.definition.views:
        state = lake.gold_state(view)
        if state.as_of is None or state.as_of < now:
            pipeline.refresh()
            return


def _watch_over(pipeline: Pipeline, running: dict[str, StreamingQuery]) -> None:
    for name, query in running.items():
        if query.isActive:
            pipeline.watch(name, query)
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
