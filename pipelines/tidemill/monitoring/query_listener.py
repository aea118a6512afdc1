"""What Spark tells of a pipeline's queries between two batches: rates, seconds, starts and ends.

It runs in a thread of the process that added it, the client's on Spark Connect, and reads nothing
but the events.
"""

from __future__ import annotations

from typing import Any, Protocol

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

_RATES = {
    "tidemill_input_rows_per_second": "inputRowsPerSecond",
    "tidemill_processed_rows_per_second": "processedRowsPerSecond",
}


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

    def __init__(self, exporter: Metrics):
        """Report to this exporter."""
        self._exporter = exporter
        self._names: dict[str, str] = {}  # by the run's id, which is all that an end tells

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

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Note that a query ended, and whether by an error."""
        name = self._names.pop(str(event.runId), None)
        if name is None:
            return
        self._exporter.gauge("tidemill_query_active", query=name).set(0)
        if event.exception:
            self._exporter.count("tidemill_query_failures_total", 1, query=name)
