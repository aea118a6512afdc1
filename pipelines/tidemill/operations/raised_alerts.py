"""What a run does with `alerts`: rules are looked at as the run tells of refreshes.

A refresh itself knows nothing of them. What a run that died has not looked at the next one does.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.lake.batches import BatchRow
from tidemill.lake.catalog import Lake
from tidemill.pipeline.alerts.episodes import Episodes
from tidemill.pipeline.observer import Observer
from tidemill.pipeline.queries import Pipeline


class RaisedAlerts(Observer):
    """Looks at the rules of a pipeline that has some; does nothing of another one."""

    def __init__(self, lake: Lake):
        """Look at the rules of this lake's pipeline."""
        self._views = {rule.view for rule in lake.pipeline.alerts}
        self._episodes = Episodes(lake)

    def on_start(self, pipeline: Pipeline) -> None:
        """Look at what an earlier run has left."""
        self.look()

    def on_batch(self, rows: Sequence[BatchRow]) -> None:
        """Look at what the commits to gold answer."""
        if any(row.view in self._views for row in rows):
            self.look()

    def look(self) -> None:
        """Look at what is new in gold."""
        self._episodes.look()
