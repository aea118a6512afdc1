"""The times for which the buckets of a view can tell its features."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from tidemill.config.settings import EPOCH, iso
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.schema import expired_before
from tidemill.pipeline.silver import minute_buckets


@dataclass(frozen=True)
class KnownTimes:
    """Of a view, the first edge and the last for which it is known what was true; both are edges
    themselves. `gaps` are half-open times between them that are not known."""

    first: datetime
    last: datetime
    gaps: tuple[tuple[datetime, datetime], ...] = ()

    def __str__(self) -> str:
        """Return the times as messages name them."""
        gaps = ", ".join(f"{iso(start)} to {iso(end)}" for start, end in self.gaps)
        return f"{iso(self.first)} to {iso(self.last)}" + (f" without {gaps}" if gaps else "")


def edge_of(moment: datetime, bucket: timedelta) -> datetime:
    """Return the edge that a time falls to: the last end of a bucket at or before it."""
    return moment - (moment - EPOCH) % bucket


def of_buckets(lake: Lake, view: FeatureView) -> KnownTimes | None:
    """Return the edges whose windows lie in what is kept of the buckets, None before the first
    bucket.

    The last one is the end of the newest bucket, or gold's as_of where that is later. The first one
    is the longest window after what expiry has removed or folded, or what is older than the history
    and may be so any time; a lifetime has no length here.
    """
    as_of = lake.gold_state(view).as_of
    end = minute_buckets.event_as_of(minute_buckets.bucketed(lake, view), view)
    ends = [time for time in (as_of, end) if time is not None]
    if not ends:
        return None
    name = lake.tables.of(view).buckets.name
    expired = expired_before.expired_before(lake, name, lake.metadata(name).properties)
    kept = max(ends) - lake.pipeline.kept_of(view)
    first = max(filter(None, (expired, kept))) + view.apart
    edge = edge_of(first, view.bucket_length)
    return KnownTimes(edge if edge == first else edge + view.bucket_length, max(ends))
