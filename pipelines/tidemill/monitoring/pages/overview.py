"""The first page: each view and query at a glance, and what needs a hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tidemill.monitoring.pages.content import Card, Page, of_key, of_view
from tidemill.monitoring.pages.lake_reads import Facts, LakeReads
from tidemill.monitoring.report.html import Link, Section, Table
from tidemill.monitoring.status import span
from tidemill.query.json_values import json_of

_MOST = 100  # alerts that are shown
_QUERIES = ("query", "view", "batch", "committed", "events/min", "backlog", "as of", "behind")


def overview(lake: LakeReads, views: Sequence[str], at: str) -> Page:
    """Return the page of a lake: how old each view is, what waits, what was refused, alarms."""
    frame = next(lake.frames())
    described = [lake.describe(view) for view in views]
    refused = lake.quarantine.summary()
    cards = [_fresh(each) for each in described]
    cards.append(Card(f"{refused['open']:,}", "refused records are open", "/quarantine"))
    sections = [
        *_failed(lake.last_error()),
        *_alarms(frame),
        *_alerts(lake.alerts()),
        *_queries(frame),
        _views(described),
    ]
    return Page("At a glance", f"What the tables say at {at}.", cards, sections)


def _fresh(view: Facts) -> Card:
    age = view["age_seconds"]
    number = "never refreshed" if age is None else f"{span(age)} old"
    return Card(number, f"{view['view']}, as of {view['as_of'] or '-'}", of_view(view["view"]))


def _failed(error: Facts | None) -> Iterator[Section]:
    """Yield the error that the last run ended with, and what would be right; nothing if it ended
    well."""
    if error is not None:
        rows = [[error["at"], error["where"], error["message"], error["expected"]]]
        headings = ["at", "where", "what", "expected"]
        yield Section(
            "The last run failed", "It stands until one ends well.", Table(headings, rows)
        )


def _alarms(frame: Facts) -> Iterator[Section]:
    """Yield what somebody has to look at, with the cure; nothing where all is well."""
    rows: list[list[Any]] = []
    for each in frame["pipelines"]:
        for alarm in each["alarms"]:
            what = f"{alarm['field']}: {alarm['fault']}, {alarm['expected']} expected"
            cure = "mend the producer or the declared type, then `replay` the records"
            rows.append([each["pipeline"], alarm["query"], what, alarm["since"], cure])
        for query in each["queries"]:
            if query["backlog"]:
                what, cure = f"{query['backlog']:,} rows wait", "`tidemill run`, or wait for it"
                rows.append([each["pipeline"], query["query"], what, query["committed_at"], cure])
    headings = ["pipeline", "query", "what", "since", "what to do"]
    if rows:
        yield Section("Needs a look", "Fields that changed, rows that wait.", Table(headings, rows))


def _alerts(found: Sequence[Facts]) -> Iterator[Section]:
    """Yield for which keys a rule holds; nothing where none does."""
    if found:
        rows = [
            [
                each["alert"],
                Link(" ".join(map(str, each["key"].values())), of_key(each["view"], each["key"])),
                each["fired_at"],
                json_of(each["features"]),
            ]
            for each in found[:_MOST]
        ]
        headings = ["alert", "key", "since", "what it read"]
        what = f"Rules that hold for a key: {len(found):,}, the newest {_MOST} here."
        yield Section("Alerts", what, Table(headings, rows))


def _queries(frame: Facts) -> Iterator[Section]:
    for each in frame["pipelines"]:
        rows = [
            [
                query["query"],
                query["view"],
                query["batch"],
                query["committed_at"],
                query["events_per_minute"],
                query["backlog"],
                query["as_of"],
                None if query["freshness_seconds"] is None else span(query["freshness_seconds"]),
            ]
            for query in each["queries"]
        ]
        writer = frame["writer"]
        holder = f" {writer['command']} writes." if writer and "command" in writer else ""
        yield Section(
            f"Queries of {each['pipeline']}",
            f"Their newest batches.{holder}",
            Table(_QUERIES, rows),
            empty="" if rows else "No query has run.",
        )


def _views(described: Sequence[Facts]) -> Section:
    rows = [
        [
            Link(each["view"], of_view(each["view"])),
            ", ".join(each["keys"]),
            len(each["features"]),
            each["gold_version"],
            each["as_of"],
            ", ".join(map(str, each["unfinished"])) or None,
        ]
        for each in described
    ]
    headings = ["view", "keys", "features", "gold version", "as of", "unfinished rebuilds"]
    return Section("Feature views", "What this pipeline keeps.", Table(headings, rows))
