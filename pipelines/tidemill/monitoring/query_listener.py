"""What Spark tells of a pipeline's queries between two batches: rates, seconds, starts and ends.

It runs in a thread of the process that added it, the client's on Spark Connect, and reads nothing
but the events.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from tidemill.config.stream_operators.stream import Stream
from tidemill.pipeline.streams.stream_progress import StreamProgress

_RATES = {
    "tidemill_input_rows_per_second": "inputRowsPerSecond",
    "tidemill_processed_rows_per_second": "processedRowsPerSecond",
}


# What sources say of how far they are behind: a metric, its unit, and the gauge. `kinesis_py` says
# it as its newest offset, Databricks' kinesis and Spark's Kafka among their metrics.
_BEHIND = (
    ("millisBehindLatest", 1000, "tidemill_source_behind_seconds"),
    ("maxMsBehindLatest", 1000, "tidemill_source_behind_seconds"),
    ("maxOffsetsBehindLatest", 1, "tidemill_source_behind_records"),
)


class Metrics(Protocol):
    """What holds the metrics of one pipeline: an exporter."""

    @property
    def pipeline(self) -> str:
        """The pipeline's name."""

    def gauge(self, name: str, **labels: str) -> Any:
        """Return a gauge by its name and labels."""

    def count(self, name: str, by: float, **labels: str) -> None:
        """Add to a counter."""


class Progress(StreamingQueryListener):
    """Sets the gauges of a pipeline's queries; other queries are ignored."""

    def __init__(self, exporter: Metrics, streams: Mapping[str, Stream] | None = None):
        """Report to this exporter; `streams` are the pipeline's, by the names of their queries."""
        self._exporter, self._streams = exporter, streams or {}
        self._taken: Counter[tuple[str, str]] = Counter()  # rows in and hits of this process
        self._watermarks: dict[tuple[str, str], float] = {}  # by query and input
        self._names: dict[str, str] = {}  # by the run's id, which is all that an end tells
        self._behind: dict[str, set[str]] = {}  # the gauges that a query's source has set

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Note that a query runs."""
        own = f"{self._exporter.pipeline}_"
        if event.name and event.name.startswith(own):
            name = self._names[str(event.runId)] = event.name.removeprefix(own)
            self._exporter.gauge("tidemill_query_active", query=name).set(1)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Take in a trigger: what came, what went through, how long it took."""
        progress = event.progress
        name = self._names.get(str(progress.runId))
        if name is None:
            return
        for metric, field in _RATES.items():
            rate = getattr(progress, field)
            self._exporter.gauge(metric, query=name).set(rate if rate == rate else 0)  # not a NaN
        seconds = progress.durationMs.get("triggerExecution", 0) / 1000
        self._exporter.gauge("tidemill_trigger_seconds", query=name).set(seconds)

        if name in self._streams:
            self._stream(name, self._streams[name], StreamProgress.of(progress))
        for source in progress.sources:
            for metric, behind in how_far_behind(source):
                self._behind.setdefault(name, set()).add(metric)
                self._exporter.gauge(metric, query=name).set(behind)

    def _stream(self, name: str, stream: Stream, progress: StreamProgress | None) -> None:
        """Take in a batch of a stream; an input without events leaves its watermark as it was."""
        if progress is None:
            return
        gauge, count = self._exporter.gauge, self._exporter.count
        gauge("tidemill_state_rows", query=name).set(progress.state_rows)
        gauge("tidemill_state_bytes", query=name).set(progress.state_bytes)
        if stream.max_state_rows:
            used = progress.state_rows / stream.max_state_rows
            gauge("tidemill_state_limit_ratio", query=name).set(used)
        count("tidemill_late_rows_dropped_total", progress.dropped, query=name)
        count("tidemill_stream_rows_total", progress.rows, query=name)
        for of, taken in progress.inputs.items():
            count("tidemill_stream_input_rows_total", taken.rows, query=name, input=of)
            if taken.watermark is not None:
                newest = max(taken.watermark, self._watermarks.get((name, of), taken.watermark))
                self._watermarks[name, of] = newest
                gauge("tidemill_watermark_timestamp_seconds", query=name, input=of).set(newest)
        first = progress.inputs.get(next(iter(stream.inputs)))
        self._taken[name, "rows"] += first.rows if first else 0
        self._taken[name, "hits"] += progress.hits
        if rows := self._taken[name, "rows"]:
            gauge("tidemill_stream_hit_ratio", query=name).set(self._taken[name, "hits"] / rows)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Note that a trigger found nothing new, so that its source is not behind."""
        name = self._names.get(str(event.runId), "")
        for metric in self._behind.get(name, ()):
            self._exporter.gauge(metric, query=name).set(0)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Note that a query ended, and whether by an error."""
        name = self._names.pop(str(event.runId), None)
        if name is None:
            return
        self._exporter.gauge("tidemill_query_active", query=name).set(0)
        if event.exception:
            self._exporter.count("tidemill_query_failures_total", 1, query=name)


def how_far_behind(source: Any) -> Iterator[tuple[str, float]]:
    """Yield, of a source's progress, each gauge of how far it is behind what there is to read."""
    said: Mapping[str, Any] = {**_object(source.latestOffset), **(source.metrics or {})}
    for name, unit, metric in _BEHIND:
        if name in said:
            yield metric, float(said[name]) / unit


def _object(text: str | None) -> Mapping[str, Any]:
    """Return the object that a text is; an offset may be any other JSON."""
    try:
        said = json.loads(text or "null")
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
