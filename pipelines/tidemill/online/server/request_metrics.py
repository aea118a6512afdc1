"""What the server tells Prometheus: requests, server time, keys, the age of each view."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

STEPS = (0.0002, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.009, 0.02, 0.05, 0.1, 0.5, 2.0)  # seconds
ROUTES = frozenset({"/v1/features", "/health", "/ready", "/metrics", "/openapi.json"})
ONE_VIEW = "/v1/features/"


class RequestMetrics:
    """The metrics of one server; no label holds what a request brought."""

    def __init__(self) -> None:
        """Make every metric."""
        self.registry = made = CollectorRegistry()
        self._requests = Counter(
            "tidemill_serve_requests_total", "Requests", ("route", "status"), registry=made
        )
        self._seconds = Histogram(
            "tidemill_serve_seconds",
            "Seconds from the head of a request to that of its answer",
            ("route",),
            buckets=STEPS,
            registry=made,
        )
        self._store = Histogram(
            "tidemill_serve_store_seconds",
            "Seconds of a read of the online store",
            buckets=STEPS,
            registry=made,
        )
        self._keys = Counter(
            "tidemill_serve_keys_total", "Keys answered", ("view", "found"), registry=made
        )
        self._age = Gauge(
            "tidemill_serve_age_seconds", "Now minus the as_of of a view", ("view",), registry=made
        )
        self._dropped = Counter(
            "tidemill_serve_log_dropped_total", "Answers that the response log lost", registry=made
        )
        self._counted: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self._of_view: dict[str, tuple[Counter, Counter]] = {}

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count a request; one whose client went away has no status."""
        route = path if path in ROUTES else _other(path)
        pair = self._counted.get((route, status))
        if pair is None:
            requests = self._requests.labels(route=route, status=str(status or "none"))
            pair = self._counted[route, status] = (requests, self._seconds.labels(route=route))
        pair[0].inc()
        pair[1].observe(seconds)

    def read(self, seconds: float) -> None:
        """Take in a read of the store."""
        self._store.observe(seconds)

    def keys(self, view: str, found: int, unknown: int) -> None:
        """Count the keys of an answer."""
        pair = self._of_view.get(view)
        if pair is None:
            true, false = (self._keys.labels(view=view, found=word) for word in ("true", "false"))
            pair = self._of_view[view] = (true, false)
        pair[0].inc(found)
        pair[1].inc(unknown)

    def follow_age(self, view: str, age: Callable[[], float]) -> None:
        """Have the age of a view asked for whenever somebody scrapes."""
        self._age.labels(view=view).set_function(age)

    def dropped(self) -> None:
        """Count a line that the response log had no room for."""
        self._dropped.inc()

    def text(self) -> bytes:
        """Return the page that Prometheus reads."""
        return generate_latest(self.registry)


def _other(path: str) -> str:
    return ONE_VIEW + "{view}" if path.startswith(ONE_VIEW) else "other"
