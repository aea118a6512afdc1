"""What a running pipeline tells Prometheus: the same batches that `tidemill_batches` keeps.

    main thread: BatchRow ─on_batch─┐
                 backlog ──on_idle──┼─► registry ──► http://HOST:PORT/metrics
    Spark: progress ───► following ┘

Counters begin at 0 with each process. The listener only reads what an event says, so it also works
on Spark Connect, where it runs in the client.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from tidemill.errors import UsageError
from tidemill.lake import batches
from tidemill.lake.batches import BatchRow
from tidemill.pipeline.observer import Observer
from tidemill.pipeline.silver import lateness
from tidemill.pipeline.silver.validation import changed_fields

if TYPE_CHECKING:
    from tidemill.config.settings import Clock
    from tidemill.pipeline.queries import Pipeline

LOOK_EVERY = 15.0  # seconds between two looks at the backlog
STEPS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)  # seconds
LATENESS = "tidemill_event_lateness_seconds"
STEP = "tidemill_step_seconds"
# name: (what it says, its labels beside pipeline)
COUNTERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "tidemill_batches_total": ("Batches committed", ("query", "view")),
    "tidemill_events_total": ("Records or events that a query took in", ("query", "view")),
    "tidemill_accepted_events_total": ("Events that clean wrote", ()),
    "tidemill_duplicate_events_total": ("Events accepted before", ()),
    "tidemill_refused_records_total": ("Records that clean refused", ()),
    "tidemill_refusals_total": ("Rules broken; a record may break several", ("reason",)),
    "tidemill_unmatched_events_total": ("Events without a row in it", ("dimension",)),
    "tidemill_buckets_total": ("Bucket rows appended", ("view",)),
    "tidemill_changed_keys_total": ("Rows of gold whose values changed", ("view",)),
    "tidemill_merged_rows_total": ("Rows of gold, by what the MERGE did", ("view", "action")),
    "tidemill_wrong_keys_total": ("Keys that the daily check found wrong", ("view", "against")),
    "tidemill_alerts_total": ("Alerts that fired or were resolved", ("view", "alert", "state")),
    "tidemill_alerts_sent_total": ("Alerts that a sink took", ("sink",)),
    "tidemill_alerts_refused_total": ("Alerts that a sink will never take", ("sink",)),
    "tidemill_stream_input_rows_total": ("Events that an input took", ("query", "input")),
    "tidemill_stream_rows_total": ("Rows that a stream gave", ("query",)),
    "tidemill_late_rows_dropped_total": ("Events older than the watermark", ("query",)),
    "tidemill_query_failures_total": ("Queries that ended with an error", ("query",)),
}
GAUGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "tidemill_as_of_timestamp_seconds": ("The end of gold's windows", ("view",)),
    "tidemill_freshness_seconds": ("Now minus as_of", ("view",)),
    "tidemill_last_commit_timestamp_seconds": ("The newest commit", ("query", "view")),
    "tidemill_backlog_rows": ("Rows that wait for the query", ("query",)),
    "tidemill_overflowed_values": ("Features null as a window holds too much", ("view",)),
    "tidemill_publish_lag_seconds": (
        "Gold's as_of minus the online store's; NaN while the store does not answer",
        ("view",),
    ),
    "tidemill_schema_fault_timestamp_seconds": (
        "The newest batch that refused records for a field: its type, or that it is gone",
        ("query", "view", "field", "fault", "expected"),
    ),
    "tidemill_alert_sink_up": ("1 while the sink takes what it is sent", ("sink",)),
    "tidemill_query_active": ("1 while the query runs", ("query",)),
    "tidemill_input_rows_per_second": ("Rows that arrive, by Spark's progress", ("query",)),
    "tidemill_processed_rows_per_second": ("Rows that go through", ("query",)),
    "tidemill_source_behind_seconds": ("How far a Kinesis stream is read behind", ("query",)),
    "tidemill_source_behind_records": ("How far a partition is read behind, at most", ("query",)),
    "tidemill_watermark_timestamp_seconds": ("Older events are dropped", ("query", "input")),
    "tidemill_stream_hit_ratio": (
        "Pairs for each event of the first input; duplicates for each event",
        ("query",),
    ),
    "tidemill_state_rows": ("Rows that the state of a stream holds", ("query",)),
    "tidemill_state_bytes": ("What they take, in memory and in RocksDB's files", ("query",)),
    "tidemill_state_limit_ratio": ("Rows of the state for each of max_state_rows", ("query",)),
    "tidemill_trigger_seconds": ("How long the last trigger took", ("query",)),
}
_OF_CLEAN = {
    "accepted": "tidemill_accepted_events_total",
    "duplicates": "tidemill_duplicate_events_total",
    "quarantined": "tidemill_refused_records_total",
}
_OF_VIEW = {
    "buckets": "tidemill_buckets_total",
    "keys_changed": "tidemill_changed_keys_total",
}

_DRIFT = {"buckets": "drift", "events": "events_drift"}  # what gold's ledger calls it


class Exporter(Observer):
    """Holds a pipeline's metrics, and serves them when it has a port."""

    def __init__(
        self, pipeline: str, clock: Clock, port: int | None = None, host: str = "127.0.0.1"
    ):
        """Make every metric; nothing is served yet."""
        self.pipeline, self.clock = pipeline, clock
        self.port, self.host = port, host
        self.registry = CollectorRegistry()
        self._counters = self._made(Counter, COUNTERS)
        self._gauges = self._made(Gauge, GAUGES)
        labels, what = ("pipeline", "query", "view", "step"), "Seconds of a batch by step"
        self._steps = Histogram(STEP, what, labels, buckets=STEPS, registry=self.registry)
        self._late = Lateness(pipeline)
        self.registry.register(self._late)
        self._looked = 0.0

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Answer on the port, UsageError where it is taken; without a port do nothing."""
        if self.port is None:
            yield
            return
        try:
            server, thread = start_http_server(self.port, self.host, self.registry)
        except OSError as error:
            raise _cannot_listen(self.port, self.host, error) from error
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    @contextmanager
    def following(self, pipeline: Pipeline) -> Iterator[None]:
        """Begin with where the pipeline stands, and listen to its queries' progress."""
        if self.port is None:
            yield
            return
        from tidemill.monitoring.query_listener import Progress

        for view in pipeline.definition.views:
            if as_of := pipeline.lake.gold_state(view).as_of:
                self._stands(view.name, as_of)
        self.on_idle(pipeline, busy=False)
        declared = {
            q.checkpoint: pipeline.definition.stream(q.stream) for q in pipeline.graph if q.stream
        }
        listener, streams = Progress(self, declared), pipeline.lake.spark.streams
        streams.addListener(listener)
        try:
            yield
        finally:
            streams.removeListener(listener)

    def count(self, name: str, by: float, **labels: str) -> None:
        """Add to a counter."""
        self._counters[name].labels(pipeline=self.pipeline, **labels).inc(by)

    def gauge(self, name: str, **labels: str) -> Any:
        """Return a gauge, to be set."""
        return self._gauges[name].labels(pipeline=self.pipeline, **labels)

    def on_batch(self, rows: Sequence[BatchRow]) -> None:
        """Take in what batches did."""
        for row in rows:
            self._batch(row)
            self._faults(row)
            if row.query == "clean":
                self._clean(row)
            if row.view:
                self._view(row, row.view)

    def on_idle(self, pipeline: Pipeline, busy: bool) -> None:
        """Read the backlog, and where the online store stands, at most every 15 seconds."""
        if self.port is None or time.monotonic() - self._looked < LOOK_EVERY:
            return
        from tidemill.pipeline import batch_log, publication

        flow = batch_log.flow(pipeline.lake)
        for query in pipeline.graph:
            if not query.is_fed and not query.per_view:
                waiting = batches.waiting(flow, query)
                self.gauge("tidemill_backlog_rows", query=query.checkpoint).set(waiting)
        for view, behind in publication.lags(pipeline.lake).items():
            self.gauge("tidemill_publish_lag_seconds", view=view).set(behind)
        self._looked = time.monotonic()

    def _batch(self, row: BatchRow) -> None:
        who = {"query": row.query, "view": row.view or ""}
        self.count("tidemill_batches_total", 1, **who)
        self.count("tidemill_events_total", row.counts.get("events", 0), **who)
        committed = self.gauge("tidemill_last_commit_timestamp_seconds", **who)
        committed.set(row.committed_at.timestamp())
        for step, seconds in row.seconds.items():
            self._steps.labels(pipeline=self.pipeline, step=step, **who).observe(seconds)

    def _faults(self, row: BatchRow) -> None:
        for fault, name, expected, _ in changed_fields.faults(row.refused, row.expected):
            whose = {"query": row.query, "view": row.view or ""}
            what = {"field": name, "fault": fault, "expected": expected}
            newest = self.gauge("tidemill_schema_fault_timestamp_seconds", **whose, **what)
            newest.set(row.committed_at.timestamp())

    def _clean(self, row: BatchRow) -> None:
        for name, metric in _OF_CLEAN.items():
            self.count(metric, row.counts.get(name, 0))
        for reason, refused in row.refused.items():
            self.count("tidemill_refusals_total", refused, reason=reason)
        for dimension, unmatched in row.unmatched.items():
            self.count("tidemill_unmatched_events_total", unmatched, dimension=dimension)
        self._late.add(row)

    def _view(self, row: BatchRow, view: str) -> None:
        for action, merged in row.merged.items():
            self.count("tidemill_merged_rows_total", merged, view=view, action=action)
        if row.as_of is None:  # of a dimension or a stream, which has no features
            return
        for name, metric in _OF_VIEW.items():
            self.count(metric, row.counts.get(name, 0), view=view)
        self.gauge("tidemill_overflowed_values", view=view).set(sum(row.overflowed.values()))
        fields = json.loads(row.ledger or "{}")
        for against, name in _DRIFT.items():
            wrong = fields.get(name, 0)
            self.count("tidemill_wrong_keys_total", wrong, view=view, against=against)
        self._stands(view, row.as_of)

    def _made(
        self, kind: Callable[..., Any], definitions: Mapping[str, tuple[str, tuple[str, ...]]]
    ) -> dict[str, Any]:
        return {
            name: kind(name, what, ("pipeline", *labels), registry=self.registry)
            for name, (what, labels) in definitions.items()
        }

    def _stands(self, view: str, as_of: datetime) -> None:
        self.gauge("tidemill_as_of_timestamp_seconds", view=view).set(as_of.timestamp())
        fresh = self.gauge("tidemill_freshness_seconds", view=view)
        fresh.set_function(lambda: (self.clock.now() - as_of).total_seconds())


def check_port(port: int | None, host: str) -> None:
    """Raise UsageError for a port on which nothing can listen; accept None, which is no port."""
    if port is None:
        return
    try:
        socket.create_server((host, port), family=_family(host)).close()
    except OSError as error:
        raise _cannot_listen(port, host, error) from error


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _cannot_listen(port: int, host: str, error: OSError) -> UsageError:
    return UsageError(
        f"cannot listen on {host}:{port}: {error.strerror}",
        where="--metrics-port",
        expected="a port that no other process has, on an address of this machine",
    )


class Lateness(Collector):
    """A histogram whose buckets come counted: the classes of `lateness`."""

    def __init__(self, pipeline: str):
        """Begin with no event."""
        self._pipeline = pipeline
        self._classes = lateness.together([])
        self._seconds = 0

    def add(self, row: BatchRow) -> None:
        """Take in a batch of clean."""
        self._classes = lateness.together([self._classes, row.late])
        self._seconds += row.late_seconds or 0

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """Yield the histogram, its buckets cumulative."""
        so_far, buckets = 0, []
        for name, events in self._classes.items():
            so_far += events
            buckets.append(("+Inf" if name == lateness.BEYOND else f"{name}.0", float(so_far)))
        what = "Seconds from event time to arrival, of accepted events"
        histogram = HistogramMetricFamily(LATENESS, what, labels=["pipeline"])
        histogram.add_metric([self._pipeline], buckets, float(self._seconds))
        yield histogram
