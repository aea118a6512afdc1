"""A running lake, looked at from outside: what `tidemill top` shows, frame by frame.

    logs of bronze, events, gold ──batches.since──► rows of the last hour ─┐
    checkpoints' offsets ──────────────────────────► backlog               ├─► frame
    lock file ─────────────────────────────────────► who writes ───────────┘

A frame reads what was committed since the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession

from tidemill.config.dataflow import Query
from tidemill.config.settings import Clock, Place, iso
from tidemill.lake import batches, discovery, lock
from tidemill.lake.batches import BatchRow, Flow
from tidemill.monitoring.schema_alarms import SchemaAlarms

FIRST = 40  # commits of each table that the first frame reads
KEPT = timedelta(hours=1)
RATE = timedelta(minutes=10)
BARS = 24  # newest batches shown as bars
Frame = dict[str, Any]


@dataclass
class Watched:
    """A pipeline of which the newest batches are known."""

    flow: Flow
    versions: dict[str, int] = field(default_factory=dict)
    rows: dict[tuple[str, str | None], list[BatchRow]] = field(default_factory=dict)
    alarms: SchemaAlarms = field(default_factory=SchemaAlarms)

    def look(self, now: datetime) -> None:
        """Read the batches that are new, and forget old ones, the newest of each query never."""
        for table in self.flow.told_by:
            if table not in self.versions:
                newest = self.flow.reader.commits(table, 1)
                self.versions[table] = max((newest[0].version if newest else -1) - FIRST, -1)
        is_first = not self.rows
        new_rows = batches.since(self.flow, self.versions)
        if is_first:
            self.alarms.read_log(self.flow, new_rows)
        else:
            self.alarms.take(new_rows)
        self.versions = batches.seen(self.flow, new_rows, self.versions)
        for row in new_rows:
            self.rows.setdefault((self._query_of(row), row.view), []).append(row)
        for who, rows in self.rows.items():
            self.rows[who] = [r for r in rows[:-BARS] if r.committed_at > now - KEPT] + rows[-BARS:]

    def _query_of(self, row: BatchRow) -> str:
        """Return the query among whose batches a row is shown: a refresh is among those of the
        query whose ledgers are in the same table."""
        table = self.flow.table(row.query, row.view)
        return next(query.name for query, _, its in self.flow.ledgers if its == table)

    def queries(self, now: datetime) -> Iterator[Frame]:
        """Yield where each query stands, in the order of the flow."""
        for query, view, _ in self.flow.ledgers:
            yield _query(self.flow, query, view, self.rows.get((query.name, view), []), now)


def _query(
    flow: Flow, query: Query, view: str | None, rows: Sequence[BatchRow], now: datetime
) -> Frame:
    newest = rows[-1] if rows else None
    recent = [row for row in rows if row.committed_at > now - RATE]
    events = sum(row.counts.get("events", 0) for row in recent)
    as_of = newest.as_of if newest else None
    return {
        "query": query.name,
        "view": view,
        "batch": newest and newest.batch,
        "committed_at": newest and iso(newest.committed_at),
        "age_seconds": newest and round((now - newest.committed_at).total_seconds()),
        "events": newest.counts.get("events", 0) if newest else None,
        "events_per_minute": round(events / (RATE / timedelta(minutes=1)), 1),
        "seconds": dict(newest.seconds) if newest else {},
        "backlog": None if query.is_fed else batches.waiting(flow, query),
        "refused": dict(newest.refused) if newest else {},
        "keys_changed": newest and newest.counts.get("keys_changed"),
        "as_of": as_of and iso(as_of),
        "freshness_seconds": as_of and round((now - as_of).total_seconds()),
        "newest_events": [row.counts.get("events", 0) for row in rows[-BARS:]],
    }


def frame(place: Place, watched: Sequence[Watched], clock: Clock) -> Frame:
    """Return `{at, lake, writer, pipelines}`: where each query of each pipeline stands now."""
    now = clock.now()
    for one in watched:
        one.look(now)
    return {
        "at": iso(now),
        "lake": str(place),
        "writer": lock.holder(place.folder) if place.folder else None,
        "pipelines": [
            {
                "pipeline": one.flow.pipeline,
                "alarms": list(one.alarms.at(now)),
                "queries": list(one.queries(now)),
            }
            for one in watched
        ],
    }


def frames(place: Place, clock: Clock, session: Callable[[], SparkSession]) -> Iterator[Frame]:
    """Yield a frame whenever one is asked for. A catalog's tables are found through the session,
    which registers them; a folder's without one."""
    if place.folder:
        flows = discovery.flows(discovery.Folder(place.folder), place)
    else:
        flows = discovery.flows(discovery.Schema(session()), place)
    watched = [Watched(flow) for flow in flows]
    while True:
        yield frame(place, watched, clock)


def totals(snapshot: Frame) -> Mapping[str, int]:
    """Return what stands in a frame's first line: rows waiting, and the age of the oldest gold."""
    queries = [query for one in snapshot["pipelines"] for query in one["queries"]]
    ages = [q["freshness_seconds"] for q in queries if q["freshness_seconds"] is not None]
    waiting = sum(q["backlog"] or 0 for q in queries)
    return {"backlog": waiting, **({"freshness_seconds": max(ages)} if ages else {})}


def span(seconds: int) -> str:
    """Return a length of time in its two largest units, as `3h 12m`."""
    if seconds < 0:
        return f"-{span(-seconds)}"
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (left, "s")]
    first = next((i for i, (number, _) in enumerate(parts) if number), 3)
    return " ".join(f"{number}{unit}" for number, unit in parts[first : first + 2])
