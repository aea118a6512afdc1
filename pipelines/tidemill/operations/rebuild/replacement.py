"""Buckets of some keys, of a time on or of whole views made again, and put in place at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from tidemill.config.settings import iso
from tidemill.errors import LakeError, UsageError
from tidemill.features import FeatureView
from tidemill.features.windows import BEGINNING
from tidemill.lake.catalog import Lake
from tidemill.lake.commits.failpoints import reach
from tidemill.lake.integrity import coverage, interrupted_rebuilds
from tidemill.lake.open import settle_filled
from tidemill.lake.schema import creation, evolution, expired_before
from tidemill.operations.rebuild import backfill_rows, enriched_events, staging
from tidemill.operations.rebuild.staging import Read, Staging
from tidemill.operations.rebuild.work import Work


def replace_buckets(work: Work) -> tuple[Lake, int]:
    """Replace the buckets of some keys, from a time on, or of the views that lack some."""
    lake = work.lake(work.definition, work.made_from)
    interrupted_rebuilds.refuse_from_bronze(lake)
    if work.wanted.since:
        _refuse_folded(work, lake, work.wanted.since)
    if work.wanted.views:
        wanted = [lake.pipeline.view(name) for name in work.wanted.views]
        lacking = [view for view in wanted if _lacks(work, lake, view)]
        for view in lacking:  # all before any is filled: feature may have to catch up for each
            settle_filled(lake, view)
        return lake, sum(_fill(work, lake, view) for view in lacking)
    if work.wanted.keys and lake.pipeline.enrich:
        work = replace(work, wanted=enriched_events.look_up_again(work, lake))
    touched = filter(work.wanted.touches, work.whole(lake))
    return lake, sum(_replace(work, lake, view) for view in touched)


def _refuse_folded(work: Work, lake: Lake, since: datetime) -> None:
    """Refuse a time of which the buckets are folded: they would count again beside the base."""
    for view in filter(work.wanted.touches, lake.pipeline.views):
        folded = expired_before.folded_before(
            lake.metadata(lake.tables.of(view).buckets.name).properties
        )
        if folded and BEGINNING < since < folded:
            raise UsageError(
                f"the buckets of {view.name} before {iso(folded)} are folded into the base of each "
                "key",
                where="--since",
                expected=f"{iso(folded)} or later, or {iso(BEGINNING)}, which makes all again",
            )


def _lacks(work: Work, lake: Lake, view: FeatureView) -> bool:
    """Tell, and return, whether a view lacks events, or parts and buckets."""
    why, change = coverage.late(lake).get(view.name), evolution.change(lake, view)
    if change.kind == "views":
        why = why or change.why
    work.say(f"{view.name}: {why or 'its buckets lack no event'}")
    return bool(why)


def _fill(work: Work, lake: Lake, view: FeatureView) -> int:
    """Make all buckets of a view; return their rows."""
    rows = _replace(work, lake, view)
    for hours in lake.known([lake.tables.of(view).hours]):
        creation.create(lake, hours, replace=True)
    coverage.covered(lake, view, lake.checkpoint("feature").finished())
    return rows


def _replace(work: Work, lake: Lake, view: FeatureView) -> int:
    """Stage the replacement of a view's bucket rows, and put it in place; return its rows."""
    read = _read(work, lake, view)
    if read is None:
        return 0
    extent = backfill_rows.extent(lake, view)
    spec = work.wanted.spec(view, [partial.name for partial in view.partials], extent)
    keys = work.wanted.keys_of(view)
    staged = staging.begin(lake, view, spec, read, keys, work.wanted.since)
    days = staged.days.each
    for place, number, day in staging.pending(staged):
        work.refuse_stop(staged.table.name)
        staged.append(staged.of_day(day), staged.begun, f"{day:%Y-%m-%d}")
        work.chunk_written(lake, staged.table.name, f"{place}/{number}  {day:%Y-%m-%d}")
    _stage_later(work, staged, days)
    rows = _put_in_place(work, staged, days)
    reach("rebuild.put_in_place")
    name = lake.tables.of(view).buckets.name
    if not work.wanted.keys:
        whole_from, alone = staged.days.whole_from, bool(work.wanted.views)
        expired_before.filled(lake, name, whole_from, alone=alone)
    work.say(f"  {name}  {rows:,} rows put in place")
    staged.drop()
    return rows


def _put_in_place(work: Work, staged: Staging, days: Sequence[datetime]) -> int:
    if not days:
        return 0
    first = backfill_rows.first_replaced(staged.view, days)
    return staged.put_in_place(first, brings_batches=bool(work.wanted.views))


def _read(work: Work, lake: Lake, view: FeatureView) -> Read | None:
    """Return what feature has read, None for nothing. Where that cannot be told exactly, it
    first reads what there is."""
    if (read := _read_so_far(work, lake, view)) is not None:
        return read
    work.catch_up(lake)
    read = _read_so_far(work, lake, view)
    if read is None and backfill_rows.newest_event_batch(lake) >= 0:
        raise LakeError(
            "what feature has read cannot be told from its checkpoint",
            where=str(lake.checkpoint("feature").folder),
            expected=f"`tidemill rebuild {lake.pipeline.command_name} --from bronze`",
        )
    return read


def _read_so_far(work: Work, lake: Lake, view: FeatureView) -> Read | None:
    """Return what feature has read; a view that lacks events may not hold its newest batch."""
    read = staging.read_so_far(lake, view)
    if read is None or not work.wanted.views:
        return read
    return replace(read, batch=max(read.batch, lake.checkpoint("feature").finished()))


def _stage_later(work: Work, staged: Staging, days: Sequence[datetime]) -> None:
    """Stage the events that feature read since the staging was begun."""
    before, now = staged.progress[0], _read_so_far(work, staged.lake, staged.view)
    if not days or now is None or now == before:
        return
    rows = staged.of_later(backfill_rows.first_replaced(staged.view, days), before, now)
    staged.append(rows, now, staged.progress[1])
    work.chunk_written(staged.lake, staged.table.name, "later events")
