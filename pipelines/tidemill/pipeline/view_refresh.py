"""A view's gold, or its arrivals, brought to what its buckets hold and to its clock.

As of when is decided here alone. By event time it is the end of the newest bucket; by the wall it
is the end of the last whole bucket of the clock, and never before what gold was brought to: a clock
that is set back makes no feature older.
"""

from __future__ import annotations

from datetime import datetime

from tidemill.config.settings import Clock
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.pipeline.gold import refresh as gold
from tidemill.pipeline.gold.refresh import Refreshed
from tidemill.pipeline.silver import minute_buckets
from tidemill.pipeline.stateful import state_input

WALL = "wall"


def end_of_windows(
    view: FeatureView, clock: Clock, follows: str, buckets: minute_buckets.Bucketed
) -> datetime | None:
    """Return the as_of of a refresh that comes now; None by event time before the first bucket."""
    if follows == WALL:
        return clock.end_of(view.bucket_length)
    return minute_buckets.event_as_of(buckets, view)


def refresh_view(
    lake: Lake,
    view_name: str,
    clock: Clock,
    follows: str,
    buckets: minute_buckets.Bucketed | None = None,
    force: str | None = None,
) -> Refreshed:
    """Bring a view's gold to the newest buckets and to the clock's as_of; by a recompute where
    `force` says why."""
    view = lake.pipeline.view(view_name)
    buckets = buckets or minute_buckets.bucketed(lake, view)
    spent = {"append": round(buckets.seconds, 3)} if buckets.seconds else {}
    return gold.refresh(
        lake,
        view,
        as_of=end_of_windows(view, clock, follows, buckets),
        batch=buckets.batch,
        buckets=buckets.commits,
        force=force,
        not_below=follows == WALL,
        spent=spent,
        appended=buckets.rows,
    )


def arrive_view(
    lake: Lake,
    view_name: str,
    clock: Clock,
    follows: str,
    buckets: minute_buckets.Bucketed | None = None,
) -> bool:
    """Bring a view's arrivals, which the stateful engine reads, to the newest buckets and to the
    clock's as_of; return whether anything was new."""
    view = lake.pipeline.view(view_name)
    buckets = buckets or minute_buckets.bucketed(lake, view)
    as_of = end_of_windows(view, clock, follows, buckets)
    return state_input.arrive(lake, view, as_of=as_of, batch=buckets.batch, buckets=buckets.commits)
