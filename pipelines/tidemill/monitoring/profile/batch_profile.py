"""Which batch a look at a thread belongs to, and what a batch's looks come to.

    Sample, Sample ... ──────────────┐
    Spark's progress: batch, when ───┴─► BatchProfile: seconds by stack and by part

Spark says when a batch began and how long it took; the looks within that time share it, each for as
long as it was the newest. What lies before, between and after a query's batches is a profile
without a batch.
"""

from __future__ import annotations

import threading
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


@dataclass
class Profiles:
    """The profiles of a run's batches, in the order in which they ended."""

    done: list[BatchProfile] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)
    _samples: dict[str, list[Sample]] = field(default_factory=dict)
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
                self._ended.wait(END_WITHIN if self._names else 0)
        finally:
            spark.streams.removeListener(listener)
            for run in list(self._names):
                self.ended(run)

    def told(self) -> list[dict[str, Any]]:
        """Return the profiles as `run --profile --json` prints them."""
        return [
            {
                "query": each.query,
                "batch": each.batch,
                "started_at": iso(each.started_at),
                "seconds": round(each.seconds, 3),
                "parts": {part: round(seconds, 3) for part, seconds in sorted(each.parts.items())},
                "stacks": {BETWEEN.join(s): round(t, 3) for (s, _), t in each.stacks.items()},
            }
            for each in self.done
        ]

    def take(self, sample: Sample) -> None:
        """Take in a look."""
        with self._lock:
            self._samples.setdefault(sample.run, []).append(sample)

    def started(self, run: str, query: str) -> None:
        """Take in that a query runs."""
        with self._lock:
            self._names[run] = query
            self._ended.clear()

    def progressed(self, run: str, batch: int, started: datetime, seconds: float) -> None:
        """Take in that a batch is done."""
        first = started.timestamp()
        with self._lock:
            query, samples = self._names.get(run), self._samples.get(run, [])
            within = [each for each in samples if first <= each.at < first + seconds]
            self._samples[run] = [s for s in samples if not first <= s.at < first + seconds]
            if query is not None:
                self.done.append(_profile(query, batch, started, seconds, within))

    def ended(self, run: str) -> None:
        """Take in that a query has ended: its other looks were around its batches."""
        with self._lock:
            query, samples = self._names.pop(run, None), self._samples.pop(run, [])
            if query is not None and samples:
                started = datetime.fromtimestamp(samples[0].at, timezone.utc)
                seconds = sum(_gaps(samples))
                self.done.append(_profile(query, None, started, seconds, samples))
            if not self._names:
                self._ended.set()


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


def _profile(
    query: str, batch: int | None, started: datetime, seconds: float, samples: Sequence[Sample]
) -> BatchProfile:
    gaps = _gaps(samples)
    share = seconds / sum(gaps) if samples else 0.0
    stacks: dict[tuple[tuple[str, ...], str], float] = {}
    for sample, gap in zip(samples, gaps, strict=True):
        key = (_stack(sample), part_of(sample.parts))
        stacks[key] = stacks.get(key, 0.0) + gap * share
    return BatchProfile(query, batch, started, seconds, len(samples), stacks)


def _gaps(samples: Sequence[Sample]) -> list[float]:
    """Return for how long each look was the newest one."""
    if not samples:
        return []
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
