"""Alerts of a pipeline without events: `no_events: 10m`.

    log of <pipeline>_events     ▮ 10:00      ▮ 10:04                  ▮ 10:30
    no_events: 10m                                        fired 10:14  resolved 10:30

Each commit of the events table is an arrival. A rule fires when the time since the newest one comes
to its length, by the clock of the run, and is resolved at the next arrival. What came while nobody
looked is in the log, so a silence that was over before is told of too; a rule that is new, or has
changed, begins with the newest arrival.

The rows are of the view `*` and the key `{}`. The newest ledger of that view says which rules
looked, up to which version of events, with a transaction as that of `episodes`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pyspark.sql import functions as F

from tidemill.config.alert_rule import AlertRule
from tidemill.config.settings import Clock, iso
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger, writer
from tidemill.lake.commits.failpoints import reach
from tidemill.lake.schema import creation
from tidemill.lake.times import of_micros
from tidemill.pipeline.alerts.episodes import FAR, Changed

VIEW = "*"
_NEVER = -1


@dataclass(frozen=True)
class Arrival:
    """A commit that brought events; or, before any, the one that made their table."""

    version: int
    at: datetime


@dataclass(frozen=True)
class Silence:
    """A time without events: since which arrival, when it was long enough, and when the next
    arrival ended it, None where none has. `told` is whether the table has its beginning."""

    rule: AlertRule
    since: Arrival
    fired: datetime
    resolved: Arrival | None = None
    told: bool = False


def silences(
    rule: AlertRule, arrivals: Sequence[Arrival], now: datetime, going_on: bool = False
) -> Iterator[Silence]:
    """Yield the times of at least the rule's length between arrivals, the oldest first, and from
    the newest to now; `going_on` says that the one after the first arrival is told of already."""
    for place, arrival in enumerate(arrivals):
        told = going_on and place == 0
        following = arrivals[place + 1] if place + 1 < len(arrivals) else None
        fired = arrival.at + rule.silence
        if told or (following.at if following else now) >= fired:
            yield Silence(rule, arrival, fired, following, told)


@dataclass(frozen=True)
class _Told:
    """What the newest ledger says: its number, up to which version of events, and for each rule, as
    it was written, the version since which it is silent, None where it is not."""

    number: int = 0
    version: int = _NEVER
    rules: dict[str, int | None] = field(default_factory=dict)


@dataclass
class SilenceWatch:
    """Watches for times without events. `told` hears how often an alert changed to a state.

    Of a folder, which one process alone writes, it remembers what the newest ledger says: that may
    lie far back in the log, behind the looks at views.
    """

    lake: Lake
    clock: Clock
    told: Callable[[str, Changed], None] | None = None
    _due: datetime | None = None
    _known: _Told | None = None

    @property
    def is_due(self) -> bool:
        """Whether a time without events has become long enough since the last look."""
        return self._due is not None and self.clock.now() >= self._due

    def look(self) -> int:
        """Look at what has arrived, and when; return the changes."""
        lake, rules = self.lake, self.lake.pipeline.silence_rules
        self._due = None
        if not rules and not lake.has(lake.tables.alerts.name):
            return 0
        told = self._known or (_looked(lake) if lake.has(lake.tables.alerts.name) else _Told())
        self._known = told if lake.place.folder else None
        if not rules and not told.rules:
            return 0
        now, arrivals = self.clock.now(), _arrivals(lake, told.version)
        found = [one for rule in rules for one in _of_rule(rule, told, arrivals, now)]
        open_ = {_written(one.rule): one for one in found if one.resolved is None}
        newest = arrivals[-1]
        ends = [rule.silence + newest.at for rule in rules if _written(rule) not in open_]
        self._due = min(ends, default=None)
        rows = [row for one in found for row in _rows(lake, one)]
        if {_written(rule) for rule in rules} != set(told.rules):
            settled = {rule.name for rule in rules if _written(rule) in told.rules}
            rows = [*_ended(lake, settled, now), *rows]
        since = {
            _written(rule): open_[_written(rule)].since.version if _written(rule) in open_ else None
            for rule in rules
        }
        if rows or since != told.rules or newest.version - told.version >= FAR:
            now_told = _Told(told.number + 1, newest.version, since)
            _append(lake, rows, now_told)
            self._known = now_told if lake.place.folder else None
        changed: Changed = {}
        for row in rows:
            kind = (row["alert"], row["state"])
            changed[kind] = changed.get(kind, 0) + 1
        if self.told and changed:
            self.told(VIEW, changed)
        return len(rows)


def _of_rule(
    rule: AlertRule, told: _Told, arrivals: Sequence[Arrival], now: datetime
) -> Iterator[Silence]:
    written = _written(rule)
    if written not in told.rules:
        return silences(rule, arrivals[-1:], now)
    since = told.rules[written]
    seen = [arrival for arrival in arrivals if arrival.version >= told.version] or arrivals[-1:]
    if since is None:
        return silences(rule, seen, now)
    begun = next((a for a in arrivals if a.version == since), arrivals[0])
    later = [a for a in seen if a.version > since]
    return silences(rule, [begun, *later], now, going_on=True)


def _arrivals(lake: Lake, version: int) -> list[Arrival]:
    """Return the commits that brought events, the oldest first, as far back as a version or where
    the log ends; before any the commit that made the table."""
    name = lake.tables.events.name
    commits = lake.commits(name)
    if _NEVER < version < commits[-1].version:
        commits = lake.commits(name, commits[0].version - version + 1)
    found = [Arrival(c.version, c.at) for c in ledger.appends(commits, lake.generation)]
    if not found:
        newest = ledger.newest_append(lake, name, lake.generation)
        oldest = newest or lake.commits(name, None)[-1]
        found = [Arrival(oldest.version, oldest.at)]
    return sorted(found, key=lambda arrival: arrival.version)


def _written(rule: AlertRule) -> str:
    return rule.model_dump_json(include={"name", "no_events"})


def _rows(lake: Lake, silence: Silence) -> Iterator[dict[str, Any]]:
    """Yield the rows of a silence that the table has not."""
    if not silence.told:
        yield _row(lake, silence.rule.name, "fired", silence.since, silence.fired, silence.fired)
    if silence.resolved is not None:
        at = silence.resolved.at
        yield _row(lake, silence.rule.name, "resolved", silence.since, silence.fired, at)


def _row(
    lake: Lake, alert: str, state: str, since: Arrival, fired: datetime, at: datetime
) -> dict[str, Any]:
    said = "|".join((lake.generation, VIEW, alert, str(since.version)))
    return {
        "alert": alert,
        "view": VIEW,
        "key": "{}",
        "episode": hashlib.sha256(said.encode()).hexdigest()[:16],
        "state": state,
        "at": at,
        "fired_at": fired,
        "features": json.dumps({"newest_arrival": iso(since.at)}),
        "version": since.version,
        "served_at": at,
    }


def _ended(lake: Lake, settled: set[str], now: datetime) -> Iterator[dict[str, Any]]:
    """Yield an end for each silence that goes on in the table by no rule that has looked before:
    one that was taken out or changed, or of events that are gone."""
    if not lake.has(lake.tables.alerts.name):
        return
    rows = lake.spark.table(lake.tables.alerts.name).where(F.col("view") == VIEW)
    resolved = rows.where("state = 'resolved'").select("episode")
    begun = rows.where("state = 'fired'").join(resolved, "episode", "anti")
    for row in begun.withColumn("fired_at", F.unix_micros("fired_at")).collect():
        if row["alert"] not in settled:
            same = {name: row[name] for name in ("alert", "view", "key", "episode", "features")}
            fired = {"fired_at": of_micros(row["fired_at"]), "version": row["version"]}
            yield {**same, **fired, "state": "resolved", "at": now, "served_at": now}


def _looked(lake: Lake) -> _Told:
    for limit in (ledger.RECENT, None):
        for commit in lake.commits(lake.tables.alerts.name, limit):
            said = commit.ledger or {}
            if said.get("view") == VIEW and said["generation"] == lake.generation:
                return _Told(said["look"], said["version"], dict(said["silent_since"]))
    return _Told()


def _append(lake: Lake, rows: Sequence[dict[str, Any]], told: _Told) -> None:
    table = lake.tables.alerts
    creation.ensure(lake, table)
    ledger_fields = {
        "generation": lake.generation,
        "batch": -1,
        "view": VIEW,
        "look": told.number,
        "version": told.version,
        "silent_since": told.rules,
    }
    types = {column.name: column.type for column in table.columns}
    names = [name for name in types if name not in ("look", "date")]
    schema = ", ".join(f"{name} {types[name]}" for name in names)
    frame = lake.spark.createDataFrame([tuple(row[n] for n in names) for row in rows], schema)
    frame = frame.withColumns(
        {"look": F.lit(told.number).cast("bigint"), "date": F.to_date("served_at")}
    )
    reach("alerts.looked")
    writer.write(
        frame.select(*table.column_names),
        table.name,
        ledger_fields,
        (f"{lake.app_id(table)}:{VIEW}", told.number),
    )
    reach("alerts.written")
