"""Alarms of a source whose schema has changed: which field, what it should be, since when.

batches ──refused, expected──► an alarm per query, field and fault, for as long as the last
                               hour has such records
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from tidemill.config.settings import iso
from tidemill.lake.batches import BatchRow, Flow
from tidemill.lake.commits.ledger import Commit
from tidemill.pipeline.silver.validation import changed_fields

QUIET = timedelta(hours=1)  # without such a record, after which an alarm ends
Which = tuple[str, str, str, str]  # query, view or dimension, field, fault


@dataclass(frozen=True)
class Alarm:
    """Records that were refused for one field, from the first such batch to the newest."""

    expected: str
    since: datetime
    newest: datetime
    records: int

    def told(self, which: Which) -> dict[str, Any]:
        """Return the alarm as a frame of `tidemill top` holds it."""
        query, view, name, fault = which
        return {
            "query": query,
            "view": view or None,
            "field": name,
            "fault": fault,
            "expected": self.expected,
            "since": iso(self.since),
            "newest": iso(self.newest),
            "records": self.records,
        }


@dataclass
class SchemaAlarms:
    """The alarms of a pipeline; batches are taken in once each, the oldest first."""

    alarms: dict[Which, Alarm] = field(default_factory=dict)

    def read_log(self, flow: Flow, rows: Iterable[BatchRow]) -> None:
        """Take in what the logs of tables still say of all batches, where the newest ones, `rows`,
        were refused for a field."""
        tables = {flow.table(row.query, row.view) for row in rows if row.expected}
        for query, view, table in flow.ledgers:
            if table in tables:
                commits = sorted(flow.reader.commits(table, None), key=lambda c: c.version)
                for commit in commits:
                    self._take(query.name, view, commit.at, commit)

    def take(self, rows: Iterable[BatchRow]) -> None:
        """Take in batches that are new."""
        for row in rows:
            self._add(row.query, row.view, row.committed_at, row.refused, row.expected)

    def at(self, now: datetime) -> Iterator[dict[str, Any]]:
        """Yield the alarms that are on."""
        for which, alarm in sorted(self.alarms.items()):
            if now - alarm.newest < QUIET:
                yield alarm.told(which)

    def _take(self, query: str, view: str | None, at: datetime, commit: Commit) -> None:
        said = commit.ledger or {}
        self._add(query, view, at, said.get("refused", {}), said.get("expected", {}))

    def _add(
        self,
        query: str,
        view: str | None,
        at: datetime,
        refused: Mapping[str, int],
        types: Mapping[str, str],
    ) -> None:
        for fault, name, expected, records in changed_fields.faults(refused, types):
            which = query, view or "", name, fault
            before = self.alarms.get(which)
            if before is None or at - before.newest >= QUIET:
                before = Alarm(expected, at, at, 0)
            self.alarms[which] = replace(
                before, expected=expected, newest=at, records=before.records + records
            )
