"""What Prometheus is told of alerts: how they change, and how their sinks do."""

from __future__ import annotations

from tidemill.monitoring.prometheus import Exporter
from tidemill.pipeline.alerts.episodes import Changed
from tidemill.pipeline.sinks.delivery import Delivered


class AlertMetrics:
    """Counts for an exporter; called from the threads of the sinks too."""

    def __init__(self, exporter: Exporter):
        """Hold the exporter."""
        self._exporter = exporter

    def changed(self, view: str, changes: Changed) -> None:
        """Count what a look at a view has found."""
        for (alert, state), number in changes.items():
            labels = {"view": view, "alert": alert, "state": state}
            self._exporter.count("tidemill_alerts_total", number, **labels)

    def sent(self, sink: str, delivered: Delivered) -> None:
        """Count what a sink took, and what it refused."""
        self._exporter.count("tidemill_alerts_sent_total", delivered.sent, sink=sink)
        self._exporter.count("tidemill_alerts_refused_total", delivered.refused, sink=sink)

    def works(self, sink: str, does: bool) -> None:
        """Say whether the sink's last try went well."""
        self._exporter.gauge("tidemill_alert_sink_up", sink=sink).set(int(does))
