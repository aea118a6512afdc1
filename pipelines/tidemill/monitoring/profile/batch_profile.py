"""Which batch a look at a thread belongs to, and what a batch's looks come to.

    Sample, Sample ... ──────────────┐
    Spark's progress: batch, when ───┴─► BatchProfile: seconds by stack and by part

Spark says when a batch began and how long it took; the looks within that time share it, each for as
long as it was the newest. What lies before, between and after a query's batches is a profile
without a batch.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from tidemill.config.settings import iso, parse_time
from tidemill.errors import UsageError
from tidemill.monitoring.profile.flame import BETWEEN
from tidemill.monitoring.profile.stack_parts import PYTHON, part_of
from tidemill.monitoring.profile.stack_sampler import EVERY, Sample, sampling

if TYPE_CHECKING:
    from tidemill.pipeline.queries import Pipeline

LONGEST = 0.5  # seconds that one look outside a batch may stand for
NEWEST = 500  # profiles that a run tells of at its end
END_WITHIN = 5.0  # seconds for Spark to tell of the last batches


@dataclass(frozen=True)
class BatchProfile:
    """A batch of a query, or with `batch` None the time around its batches: when it began, its
    seconds, the looks that tell of them, and the seconds of each stack, outermost name first, with
    the part that it is counted to."""

    query: str
    batch: int | None
    started_at: datetime
    seconds: float
    looks: int
    stacks: Mapping[tuple[tuple[str, ...], str], float]

    @property
    def parts(self) -> dict[str, float]:
        """The seconds of each part, one of `stack_parts.PARTS`, that has any."""
        sums: dict[str, float] = {}
        for (_, part), seconds in self.stacks.items():
            sums[part] = sums.get(part, 0.0) + seconds
        return sums

    @property
    def by_stack(self) -> dict[str, float]:
        """The seconds of each stack, its names between semicolons."""
        sums: dict[str, float] = {}
        for (stack, _), seconds in self.stacks.items():
            name = BETWEEN.join(stack)
            sums[name] = round(sums.get(name, 0.0) + seconds, 3)
        return sums


Stacks = dict[tuple[tuple[str, ...], str], float]


@dataclass
class _Running:
    """A run of a query: its looks that no batch has got yet, and what was around its batches."""

    query: str
    samples: list[Sample] = field(default_factory=list)
    stacks: Stacks = field(default_factory=dict)
    looks: int = 0
    began: float | None = None

    def before(self, first: float) -> None:
        """Put the looks before a time to those around batches, as sums: a run may last for
        days."""
        earlier = [sample for sample in self.samples if sample.at < first]
        self.samples = self.samples[len(earlier) :]
        if earlier:
            self.began = self.began if self.began is not None else earlier[0].at
            self.looks += len(earlier)
            _add(self.stacks, earlier, 1.0)


@dataclass
class Profiles:
    """The profiles of a run's batches: those that nobody took yet, and the newest ones."""

    newest: deque[BatchProfile] = field(default_factory=lambda: deque(maxlen=NEWEST))
    _fresh: list[BatchProfile] = field(default_factory=list)
    _running: dict[str, _Running] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def of(self, pipeline: Pipeline) -> Iterator[None]:
        """Look at the pipeline's queries while the block runs; UsageError on Spark Connect."""
        from pyspark.sql.utils import is_remote

        if is_remote():
            raise UsageError(
                "a profile looks at the threads of Spark's driver, which Spark Connect hides",
                where="--profile",
                expected="a classic session, or no --profile",
            )
        own = f"{pipeline.definition.pipeline}_"
        step_of = {f"{own}{query.checkpoint}": query.step for query in pipeline.graph}
        spark, listener = pipeline.lake.spark, _Listener(self, own)
        spark.streams.addListener(listener)
        try:
            with sampling(spark, step_of, self.take):
                yield
                self._ended.wait(END_WITHIN if self._running else 0)
        finally:
            spark.streams.removeListener(listener)
            for run in list(self._running):
                self.ended(run)

    def told(self) -> list[dict[str, Any]]:
        """Return the newest profiles as `run --profile --json` prints them."""
        return [
            {
                "query": each.query,
                "batch": each.batch,
                "started_at": iso(each.started_at),
                "seconds": round(each.seconds, 3),
                "parts": {part: round(seconds, 3) for part, seconds in sorted(each.parts.items())},
                "stacks": each.by_stack,
            }
            for each in self.newest
        ]

    def fresh(self) -> list[BatchProfile]:
        """Return the profiles that came since the last call, in the order in which they ended."""
        with self._lock:
            fresh, self._fresh = self._fresh, []
        return fresh

    def take(self, sample: Sample) -> None:
        """Take in a look; one at a query of which Spark told nothing is forgotten."""
        with self._lock:
            if sample.run in self._running:
                self._running[sample.run].samples.append(sample)

    def started(self, run: str, query: str) -> None:
        """Take in that a query runs."""
        with self._lock:
            self._running[run] = _Running(query)
            self._ended.clear()

    def progressed(self, run: str, batch: int, started: datetime, seconds: float) -> None:
        """Take in that a batch is done."""
        first = started.timestamp()
        with self._lock:
            running = self._running.get(run)
            if running is None:
                return
            running.before(first)
            within = [sample for sample in running.samples if sample.at < first + seconds]
            running.samples = running.samples[len(within) :]
            stacks: Stacks = {}
            if within:
                _add(stacks, within, seconds / sum(_gaps(within)))
            self._done(BatchProfile(running.query, batch, started, seconds, len(within), stacks))

    def ended(self, run: str) -> None:
        """Take in that a query has ended: its other looks were around its batches."""
        with self._lock:
            running = self._running.pop(run, None)
            if running is not None:
                running.before(float("inf"))
                if running.began is not None:
                    began = datetime.fromtimestamp(running.began, timezone.utc)
                    seconds = sum(running.stacks.values())
                    looks, stacks = running.looks, running.stacks
                    self._done(BatchProfile(running.query, None, began, seconds, looks, stacks))
            if not self._running:
                self._ended.set()

    def _done(self, profile: BatchProfile) -> None:
        self.newest.append(profile)
        self._fresh.append(profile)


class _Listener(StreamingQueryListener):
    """Tells `Profiles` of the queries whose names begin as those of its pipeline."""

    def __init__(self, profiles: Profiles, own: str):
        self._profiles, self._own = profiles, own

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Hear that a query runs."""
        if event.name and event.name.startswith(self._own):
            self._profiles.started(str(event.runId), event.name.removeprefix(self._own))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Hear of a trigger; one without a batch is passed over."""
        progress = event.progress
        if "addBatch" in progress.durationMs:
            at = parse_time(progress.timestamp, zone=timezone.utc)
            seconds = progress.durationMs["triggerExecution"] / 1000
            self._profiles.progressed(str(progress.runId), progress.batchId, at, seconds)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Hear that a query ended."""
        self._profiles.ended(str(event.runId))


def _add(stacks: Stacks, samples: Sequence[Sample], share: float) -> None:
    """Add the looks to the seconds of their stacks, each by its own time and a share."""
    for sample, gap in zip(samples, _gaps(samples), strict=True):
        key = (_stack(sample), part_of(sample.parts))
        stacks[key] = stacks.get(key, 0.0) + gap * share


def _gaps(samples: Sequence[Sample]) -> list[float]:
    """Return for how long each look was the newest one."""
    between = [later.at - earlier.at for earlier, later in pairwise(samples)]
    return [min(max(gap, 0.001), LONGEST) for gap in (*between, EVERY)]


def _stack(sample: Sample) -> tuple[str, ...]:
    """Return functions and parts as one stack: Tidemill's functions stand where the JVM calls
    Python."""
    parts = list(sample.parts)
    if sample.functions and PYTHON in parts:
        where = parts.index(PYTHON)
        return (*parts[:where], *sample.functions, *parts[where + 1 :])
    return (*parts, *(sample.functions if not parts else ()))
