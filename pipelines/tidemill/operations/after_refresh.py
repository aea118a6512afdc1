"""What follows gold: alerts, the sink, and the history of what it answered; and the watch for times
without events.

    refresh ──commit──► gold ──told──► AfterRefresh ──┬─► <pipeline>_alerts
                                                      ├─► the topic of `sink`
                                                      └─► <view>_history

A refresh knows nothing of them. Each remembers in its own place up to which version of gold it has
come: what a run that died has left the next one does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidemill.config.settings import Clock
from tidemill.lake.batches import BatchRow
from tidemill.lake.catalog import Lake
from tidemill.pipeline.alerts.episodes import Changed, Episodes
from tidemill.pipeline.alerts.silence import SilenceWatch
from tidemill.pipeline.gold import history_feed
from tidemill.pipeline.observer import Observer
from tidemill.pipeline.queries import Pipeline
from tidemill.pipeline.sinks import gold_topic


class AfterRefresh(Observer):
    """Brings what follows gold up to it: when a run starts, and as it tells of refreshes."""

    def __init__(
        self,
        lake: Lake,
        clock: Clock | None = None,
        on_alerts: Callable[[str, Changed], None] | None = None,
    ):
        """Follow the gold tables of this lake's pipeline; `on_alerts` hears how alerts changed,
        `clock` tells how long there are no events."""
        self._views = {view.name for view in lake.pipeline.views}
        alerts = Episodes(lake, on_alerts)
        self._silence = SilenceWatch(lake, clock or Clock(), on_alerts)
        self._followers: tuple[Callable[[], object], ...] = (
            alerts.look,
            self._silence.look,
            lambda: gold_topic.send_all(lake),
            lambda: history_feed.feed_all(lake),
        )

    def on_start(self, pipeline: Pipeline) -> None:
        """Follow what an earlier run has left."""
        self.follow()

    def on_batch(self, rows: Sequence[BatchRow]) -> None:
        """Follow what the commits to gold have changed."""
        if any(row.view in self._views for row in rows):
            self.follow()
        elif any(row.query == "clean" for row in rows):
            self._silence.look()

    def on_idle(self, pipeline: Pipeline, busy: bool) -> None:
        """Look when there have been no events for long enough."""
        if self._silence.is_due:
            self._silence.look()

    def follow(self) -> None:
        """Bring each up to gold; SourceError where the sink's brokers do not take it."""
        for follower in self._followers:
            follower()
