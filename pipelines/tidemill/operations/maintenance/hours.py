"""The step `hours`: the minute buckets that came since, added up by the hour."""

from __future__ import annotations

from collections.abc import Iterator

from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.operations.maintenance.step import Step, many
from tidemill.pipeline.silver import hour_buckets, minute_buckets


def hours(lake: Lake, view: FeatureView) -> Iterator[Step]:
    """Yield the step that brings the view's hours up to its buckets."""
    if not hour_buckets.useful(view):
        return
    buckets = minute_buckets.bucketed(lake, view)
    state = hour_buckets.hours_state(lake, view, buckets.commits)
    new = buckets.batch - state.batch
    if state.recompute_reason:
        reason = f"made again: {state.recompute_reason}"
    elif new:
        reason = f"the buckets of {many(new, 'batch', 'batches')} to add up"
    else:
        return

    def run() -> str:
        return f"{many(hour_buckets.bring_up(lake, view), 'row')} appended"

    yield Step(lake.tables.of(view).hours.name, "hours", reason, run)
