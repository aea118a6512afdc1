"""Upkeep: keeps a lake small and quick, and changes no feature.

    hours      adds up, by the hour, the minute buckets that came since            <view>_hours
    expire     removes buckets and hours older than the pipeline's history,
               and arrivals that the state has read                                buckets ...
    empty      removes rows that have been empty for longer than keep_empty        gold
    optimize   makes few files of many, where a partition is closed; orders gold,
               and replays                                                         every table
    vacuum     removes files that no version within the retention names            every table
    log        removes what nobody reads of a folder's log                         every table
    tidy       removes what a killed process left half-written                     checkpoints

A plan first: each step says what it found and why. Then the steps, each in a commit of its own:
dying between two of them, or losing one against a batch, leaves that one for the next time.
"""

from __future__ import annotations

import logging
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from tidemill.config import dataflow
from tidemill.config.dataflow import Query
from tidemill.config.pipeline_file import LEAST_RETENTION
from tidemill.config.settings import Clock, iso
from tidemill.errors import LockedError
from tidemill.features import FeatureView
from tidemill.features.types import bytes_of
from tidemill.features.windows import duration
from tidemill.lake import lock, times
from tidemill.lake.batches import BatchRow
from tidemill.lake.catalog import Lake, checkpoint_root
from tidemill.lake.commits import ledger, writer
from tidemill.lake.parameters import ask
from tidemill.lake.schema import expired_before, table_properties
from tidemill.lake.statements import statement
from tidemill.lake.tables import Table
from tidemill.operations import log_retention
from tidemill.pipeline import batch_log
from tidemill.pipeline.gold import empty_rows, merge
from tidemill.pipeline.silver import clean as silver
from tidemill.pipeline.silver import hour_buckets

log = logging.getLogger(__name__)

ACTIONS = ("hours", "expire", "empty", "optimize", "vacuum", "log", "tidy")
OFTEN = ("hours", "expire", "empty", "optimize", "log")  # the others once a day
FILES = 4  # a closed partition may have so many files
UNPARTITIONED_FILES = 16  # of gold, and of replays
CLUSTERED = "tidemill.clustered_files"  # a property of these: files after the last OPTIMIZE
OPEN_FILES = 16  # the day of tidemill_batches that is not over, to which a run appends each minute
_FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"
_SAFELY = timedelta(hours=1)  # added to what a stream still needs


@dataclass(frozen=True)
class Step:
    """One thing to do to a table, and why; `run` does it and tells what came of it."""

    table: str
    action: str
    reason: str
    run: Callable[[], str]


@dataclass(frozen=True)
class Done:
    """A step that was run."""

    table: str
    action: str
    reason: str
    result: str
    seconds: float


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
        steps += _hours(lake, view) if "hours" in actions else []
        if as_of:
            steps += _expire(lake, view) if "expire" in actions else []
            steps += _arrived(lake, view) if "expire" in actions else []
            steps += _empty(lake, view, as_of) if "empty" in actions else []
    of_tables = {"optimize": _optimize, "vacuum": _vacuum, "log": _log, "tidy": _tidy}
    for action, planned in of_tables.items():
        steps += planned(lake, clock) if action in actions else []
    return steps


def maintain(lake: Lake, steps: Iterable[Step], tell: Tell = lambda done: None) -> list[Done]:
    """Run the steps, telling of each; return what came of them, which `tidemill_batches` keeps."""
    done: list[Done] = []
    for step in steps:
        started = time.monotonic()
        result = _run(step)
        seconds = round(time.monotonic() - started, 3)
        done.append(Done(step.table, step.action, step.reason, result, seconds))
        log.info("%s %s: %s", step.action, step.table, result)
        tell(done[-1])
    if done:
        batch_log.append(lake, [row_of(lake, done)])
    return done


def _run(step: Step) -> str:
    try:
        return step.run()
    except LockedError as error:
        log.info("%s %s: %s", step.action, step.table, error)
    except PySparkException as error:
        if not merge.lost_race(error):
            raise
    return "another write came first; left for the next time"


def row_of(lake: Lake, done: Sequence[Done]) -> BatchRow:
    """Return the row of `tidemill_batches` that tells of an upkeep: seconds by action."""
    now = datetime.now(timezone.utc)
    seconds: dict[str, float] = {}
    for each in done:
        seconds[each.action] = round(seconds.get(each.action, 0.0) + each.seconds, 3)
    return BatchRow("maintain", lake.generation, int(now.timestamp()), now, -1, seconds=seconds)


def last(lake: Lake, action: str | None = None) -> datetime | None:
    """Return when upkeep, or one action of it, was last done; None for never."""
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


# -- hours, expiry -------------------------------------------------------------------------------


def _hours(lake: Lake, view: FeatureView) -> Iterator[Step]:
    if not hour_buckets.useful(view):
        return
    buckets = silver.bucketed(lake, view)
    hours = hour_buckets.hours_state(lake, view, buckets.commits)
    new = buckets.batch - hours.batch
    if hours.recompute_reason:
        reason = f"made again: {hours.recompute_reason}"
    elif new:
        reason = f"the buckets of {_many(new, 'batch', 'batches')} to add up"
    else:
        return

    def run() -> str:
        return f"{_many(hour_buckets.bring_up(lake, view), 'row')} appended"

    yield Step(lake.tables.of(view).hours.name, "hours", reason, run)


def _expire(lake: Lake, view: FeatureView) -> Iterator[Step]:
    before = _expired_before(lake, view)
    if before is None:
        return
    history = lake.pipeline.history
    for table in lake.known([lake.tables.of(view).buckets, lake.tables.of(view).hours]):
        (column,) = table.partitioned_by
        edge = _text(column, before)
        old = [value for value in _files(lake, table) if value < edge]
        if old:
            reason = f"{_many(len(old), 'partition')} older than {history}"
            run = partial(_delete, lake, view, table, column, before)
            yield Step(table.name, "expire", reason, run)


def _expired_before(lake: Lake, view: FeatureView) -> datetime | None:
    """Return the hour before which no bucket is kept: `history` before the end of the newest one,
    or of gold's windows where gold was refreshed to an earlier time. None without any."""
    newest = silver.event_as_of(silver.bucketed(lake, view), view)
    as_of = lake.gold_state(view).as_of
    if newest is None or as_of is None:
        return None
    before = min(newest, as_of) - lake.pipeline.kept_of(view)
    return before.replace(minute=0, second=0, microsecond=0)


def _arrived(lake: Lake, view: FeatureView) -> Iterator[Step]:
    """Find what the stateful engine has merged into gold: it reads new arrivals alone."""
    table, batch = lake.tables.of(view).arrivals, lake.gold_state(view).batch
    if lake.pipeline.engine != "stateful" or batch < 0:
        return
    rows = lake.spark.table(table.name).where(F.col("batch") < batch).count()

    def run() -> str:
        ledger_fields = {
            "generation": lake.generation,
            "batch": batch,
            ledger.UPKEEP: f"removed what was merged before batch {batch}",
        }
        with writer.carrying(lake.spark, ledger_fields):
            lake.spark.sql(f"DELETE FROM {table.name} WHERE batch < {batch}")
        return f"{_many(rows, 'row')} removed"

    if rows:
        yield Step(table.name, "expire", f"{_many(rows, 'row')} that the state has read", run)


def _delete(lake: Lake, view: FeatureView, table: Table, column: str, before: datetime) -> str:
    """Delete whole partitions, in a commit that says so: no refresh takes it for another's."""
    limit = before.date() if column == "bucket_day" else before
    if table.name == lake.tables.of(view).buckets.name:
        # first: dying here, it says too much, never too little
        expired_before.note(lake.spark, table.name, before)
    ledger_fields = {
        "generation": lake.generation,
        "batch": silver.bucketed(lake, view).batch,
        ledger.UPKEEP: f"{expired_before.WORDS}{iso(before)}",
    }
    with writer.carrying(lake.spark, ledger_fields):
        sql = f"DELETE FROM {table.name} WHERE {column} < :before"
        ask(lake.spark, sql, {"before": limit})
    return f"removed what is before {iso(before)}"


def _empty(lake: Lake, view: FeatureView, as_of: datetime) -> Iterator[Step]:
    before = as_of - duration(view.keep_empty)
    rows = ask(lake.spark, statement("emptied", view), {"before": before}).count()

    def run() -> str:
        removed = empty_rows.remove_empty(lake, view, before)
        return "a refresh comes first" if removed is None else f"{_many(removed, 'row')} removed"

    if rows:
        reason = f"{_many(rows, 'row')} empty for more than {view.keep_empty}"
        yield Step(lake.tables.of(view).gold.name, "empty", reason, run)


# -- files ---------------------------------------------------------------------------------------


def _optimize(lake: Lake, clock: Clock) -> Iterator[Step]:
    for table in lake.existing_tables():
        if not table.partitioned_by:
            if table.sorted_by:
                yield from _cluster(lake, table)
            continue
        (column,) = table.partitioned_by
        open_from = _text(column, clock.now())
        most = _most_bytes(lake, table)
        may_stay_open = OPEN_FILES if table.name == lake.tables.batches.name else math.inf
        crowded = {
            value: files
            for value, files in sorted(_files(lake, table, below=most and most // 2).items())
            if files > (FILES if value < open_from else may_stay_open)
        }
        if crowded:
            kind = "closed partition" if max(crowded) < open_from else "partition"
            files = f"{sum(crowded.values()):,} files"
            reason = f"{files} in {_many(len(crowded), kind)}"
            yield Step(table.name, "optimize", reason, partial(_compact, lake, table, crowded))


def _compact(lake: Lake, table: Table, crowded: Iterable[str]) -> str:
    (column,) = table.partitioned_by
    values = ", ".join(f"'{value}'" for value in crowded)
    order = f" ZORDER BY ({table.sorted_by})" if table.sorted_by else ""
    with _beside_gate(lake, table), _files_of(lake, _most_bytes(lake, table)):
        return _optimized(lake, f"OPTIMIZE {table.name} WHERE {column} IN ({values}){order}")


def _most_bytes(lake: Lake, table: Table) -> int | None:
    """Return how large a file may become where a query reads the table as a stream: a file is the
    least that a batch reads."""
    followed = log_retention.readers(lake)
    return bytes_of(lake.pipeline.max_bytes_per_trigger) if table.name in followed else None


@contextmanager
def _files_of(lake: Lake, most: int | None) -> Iterator[None]:
    """Let OPTIMIZE make files of at most so many bytes, Delta's own limit by default."""
    if most is not None:
        lake.spark.conf.set(_FILE_SIZE, str(most))
    try:
        yield
    finally:
        if most is not None:
            lake.spark.conf.unset(_FILE_SIZE)


def _cluster(lake: Lake, table: Table) -> Iterator[Step]:
    """Order a table without partitions: rows of gold that changed at the same time, replays of the
    same day, come into the same files. A MERGE writes files of gold again, and those of keys that
    are never seen again then stay as they are; clean reads replays by their day.

    All of the table is written for it, so a table of many files waits until it has twice as many as
    the last time left, which its property says.
    """
    files = _file_count(lake, table)
    left = _clustered_files(lake, table) if files > UNPARTITIONED_FILES else 0

    def run() -> str:
        became = _optimized(lake, f"OPTIMIZE {table.name} ZORDER BY ({table.sorted_by})")
        if (after := _file_count(lake, table)) != left:
            table_properties.tell(lake.spark, table.name, {CLUSTERED: str(after)})
        return became

    if files > max(UNPARTITIONED_FILES, 2 * left):
        yield Step(table.name, "optimize", f"{files:,} files", run)


def _clustered_files(lake: Lake, table: Table) -> int:
    return int(table_properties.properties(lake.spark, table.name).get(CLUSTERED, "0"))


def _file_count(lake: Lake, table: Table) -> int:
    return len(lake.spark.table(table.name).inputFiles())


def _optimized(lake: Lake, sql: str) -> str:
    metrics = (
        lake.spark.sql(sql).select("metrics.numFilesRemoved", "metrics.numFilesAdded").collect()[0]
    )
    return f"{_many(metrics[0], 'file')} became {metrics[1]:,}"


def _vacuum(lake: Lake, clock: Clock) -> Iterator[Step]:
    readers = log_retention.readers(lake)
    declared = lake.pipeline.maintenance
    retention = duration(declared.retention) if declared else LEAST_RETENTION
    for table in lake.existing_tables():
        kept, why = retention, "the retention"
        for query in readers.get(table.name, ()):
            needed = _needed(lake, table, query)
            if needed > kept:
                kept, why = needed, f"the query {query.checkpoint} has read no further"
        reason = f"files that no version of the last {_span(kept)} names ({why})"
        yield Step(table.name, "vacuum", reason, partial(_remove_files, lake, table, kept))


def _needed(lake: Lake, table: Table, query: Query) -> timedelta:
    """Return the age of the oldest version that a running or stopped query will read."""
    version = lake.checkpoint(query.checkpoint).read_to()
    if version is None:
        return timedelta(0)
    newest = lake.commits(table.name, 1)[0].version
    if version > newest:
        return timedelta(0)
    oldest = lake.commits(table.name, newest - version + 1)[-1]
    return datetime.now(timezone.utc) - oldest.at + _SAFELY


def _remove_files(lake: Lake, table: Table, kept: timedelta) -> str:
    hours = math.ceil(kept.total_seconds() / 3600)
    with _beside_gate(lake, table):
        lake.spark.sql(f"VACUUM {table.name} RETAIN {hours} HOURS")
    return "done"


@contextmanager
def _beside_gate(lake: Lake, table: Table) -> Iterator[None]:
    """Hold the gate's results where the table is theirs: the gate writes them without the lake's
    lock. LockedError where it does so now."""
    if table != lake.tables.quality:
        yield
        return
    with lock.hold_gate(lake.place, f"tidemill maintain {lake.pipeline.pipeline}", wait=0):
        yield


def _log(lake: Lake, clock: Clock) -> Iterator[Step]:
    if log_retention.retention(lake) is None:
        return
    recorded = batch_log.recorded(lake)
    for table in lake.existing_tables():
        if old := log_retention.expired(lake, table, recorded):
            files = _many(len(old.files), "file")
            reason = f"{files} of the log before version {old.first} ({old.need.reason})"
            yield Step(table.name, "log", reason, partial(_shorten_log, lake, table))


def _shorten_log(lake: Lake, table: Table) -> str:
    return f"{_many(log_retention.remove(lake, table), 'file')} removed"


def _tidy(lake: Lake, clock: Clock) -> Iterator[Step]:
    """Find temporary files of checkpoints that are a day old: a killed process left them."""
    root = checkpoint_root(lake.place)
    queries = dataflow.of(None, [view.name for view in lake.pipeline.views])
    folders = [lake.checkpoint(query.checkpoint).folder for query in queries]
    limit = time.time() - timedelta(days=1).total_seconds()
    old = [p for folder in folders for p in folder.rglob(".*.tmp") if p.stat().st_mtime < limit]

    def run() -> str:
        for path in old:
            path.unlink(missing_ok=True)
        return f"{_many(len(old), 'file')} removed"

    if old:
        yield Step(
            root.name, "tidy", f"{_many(len(old), 'temporary file')} of a killed process", run
        )


# -- what there is -------------------------------------------------------------------------------


def _files(lake: Lake, table: Table, below: int | None = None) -> Mapping[str, int]:
    """Count the files of each partition of the newest version, by the partition's value: those
    `below` a number of bytes, where given and where the lake is a folder, which tells it."""
    (column,) = table.partitioned_by
    value = re.compile(rf"/{column}=([0-9 :-]+)/")
    names = lake.spark.table(table.name).inputFiles()
    if below is not None and lake.place.folder:
        names = [name for name in names if _bytes(name) < below]
    matches = (value.search(unquote(unquote(name))) for name in names)
    return Counter(each[1] for each in matches if each)


def _bytes(name: str) -> int:
    """Return the bytes of a file, by its name as Delta's list of files has it: not encoded."""
    return Path(name.removeprefix("file:")).stat().st_size


def _text(column: str, time_: datetime) -> str:
    """Return a time as the folders of a partition by hour, or by day, are named."""
    return f"{time_:%Y-%m-%d %H:00:00}" if column.endswith("_hour") else f"{time_:%Y-%m-%d}"


def _many(number: int, one: str, more: str = "") -> str:
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def _span(length: timedelta) -> str:
    days = length / timedelta(days=1)
    return f"{days:.0f} days" if days == round(days) else f"{length / timedelta(hours=1):.0f} hours"
