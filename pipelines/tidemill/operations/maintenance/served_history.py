"""The step `history`: what gold answered since the last time, into the view's history."""

from __future__ import annotations

from collections.abc import Iterator

from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.operations.maintenance.step import Step, many
from tidemill.pipeline.gold import history_feed


def history(lake: Lake, view: FeatureView) -> Iterator[Step]:
    """Yield the step that brings the view's history up to gold, where the pipeline keeps one;
    before gold's old files are removed, which it reads."""
    if lake.pipeline.served_history is None:
        return
    tables = lake.tables.of(view)
    new = lake.commits(tables.gold.name, 1)[0].version - history_feed.fed(lake, view)
    if new <= 0:
        return

    def run() -> str:
        return f"{many(history_feed.feed(lake, view), 'row')} appended"

    yield Step(tables.history.name, "history", f"{many(new, 'version')} of gold to keep", run)
