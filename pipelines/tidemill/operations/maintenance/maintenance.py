"""A plan of maintenance, its steps run one after another, and what it leaves in
`tidemill_batches`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timezone

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from tidemill.config.settings import Clock
from tidemill.errors import LockedError
from tidemill.lake import times
from tidemill.lake.batches import BatchRow
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import turns
from tidemill.lake.commits.races import lost_race
from tidemill.operations.maintenance import expiry, log_retention
from tidemill.operations.maintenance.checkpoint_files import tidy
from tidemill.operations.maintenance.compaction import optimize
from tidemill.operations.maintenance.hours import hours
from tidemill.operations.maintenance.online_slices import slices
from tidemill.operations.maintenance.served_history import history
from tidemill.operations.maintenance.step import Done, Step
from tidemill.operations.maintenance.vacuum import vacuum
from tidemill.pipeline import batch_log

log = logging.getLogger(__name__)

ACTIONS = ("hours", "history", "slices", "expire", "empty", "optimize", "vacuum", "log", "tidy")
OFTEN = ("hours", "history", "slices", "expire", "empty", "optimize", "log")  # others once a day
Tell = Callable[[Done], None]


def plan(lake: Lake, clock: Clock, actions: Sequence[str] = ACTIONS) -> list[Step]:
    """Return what there is to do, in order; a step that would do nothing is not in it.

    Ages of buckets are counted from the newest of them, of empty rows from gold's as_of; never from
    the machine's clock, so that a replay of old events loses nothing, nor does a refresh to a time
    far ahead.
    """
    steps: list[Step] = []
    for view in lake.pipeline.views:
        as_of = lake.gold_state(view).as_of
        steps += hours(lake, view) if "hours" in actions else []
        steps += history(lake, view) if "history" in actions else []
        steps += slices(lake, view) if "slices" in actions else []
        if as_of:
            steps += expiry.expire(lake, view) if "expire" in actions else []
            steps += expiry.expire_arrivals(lake, view) if "expire" in actions else []
            steps += expiry.empty(lake, view, as_of) if "empty" in actions else []
    of_tables = {"optimize": optimize, "vacuum": vacuum, "log": log_retention.shorten, "tidy": tidy}
    for action, planned in of_tables.items():
        steps += planned(lake, clock) if action in actions else []
    return steps


def maintain(lake: Lake, steps: Iterable[Step], tell: Tell = lambda done: None) -> list[Done]:
    """Run the steps, telling of each; return what came of them, which `tidemill_batches` keeps."""
    done: list[Done] = []
    for step in steps:
        started = time.monotonic()
        result = _run(lake, step)
        seconds = round(time.monotonic() - started, 3)
        done.append(Done(step.table, step.action, step.reason, result, seconds))
        log.info("%s %s: %s", step.action, step.table, result)
        tell(done[-1])
    if done:
        batch_log.append(lake, [row_of(lake, done)])
    return done


def _run(lake: Lake, step: Step) -> str:
    root = lake.place.folder
    try:
        with turns.turn(root and root / step.table):
            return step.run()
    except LockedError as error:
        log.info("%s %s: %s", step.action, step.table, error)
    except PySparkException as error:
        if not lost_race(error):
            raise
    return "another write came first; left for the next time"


def row_of(lake: Lake, done: Sequence[Done]) -> BatchRow:
    """Return the row of `tidemill_batches` that maintenance leaves: seconds by action."""
    now = datetime.now(timezone.utc)
    seconds: dict[str, float] = {}
    for each in done:
        seconds[each.action] = round(seconds.get(each.action, 0.0) + each.seconds, 3)
    return BatchRow("maintain", lake.generation, int(now.timestamp()), now, -1, seconds=seconds)


def last(lake: Lake, action: str | None = None) -> datetime | None:
    """Return when maintenance, or one action of it, was last done; None for never."""
    table = lake.tables.batches.name
    if lake.is_as_made(table):
        return None
    done = F.col("query") == "maintain"
    if action:
        done &= F.col("seconds")[action].isNotNull()
    newest: int | None = None
    for rows in (batch_log.recent(lake), batch_log.of_pipeline(lake)):
        at = rows.where(done).agg(F.unix_seconds(F.max("committed_at")))
        newest = newest or at.collect()[0][0]
    return times.of_epoch(newest)
