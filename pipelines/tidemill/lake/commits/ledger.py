"""Ledgers: what a table says, in its own commits, of how far it has read.

    append to quarantine, events, buckets   {generation, batch, digest ...}           txn: batch
    append to hours                         {generation, batch, buckets, number ...}  txn: number
    MERGE into gold                         {generation, batch, as_of, refresh ...}   txn: refresh
    maintenance of buckets, hours, gold     the same, and what it did: {upkeep}
    rebuild of a part of the buckets        {generation, batch, upkeep, rebuild}

A ledger is the commit's user metadata, JSON. Commits without one that move no data (OPTIMIZE, ALTER
...) are passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import SparkSession

from tidemill.config.settings import parse_time
from tidemill.lake import times

RECENT = 20
_GONE = "the history of"
UPKEEP = "upkeep"  # in a ledger: the commit is maintenance's, and what it did
REBUILD = (
    "rebuild"  # in a ledger: the commit changed rows that others had read, and by which rebuild
)
# What rebuilds said in `upkeep` before their ledgers carried `rebuild`.
_REBUILDS = ("buckets from events", "features from events", "columns emptied")
STATEFUL = "stateful"  # the mode of a merge of what the state emitted
_MOVE_NO_DATA = (
    "OPTIMIZE",
    "VACUUM",
    "CREATE TABLE",
    "SET TBLPROPERTIES",
    "UNSET TBLPROPERTIES",
    "ADD CONSTRAINT",
    "DROP CONSTRAINT",
    "CHANGE COLUMN",
    "ADD COLUMNS",
    "CLUSTER BY",
    "REORG",
    "COMPUTE STATS",
    "UPGRADE PROTOCOL",
    "SET TABLE COMMENT",
)


@dataclass(frozen=True)
class Commit:
    """One commit of a table's history; `ledger` is None where it is not one of ours."""

    version: int
    operation: str
    at: datetime
    ledger: Mapping[str, Any] | None
    metrics: Mapping[str, str]
    parameters: Mapping[str, str]

    @property
    def moves_data(self) -> bool:
        """Whether the commit may have changed rows."""
        return not self.operation.startswith(_MOVE_NO_DATA)

    @property
    def makes_table(self) -> bool:
        """Whether the table was made by it, or made again and empty."""
        return self.operation.endswith(("CREATE TABLE", "REPLACE TABLE"))

    @property
    def of_rebuild(self) -> bool:
        """Whether a rebuild of a part changed rows that others had read."""
        fields = self.ledger or {}
        return REBUILD in fields or fields.get(UPKEEP) in _REBUILDS

    @property
    def is_served(self) -> bool:
        """Whether a version of gold is what readers are to be given: one with a ledger, and not of
        a refresh to an earlier time, which is for its asker."""
        fields = self.ledger or {}
        return bool(fields.get("as_of")) and not fields.get("earlier")

    def metric(self, name: str) -> int:
        """Return a count of the commit's operation metrics, 0 where it has none."""
        return int(self.metrics.get(name, 0))


def commits(spark: SparkSession, table: str, limit: int | None = RECENT) -> list[Commit]:
    """Return the table's newest commits, newest first, by a query; all that are kept when `limit`
    is None."""
    newest = "" if limit is None else f" LIMIT {limit}"
    history = spark.sql(f"DESCRIBE HISTORY {table}{newest}")
    return [
        Commit(
            row["version"],
            row["operation"],
            row["timestamp"],
            _ledger(row["userMetadata"]),
            _metrics(row["operationMetrics"]),
            row["operationParameters"] or {},
        )
        for row in times.collect(history)
    ]


def of_log(log: Path, limit: int | None = RECENT) -> list[Commit]:
    """Return what `commits` yields from the files of a log in a folder, without a query."""
    newest = newest_version(log)
    history: list[Commit] = []
    for version in range(newest, -1, -1):
        if len(history) == limit or (fields := _commit_info(log, version)) is None:
            break
        parameters = fields.get("operationParameters") or {}
        history.append(
            Commit(
                version,
                str(fields.get("operation", "")),
                datetime.fromtimestamp(fields["timestamp"] / 1000, timezone.utc),
                _ledger(fields.get("userMetadata")),
                _metrics(fields.get("operationMetrics")),
                {name: _as_text(value) for name, value in parameters.items()},
            )
        )
    return history


def _metrics(said: Mapping[str, Any] | None) -> dict[str, str]:
    """Return a commit's counts by the names that Spark's Delta gives them; `deltalake` writes them
    as num_output_rows."""
    return {_camel(name): _as_text(value) for name, value in (said or {}).items()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def newest_version(log: Path) -> int:
    """Return the newest version of a log in a folder, -1 without one."""
    version = last_checkpoint(log)
    if version < 0:
        version = (
            0 if _file(log, 0).exists() else max(map(_version, log.glob("[0-9]*.json")), default=-1)
        )
    while _file(log, version + 1).exists():
        version += 1
    return version


def last_checkpoint(log: Path) -> int:
    """Return the version of the checkpoint that Delta begins with, in a folder; -1 without one."""
    try:
        return int(json.loads((log / "_last_checkpoint").read_text("utf-8"))["version"])
    except (OSError, ValueError, KeyError):
        return -1


def _file(log: Path, version: int) -> Path:
    return log / f"{version:020}.json"


def _version(file: Path) -> int:
    return int(file.name.partition(".")[0])


def _commit_info(log: Path, version: int) -> Mapping[str, Any] | None:
    """Return what a commit says of itself, None when the log no longer has it."""
    try:
        with _file(log, version).open(encoding="utf-8") as lines:
            for line in lines:
                action: dict[str, Any] = json.loads(line)
                if "commitInfo" in action:
                    return dict(action["commitInfo"])
    except FileNotFoundError:
        return None
    return {"timestamp": 0}


class Reader(Protocol):
    """Who can read a table's commits: a lake."""

    def commits(self, table: str, limit: int | None = RECENT) -> list[Commit]:
        """Return the table's newest commits."""


def _ledger(text: str | None) -> Mapping[str, Any] | None:
    """Return the ledger that user metadata holds; somebody else's metadata is none."""
    try:
        fields = json.loads(text) if text else None
    except ValueError:
        return None
    ours = isinstance(fields, dict) and "generation" in fields and "batch" in fields
    return fields if ours else None


def appends(history: Iterable[Commit], generation: str | None = None) -> Iterator[Commit]:
    """Return those commits that are appends of this generation, of any by default; those of
    maintenance, whose ledgers name a batch too, brought none."""
    return (
        c
        for c in history
        if c.ledger and generation in (None, c.ledger["generation"]) and UPKEEP not in c.ledger
    )


def changed_by_another(
    reader: Reader, table: str, after: int, recent: Sequence[Commit]
) -> str | None:
    """Return which commit after a version changed rows that were there before: one that is not
    ours, or a rebuild's; None without one. Appends of ours only add rows, and expiry removes what
    no window holds.

    `recent` are the table's newest commits; more of them are read where they do not reach back.
    """
    if recent[0].version < after:  # lost and made again, or put back from a copy
        return f"the newest version of {table} is {recent[0].version}, not {after} or later"
    missing = recent[-1].version - after - 1
    history = recent if missing <= 0 else reader.commits(table, len(recent) + missing)
    if history[-1].version > after + 1:
        return f"{_GONE} {table} after version {after} is gone"
    for commit in history:
        if commit.version > after and commit.moves_data and not commit.ledger:
            return f"{commit.operation} at version {commit.version} of {table} carries no ledger"
        if commit.version > after and commit.of_rebuild:
            return f"version {commit.version} of {table} is a rebuild's"
    return None


def is_gone(why: str) -> bool:
    """Tell whether what `changed_by_another` says is only that the log was cleaned: what gold holds
    cannot be added to then, but need not be made again while nothing moves."""
    return why.startswith(_GONE)


def newest_append(
    reader: Reader, table: str, generation: str, recent: Sequence[Commit] | None = None
) -> Commit | None:
    """Return the generation's newest append, reading the whole history only when it is not among
    `recent`, the newest commits, which are read where not given."""
    history = recent or reader.commits(table)
    if len(history) == RECENT and not any(appends(history, generation)):
        history = reader.commits(table, None)
    return next(appends(history, generation), None)


@dataclass(frozen=True)
class GoldState:
    """Where gold stands.

    `ledger` is the newest one that can be read; `refresh` the next refresh number, above every
    number used; `recompute_reason` says why the rows must be recomputed whatever the ledger says,
    else None.
    """

    ledger: Mapping[str, Any] | None
    refresh: int
    recompute_reason: str | None
    version: int

    @property
    def as_of(self) -> datetime | None:
        """The end of the windows that gold holds."""
        return instant(self.ledger["as_of"]) if self.ledger else None

    @property
    def batch(self) -> int:
        """The newest batch that gold counts, -1 for none."""
        return int(self.ledger["batch"]) if self.ledger else -1

    @property
    def kept_by_state(self) -> bool:
        """Whether gold is as the stateful engine of this generation left it."""
        return not self.recompute_reason and (self.ledger or {}).get("mode") == STATEFUL


def gold_state(reader: Reader, table: str, generation: str, definition: str) -> GoldState:
    """Return where the gold table stands, from its history alone."""
    history = reader.commits(table)
    if len(history) == RECENT and not any(commit.ledger for commit in history):
        history = reader.commits(table, None)
    recompute_reason = None
    for commit in history:
        if commit.ledger:
            recompute_reason = recompute_reason or _another(commit.ledger, generation, definition)
            number = int(commit.ledger["refresh"]) + 1
            ours = commit.ledger if commit.ledger["generation"] == generation else None
            return GoldState(ours, number, recompute_reason, history[0].version)
        if commit.moves_data:
            recompute_reason = f"{commit.operation} at version {commit.version} carries no ledger"
    return GoldState(
        None, history[0].version + 1, recompute_reason or "no readable ledger", history[0].version
    )


def _another(ledger: Mapping[str, Any], generation: str, definition: str) -> str | None:
    if ledger["generation"] != generation:
        return "another generation"
    return None if ledger["definition"] == definition else "another definition of the view"


def instant(text: str) -> datetime:
    """Return the time that a ledger writes as `2026-11-21T10:05:00Z`."""
    return parse_time(text)
