"""One refresh on demand, to the clock's time or to a time that is named."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pyspark.sql import functions as F

from tidemill.config.settings import EPOCH, Clock, iso
from tidemill.errors import UsageError
from tidemill.features import FeatureView
from tidemill.features.windows import BEGINNING
from tidemill.lake import times
from tidemill.lake.catalog import Lake
from tidemill.lake.schema import expired_before
from tidemill.pipeline import batch_log
from tidemill.pipeline.gold import refresh as gold
from tidemill.pipeline.publication import publish_view
from tidemill.pipeline.silver import minute_buckets
from tidemill.pipeline.view_refresh import refresh_view


def refresh(lake: Lake, clock: Clock, as_of: datetime | None) -> list[dict[str, Any]]:
    """Refresh each view; return `{view, as_of, mode, batch, keys_changed, gold_version,
    seconds}`. UsageError with the stateful engine, whose state knows no other time than its own."""
    if lake.pipeline.engine == "stateful":
        raise _not_from_state(lake, as_of)
    results = []
    for view in lake.pipeline.views:
        if as_of is None:
            done = refresh_view(lake, view.name, clock, lake.pipeline.clock)
        else:
            done = refresh_to(lake, view, as_of)
        publish_view(lake, view)
        results.append(
            {
                "view": done.view,
                "as_of": done.as_of and iso(done.as_of),
                "mode": done.mode,
                "batch": done.batch,
                "keys_changed": done.keys_changed,
                "gold_version": lake.commits(lake.tables.of(view).gold.name, 1)[0].version,
                "seconds": round(done.seconds, 3),
            }
        )
    batch_log.record(lake)
    return results


def _not_from_state(lake: Lake, as_of: datetime | None) -> UsageError:
    run = f"`tidemill run {lake.pipeline.command_name} --once`"
    if as_of is None:
        message = "engine: stateful brings gold up to date in its own query"
        return UsageError(message, where="refresh", expected=run)
    return UsageError(
        f"{iso(as_of)} cannot be computed from state, which holds the present windows alone",
        where="--as-of",
        expected="engine: buckets",
    )


def refresh_to(lake: Lake, view: FeatureView, as_of: datetime) -> gold.Refreshed:
    """Refresh to a time that is named; refuse an earlier one for which buckets may be missing.

    Buckets are kept for the pipeline's `history`: before oldest bucket + longest window a window
    may have lost a part, so an as_of earlier than gold's own is refused there.
    """
    if (as_of - EPOCH) % view.bucket_length:
        raise UsageError(
            f"{iso(as_of)} is not the end of a bucket of view {view.name}",
            where="--as-of",
            expected=f"a multiple of {view.bucket}",
        )
    buckets, standing = minute_buckets.bucketed(lake, view), lake.gold_state(view)
    if standing.as_of is not None and as_of < standing.as_of:
        _refuse_lost(lake, view, as_of)
    return gold.refresh(lake, view, as_of=as_of, batch=buckets.batch, buckets=buckets.commits)


def _refuse_lost(lake: Lake, view: FeatureView, as_of: datetime) -> None:
    name = lake.tables.of(view).buckets.name
    buckets = lake.spark.table(name).where(F.col("bucket_hour") > times.at(BEGINNING))
    oldest = buckets.agg(F.unix_seconds(F.min("bucket_start"))).collect()[0][0]
    if oldest is None:
        return
    folded = expired_before.folded_before(lake.metadata(name).properties)
    first = max(filter(None, (times.of_epoch(oldest), folded))) + view.apart
    if as_of < first:
        raise UsageError(
            f"{iso(as_of)} is before the oldest kept bucket and the longest window",
            where="--as-of",
            expected=f"{iso(first)} or later",
        )
