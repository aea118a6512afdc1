"""What each batch did, told from the tables' own ledgers.

    bronze    STREAMING UPDATE ─► land      records
    events    clean's append   ─► clean     accepted, refused by reason, duplicates, how late
    dimension MERGE            ─► dimension changes accepted, refused by reason, rows merged
    a stream's append          ─► stream    rows, and how many of them joined two
    gold      MERGE            ─► feature   buckets, keys, rows merged (refresh: no new batch)
    checkpoints' offsets ───────► backlog   rows that the batch left waiting

Nothing is counted in the batch functions themselves (on Spark Connect they run in another process).
Only names and commits are needed, so another process tells the same of a folder without Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from tidemill.config import dataflow
from tidemill.config.dataflow import OF_VIEW, Query, table_names
from tidemill.lake.checkpoints import Checkpoint
from tidemill.lake.commits import ledger
from tidemill.lake.commits.ledger import RECENT, Commit

Versions = Mapping[str, int]
REFRESH = "refresh"  # what a row calls itself that took no batch in
COUNTS = ("events", "accepted", "quarantined", "duplicates", "buckets", "keys_changed")
MERGED = {
    "inserted": "numTargetRowsInserted",
    "updated": "numTargetRowsUpdated",
    "deleted": "numTargetRowsDeleted",
    "copied": "numTargetRowsCopied",
}


@dataclass(frozen=True)
class BatchRow:
    """One row of `tidemill_batches`."""

    query: str
    generation: str
    batch: int
    committed_at: datetime
    version: int
    view: str | None = None
    as_of: datetime | None = None
    ledger: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    late: Mapping[str, int] = field(default_factory=dict)
    late_seconds: int | None = None
    late_most: int | None = None
    merged: Mapping[str, int] = field(default_factory=dict)
    backlog: int | None = None
    overflowed: Mapping[str, int] = field(default_factory=dict)
    unmatched: Mapping[str, int] = field(default_factory=dict)
    expected: Mapping[str, str] = field(default_factory=dict)  # types of fields refused for

    @property
    def freshness(self) -> int | None:
        """Seconds from as_of to the commit: how old the features were when they could be read."""
        return round((self.committed_at - self.as_of).total_seconds()) if self.as_of else None


class Reader(ledger.Reader, Protocol):
    """Who can read a table's commits, and tell whether it has any."""

    def is_as_made(self, table: str) -> bool:
        """Return whether nothing was committed since the table was made; False says nothing."""


@dataclass
class Remembering:
    """Reads each table's commits once: in a catalog that is a query."""

    reader: Reader
    known: dict[str, list[Commit]] = field(default_factory=dict)

    def commits(self, table: str, limit: int | None = RECENT) -> list[Commit]:
        """Return the table's newest commits, as they were when it was asked first."""
        known = self.known.get(table, [])
        if not known or (known[-1].version > 0 and (limit is None or len(known) < limit)):
            known = self.known[table] = self.reader.commits(table, limit)
        return known[:limit]

    def is_as_made(self, table: str) -> bool:
        """Return whether nothing was committed since the table was made."""
        return table not in self.known and self.reader.is_as_made(table)


@dataclass(frozen=True)
class Flow:
    """A pipeline's tables by name, its checkpoints, and who reads the commits."""

    pipeline: str
    views: tuple[str, ...]
    reader: Reader
    checkpoints: Path
    dimensions: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()

    @property
    def ledgers(self) -> list[tuple[Query, str | None, str]]:
        """Each query whose batches a table's commits tell of, in the order of the flow: the query,
        the view, dimension or stream, where each has a table that tells of its own, and the
        table."""
        ledgers: list[tuple[Query, str | None, str]] = []
        for query in dataflow.of(None, self.views, self.dimensions, streams=self.streams):
            if query.ledger and query.told_of:
                (name,) = query.tables((query.ledger,), self.pipeline, self.views)
                ledgers.append((query, query.told_of, name))
            elif query.ledger:
                of_view = query.ledger in OF_VIEW
                views: Sequence[str | None] = self.views if of_view else (None,)
                names = table_names(query.ledger, self.pipeline, self.views)
                ledgers += [(query, *pair) for pair in zip(views, names, strict=True)]
        return ledgers

    @property
    def told_by(self) -> list[str]:
        """The names of the tables whose commits tell of batches."""
        return [table for _, _, table in self.ledgers]

    def table(self, query: str, view: str | None) -> str:
        """Return the name of the table that tells of a query's batches; a refresh, which takes no
        batch in, is told of by the view's gold."""
        known = {(of.name, its_view): table for of, its_view, table in self.ledgers}
        return known.get((query, view), f"{view}_features")

    def checkpoint(self, query: Query) -> Checkpoint:
        """Return a query's checkpoint, to be read."""
        name = query.checkpoint
        return Checkpoint(name, self.checkpoints / f"{self.pipeline}_{name}", "")

    def newer(self, table: str, after: int) -> list[Commit]:
        """Return the table's commits after a version, oldest first."""
        if self.reader.is_as_made(table):
            return []
        commits = self.reader.commits(table)
        if len(commits) == RECENT and commits[-1].version > after + 1:
            commits = self.reader.commits(table, commits[0].version - after)
        return sorted((c for c in commits if c.version > after), key=lambda c: c.version)


def since(flow: Flow, after: Versions) -> list[BatchRow]:
    """Return what was committed after the versions given, table by table, oldest first."""
    flow = replace(flow, reader=Remembering(flow.reader))
    rows: list[BatchRow] = []
    for query, view, table in flow.ledgers:
        commits = flow.newer(table, after[table])
        if query.is_fed:
            rows += _of_sink(flow, query, commits)
        elif view is None or query.told_of:
            rows += _of_batches(flow, query, commits)
        else:
            rows += _of_gold(flow, query, view, commits)
    return rows


def seen(flow: Flow, rows: Sequence[BatchRow], before: Versions) -> dict[str, int]:
    """Return the versions up to which `rows` tell, for the next call of `since`."""
    newest = dict(before)
    for row in rows:
        name = flow.table(row.query, row.view)
        newest[name] = max(newest[name], row.version)
    return newest


def waiting(flow: Flow, query: Query, batch: int | None = None, at: datetime | None = None) -> int:
    """Return how many rows wait for a query that reads a table of the pipeline, or waited after a
    batch at a time.

    They are the rows of the commits that the checkpoint's offsets have not come to; a commit that
    was read in part counts whole.
    """
    (source,) = query.tables((query.reads,), flow.pipeline, flow.views)
    read_to = flow.checkpoint(query).read_to(batch)
    commits = flow.newer(source, (read_to or 0) - 1)
    return sum(_rows(commit) for commit in commits if at is None or commit.at <= at)


def _rows(commit: Commit) -> int:
    """Return the rows that a commit brings to the query behind it."""
    if commit.operation == "STREAMING UPDATE":
        return commit.metric("numOutputRows")
    fields = commit.ledger or {}
    return int(fields.get("accepted", 0)) if ledger.UPKEEP not in fields else 0


def _waited(flow: Flow, query: Query, fields: Mapping[str, Any], commit: Commit) -> int | None:
    """Return the backlog that a batch left; None where its checkpoint no longer tells."""
    checkpoint, batch = flow.checkpoint(query), int(fields["batch"])
    known = checkpoint.identity().get("generation") == fields["generation"]
    if not known or checkpoint.read_to(batch) is None:
        return None
    return waiting(flow, query, batch, commit.at)


def _of_sink(flow: Flow, query: Query, commits: Iterable[Commit]) -> Iterator[BatchRow]:
    """Yield a row per batch of Spark's own Delta sink, which counts its rows."""
    generation = str(flow.checkpoint(query).identity().get("generation", ""))
    for commit in commits:
        if commit.operation == "STREAMING UPDATE":
            counts = {"events": commit.metric("numOutputRows")}
            batch = int(commit.parameters["epochId"])
            yield BatchRow(
                query.name,
                generation,
                batch,
                commit.at,
                commit.version,
                query.told_of,
                counts=counts,
            )


def _of_batches(flow: Flow, query: Query, commits: Iterable[Commit]) -> Iterator[BatchRow]:
    """Yield a row per batch that has a ledger, with what the ledger counts; of a MERGE
    also what became of its rows."""
    for commit in commits:
        if commit.ledger and ledger.UPKEEP not in commit.ledger:
            fields = commit.ledger
            merged: Mapping[str, int] = {}
            if commit.operation == "MERGE":
                merged = {name: commit.metric(told_as) for name, told_as in MERGED.items()}
            yield BatchRow(
                query.name,
                fields["generation"],
                int(fields["batch"]),
                commit.at,
                commit.version,
                query.told_of,
                counts={name: int(fields[name]) for name in COUNTS if name in fields},
                seconds=fields.get("seconds", {}),
                refused=fields.get("refused", {}),
                late=fields.get("late", {}),
                late_seconds=fields.get("late_seconds"),
                late_most=fields.get("late_most"),
                unmatched=fields.get("unmatched", {}),
                expected=fields.get("expected", {}),
                merged=merged,
                backlog=_waited(flow, query, fields, commit),
            )


def _of_gold(flow: Flow, query: Query, view: str, commits: Iterable[Commit]) -> Iterator[BatchRow]:
    """Yield a row per refresh: of the query when it took new batches in, else `refresh`."""
    refreshes = [commit for commit in commits if commit.ledger]
    appends = _appends(flow, f"{view}_buckets", refreshes)
    for commit in refreshes:
        fields: Mapping[str, Any] = commit.ledger or {}
        new = range(fields["from_batch"] + 1, fields["batch"] + 1)
        mine = [a for a in appends if a["generation"] == fields["generation"] and a["batch"] in new]
        sums = {name: sum(int(a.get(name, 0)) for a in mine) for name in ("events", "buckets")}
        merge = {"merge": commit.metric("executionTimeMs") / 1000}
        yield BatchRow(
            query.name if mine else REFRESH,
            fields["generation"],
            fields["batch"] if mine else fields["refresh"],
            commit.at,
            commit.version,
            view,
            ledger.instant(fields["as_of"]),
            json.dumps(fields),
            {**(sums if mine else {}), "keys_changed": int(fields["changed"])},
            {**fields["seconds"], **merge},
            merged={name: commit.metric(told_as) for name, told_as in MERGED.items()},
            backlog=_waited(flow, query, fields, commit),
            overflowed=fields.get("overflowed", {}),
        )


def _appends(flow: Flow, buckets: str, refreshes: Sequence[Commit]) -> list[Mapping[str, Any]]:
    """Return the ledgers of the bucket table, as far back as the refreshes found took batches
    in."""
    if not refreshes:
        return []
    oldest: Mapping[str, Any] = refreshes[0].ledger or {}
    commits = flow.reader.commits(buckets)
    ledgers = [c.ledger for c in ledger.appends(commits) if c.ledger]
    known = any(
        t["generation"] == oldest["generation"] and t["batch"] <= oldest["from_batch"]
        for t in ledgers
    )
    if len(commits) == RECENT and not known:
        ledgers = [c.ledger for c in ledger.appends(flow.reader.commits(buckets, None)) if c.ledger]
    return ledgers
