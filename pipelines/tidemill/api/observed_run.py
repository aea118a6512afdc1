"""A run of an open pipeline: an unfinished rebuild, then its queries, with those who are told."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

from tidemill.monitoring.alert_metrics import AlertMetrics
from tidemill.monitoring.profile.batch_profile import Profiles
from tidemill.monitoring.profile.kept_profiles import Keeper
from tidemill.monitoring.prometheus import Exporter
from tidemill.operations.after_refresh import AfterRefresh
from tidemill.operations.alert_sending import AlertSending
from tidemill.operations.rebuild import from_bronze
from tidemill.operations.schedule import MaintenanceSchedule
from tidemill.pipeline import runner
from tidemill.pipeline.observer import Callback, Observer, Tell
from tidemill.pipeline.queries import Pipeline


def run(
    pipeline: Pipeline,
    tell: Tell,
    *,
    once: bool,
    metrics_port: int | None = None,
    metrics_host: str = "127.0.0.1",
    profile: bool = False,
) -> dict[str, Any]:
    """Run the pipeline, once over everything that is there or until it is stopped; return the
    totals. Metrics are served where there is a port; with `profile` the totals say where the time
    of each batch went, and the lake keeps it."""
    started, stop = time.monotonic(), runner.Stop()
    name = pipeline.definition.pipeline
    exporter = Exporter(name, pipeline.clock, metrics_port, metrics_host)
    observers: list[Observer] = [exporter, Callback(tell)]
    profiles = Profiles()
    keeper = Keeper(profiles)
    if profile:
        observers.append(keeper)
    alerts = AlertMetrics(exporter)
    following = AfterRefresh(pipeline.lake, pipeline.clock, alerts.changed)
    sending = AlertSending(pipeline.lake, alerts)
    observers += [following, sending]
    with exporter.serving(), stop.on_signals(), exporter.following(pipeline):
        with ExitStack() as looking:
            if profile:
                looking.enter_context(profiles.of(pipeline))
            totals = from_bronze.finished(pipeline, stop, observers)
            if once:
                runner.run_once(pipeline, stop, observers, totals)
            else:
                runner.run(pipeline, stop, [*observers, MaintenanceSchedule(tell)], totals)
        following.follow()
        sending.finish()
        keeper.keep(pipeline)
        summary = totals.summary(pipeline, time.monotonic() - started)
        return {**summary, "profile": profiles.told()} if profile else summary
