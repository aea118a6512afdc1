"""The log of a folder's tables, kept as far back as somebody still reads it, and no further.

    the last hours      as the pipeline says, `maintenance: {log: 6h}`
    a query             the version from which it reads its table on
    a ledger            the newest of each table, and the versions of buckets that ledgers name
    tidemill_batches    the commits that it does not tell of yet
    a view's history    the versions of gold that it does not tell of yet

Delta lists the whole of `_delta_log` several times in each commit, so a tick takes longer with each
file that lies in it. Its own cleaning knows an age alone, not who reads: it is off where this does
the work. What is removed here is what Delta's protocol lets go: commits, checksums and checkpoints
before a complete checkpoint, from which every version that is kept can be read.

In a catalog the log is the catalog's: nothing is removed there.
"""

from __future__ import annotations

import logging
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path

from tidemill.config.dataflow import Query
from tidemill.config.settings import Clock
from tidemill.features import FeatureView
from tidemill.features.windows import duration
from tidemill.lake.batches import Versions
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.commits.ledger import Commit
from tidemill.lake.integrity.progress import STREAMED
from tidemill.lake.schema import expired_before
from tidemill.lake.tables import Table
from tidemill.operations.maintenance.step import Step, many
from tidemill.pipeline import batch_log
from tidemill.pipeline.gold import history_feed
from tidemill.pipeline.silver import hour_buckets

log = logging.getLogger(__name__)

_OF_VERSION = re.compile(r"\.?(\d{20})\.")  # with a dot: a checksum, or what a killed process left
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")


@dataclass(frozen=True)
class Need:
    """A version from which on a log is needed, and what for."""

    version: int
    reason: str


@dataclass(frozen=True)
class Expired:
    """The files of a log that nobody needs, the oldest first; `first` is the oldest version that
    stays, `need` what keeps the log from being cut any later."""

    files: tuple[Path, ...]
    first: int
    need: Need


def shorten(lake: Lake, clock: Clock) -> Iterator[Step]:
    """Yield a step for each table of whose log something can be removed."""
    if retention(lake) is None:
        return
    recorded = batch_log.recorded(lake)
    for table in lake.existing_tables():
        if old := expired(lake, table, recorded):
            files = many(len(old.files), "file")
            reason = f"{files} of the log before version {old.first} ({old.need.reason})"
            yield Step(table.name, "log", reason, partial(_shorten_log, lake, table))


def _shorten_log(lake: Lake, table: Table) -> str:
    return f"{many(remove(lake, table), 'file')} removed"


def retention(lake: Lake) -> timedelta | None:
    """Return how long a lake's log is kept whatever is needed of it; None where it is left as it
    is: in a catalog, or as the pipeline says."""
    declared = lake.pipeline.maintenance
    if lake.place.folder is None:
        log.info("the log of %s is its catalog's: nothing is removed of it", lake.place)
        return None
    return duration(declared.log) if declared and declared.log else None


def readers(lake: Lake) -> dict[str, list[Query]]:
    """Return the queries that follow a table, by the table's name."""
    following: dict[str, list[Query]] = {}
    for query in (each for each in lake.pipeline.queries if not each.is_fed):
        for table in lake.tables_of(query, (query.reads,)):
            following.setdefault(table, []).append(query)
    return following


def expired(lake: Lake, table: Table, recorded: Versions) -> Expired | None:
    """Return what can be removed of a table's log, None where that is nothing. `recorded` are the
    versions up to which `tidemill_batches` tells."""
    kept = retention(lake)
    if kept is None or lake.place.folder is None:
        return None
    folder = lake.place.folder / table.name / "_delta_log"
    names = sorted(path.name for path in folder.iterdir())
    need = min(_needs(lake, table, recorded, folder, names, kept), key=lambda each: each.version)
    first = _checkpoint(folder, names, need.version)
    dated = ((_version(name), name) for name in names)
    paths = sorted((version, name) for version, name in dated if 0 <= version < first)
    files = tuple(folder / name for _, name in paths)
    return Expired(files, first, need) if files else None


def remove(lake: Lake, table: Table) -> int:
    """Remove what nobody needs of a table's log; return the number of files.

    What a bucket table of an early version says in its log alone is written to its properties
    first. Stopped half-way, the oldest versions are gone and the rest is whole.
    """
    removal = expired(lake, table, batch_log.recorded(lake))
    if removal is None:
        return 0
    for view in lake.pipeline.views:
        if table.name == lake.tables.of(view).buckets.name:
            expired_before.keep(lake, table.name, lake.metadata(table.name).properties)
    for path in removal.files:
        path.unlink(missing_ok=True)
    return len(removal.files)


# -- what is needed ------------------------------------------------------------------------------


def _needs(
    lake: Lake,
    table: Table,
    recorded: Versions,
    folder: Path,
    names: list[str],
    kept: timedelta,
) -> Iterator[Need]:
    """Yield each version from which on somebody needs the table's log."""
    yield _recent(folder, names, kept)
    pipeline = lake.pipeline
    yield from _of_reader(lake, table)
    if table.name in recorded:
        reason = "tidemill_batches tells no further"
        yield Need(max(recorded[table.name], 0), reason)
    if (newest := _newest_told(lake, table)) is not None:
        yield Need(newest.version, "its newest ledger")
    for view in pipeline.views:
        if table.name == lake.tables.of(view).buckets.name:
            yield from _of_buckets(lake, view, recorded)
        if pipeline.served_history and table.name == lake.tables.of(view).gold.name:
            yield Need(max(history_feed.fed(lake, view), 0), "its history tells no further")


def _recent(folder: Path, names: list[str], kept: timedelta) -> Need:
    """Return the first version that is not older than the retention; the newest where all are."""
    commits = [name for name in names if _COMMIT.fullmatch(name)]
    since = (datetime.now(timezone.utc) - kept).timestamp()
    place = bisect_left(commits, since, key=lambda name: (folder / name).stat().st_mtime)
    first = _version(commits[min(place, len(commits) - 1)]) if commits else 0
    return Need(first, "the retention")


def _of_reader(lake: Lake, table: Table) -> Iterator[Need]:
    """Yield the versions from which the queries that follow the table read.

    A query that starts asks for its newest batch again, also where it had finished it: it needs the
    offset before that, and of its first batch the version before its end.
    """
    for query in readers(lake).get(table.name, ()):
        checkpoint = lake.checkpoint(query.checkpoint)
        newest = checkpoint.planned()
        versions = [checkpoint.read_to(newest - 1) if newest > 0 else checkpoint.read_to(newest)]
        if newest == 0 and versions[0]:
            versions[0] -= 1
        if query.ledger == "features":  # gold is compared with the events that its batch had read
            versions += [checkpoint.read_to(lake.gold_state(v).batch) for v in lake.pipeline.views]
        for version in versions:
            if version is not None:
                yield Need(version, f"the query {query.checkpoint} has read no further")


def _newest_told(lake: Lake, table: Table) -> Commit | None:
    """Return the oldest of those commits by which a table says how far it is: its newest ledger,
    its generation's newest append, and land's newest batch."""
    if table in (*lake.tables.shared, lake.tables.replays):
        return None
    if table in lake.tables.bronzes():
        return _newest(lake, table, lambda commit: commit.operation == STREAMED)
    newest = [
        _newest(lake, table, lambda commit: commit.ledger is not None),
        ledger.newest_append(lake, table.name, lake.generation),
    ]
    return min(filter(None, newest), key=lambda commit: commit.version, default=None)


def _newest(lake: Lake, table: Table, wanted: Callable[[Commit], bool]) -> Commit | None:
    for limit in (ledger.RECENT, None):
        if commit := next(filter(wanted, lake.commits(table.name, limit)), None):
            return commit
    return None


def _of_buckets(lake: Lake, view: FeatureView, recorded: Versions) -> Iterator[Need]:
    """Yield the versions of buckets that gold, hours and arrivals were made of: what others have
    changed since is found in the log. A refresh that is not recorded yet counts their appends."""
    gold = lake.tables.of(view).gold.name
    if recorded[gold] < 0:
        yield Need(0, "tidemill_batches tells nothing of it")
        return
    back = lake.commits(gold, lake.commits(gold, 1)[0].version - recorded[gold] + 1)
    ledgers = [("gold", lake.gold_state(view).ledger), ("tidemill_batches", back[-1].ledger)]
    if hour_buckets.useful(view) and lake.has(lake.tables.of(view).hours.name):
        append = ledger.newest_append(lake, lake.tables.of(view).hours.name, lake.generation)
        ledgers.append(("hours", append.ledger if append else None))
    if lake.pipeline.engine == "stateful":
        append = ledger.newest_append(lake, lake.tables.of(view).arrivals.name, lake.generation)
        ledgers.append(("arrivals", append.ledger if append else None))
    for reader, said in ledgers:
        if said is not None and "buckets" in said:
            yield Need(int(said["buckets"]), f"{reader} was made of it")


# -- files ---------------------------------------------------------------------------------------


def _checkpoint(folder: Path, names: list[str], needed: int) -> int:
    """Return the newest complete checkpoint from which the needed version can be read, and not
    after the one that Delta begins with; 0 without one."""
    newest = min(needed, ledger.last_checkpoint(folder))
    parts: dict[int, int] = {}
    for name in names:
        if (match := _CHECKPOINT.fullmatch(name)) and int(match[1]) <= newest:
            parts[int(match[1])] = parts.get(int(match[1]), int(match[2] or 1)) - 1
    return max((version for version, missing in parts.items() if missing <= 0), default=0)


def _version(name: str) -> int:
    """Return the version that a file of the log is of, -1 for a file of none."""
    match = _OF_VERSION.match(name)
    return int(match[1]) if match else -1
