"""What a run does with `served_history: refresh`: what gold answers is kept as the run tells of it.

    refresh ──commit──► gold ──told──► KeptAnswers ──history_feed.feed──► <view>_history

A refresh itself knows nothing of it. What a run that died has not fed the next one does: the
history knows up to which version of gold it tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidemill.lake.batches import BatchRow
from tidemill.lake.catalog import Lake
from tidemill.pipeline.gold import history_feed
from tidemill.pipeline.observer import Observer
from tidemill.pipeline.queries import Pipeline


@dataclass
class KeptAnswers(Observer):
    """Feeds the histories of a pipeline that keeps them by the refresh; nothing of another one."""

    lake: Lake

    def on_start(self, pipeline: Pipeline) -> None:
        """Feed what an earlier run has left."""
        feed(self.lake)

    def on_batch(self, rows: Sequence[BatchRow]) -> None:
        """Feed what the commits to gold answer."""
        views = {view.name for view in self.lake.pipeline.views}
        if any(row.view in views for row in rows):
            feed(self.lake)


def feed(lake: Lake) -> None:
    """Bring the history of each view up to its gold, where the pipeline keeps one by the refresh
    and gold was refreshed."""
    if lake.pipeline.served_history != "refresh":
        return
    for view in lake.pipeline.views:
        if lake.gold_state(view).as_of is not None:
            history_feed.feed(lake, view)
