"""The pages of a pipeline: batches and where their time went, quality, refused records, files, the
online store."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from tidemill.monitoring.pages.content import Button, Card, Page, cell
from tidemill.monitoring.pages.lake_reads import LakeReads
from tidemill.monitoring.report import page as report
from tidemill.monitoring.report.html import Link, Section, Table
from tidemill.monitoring.status import span

DAYS = 7


def batches(lake: LakeReads) -> Page:
    """Return the newest batches, and where their time went."""
    numbers = lake.numbers(DAYS)
    totals = numbers["totals"]
    cards = [
        Card(f"{totals['events']:,}", "records judged"),
        Card(f"{totals['keys_changed']:,}", f"keys changed in {totals['refreshes']:,} refreshes"),
        Card(f"{totals['tick_seconds']:.1f} s", "median refresh"),
        Card(f"{totals['backlog']:,}", "rows waited at the last batch"),
    ]
    shown = [
        report.volumes(numbers),
        report.latency(numbers),
        *report.profile(numbers),
        report.backlog(numbers),
        report.merged(numbers),
        report.newest_batches(numbers),
    ]
    return Page("Batches", f"The last {DAYS} days.", cards, shown)


def files(lake: LakeReads) -> Page:
    """Return the files of each table."""
    tables = lake.files()
    total = sum(each["files"] or 0 for each in tables)
    small = sum(each["small_files"] or 0 for each in tables)
    cards = [Card(f"{total:,}", "data files"), Card(f"{small:,}", "small files")]
    what = "`tidemill maintain --dry-run` says what upkeep would do; `run` does it by itself."
    return Page("Files and upkeep", what, cards, [report.files(tables)])


def quality(lake: LakeReads) -> Page:
    """Return what the newest run of the quality gate found."""
    checks = lake.checks()
    failed = [each for each in checks if not each["ok"]]
    rows = [
        ["passed" if e["ok"] else "failed", e["check_name"], e["table_name"], e["found"]]
        for e in checks
    ]
    rows.sort(key=lambda row: row[0])
    at = checks[0]["at"] if checks else None
    cards = [Card(f"{len(failed)} of {len(checks)}", f"checks failed, {at}")] if checks else []
    table = Table(["result", "check", "table", "found"], rows)
    empty = "" if rows else "No run yet: `tidemill quality` makes one."
    return Page(
        "Quality",
        "What the newest `tidemill quality` found.",
        cards,
        [Section("Checks", "Failed ones first.", table, empty=empty)],
    )


def quarantine(lake: LakeReads) -> Page:
    """Return the refused records by reason, and the newest open ones."""
    found = lake.quarantine.summary()
    cards = [
        Card(f"{found['open']:,}", "open"),
        Card(f"{found['replayed']:,}", "replayed"),
        Card(f"{found['records']:,}", "refused in all"),
    ]
    reasons = [
        [each["reason"], each["records"], each["open"], str(each["newest"])]
        for each in found["reasons"]
    ]
    newest = [
        [
            Link(each["record_id"], f"/quarantine/record?{urlencode({'id': each['record_id']})}"),
            ", ".join(each["reasons"]),
            str(each["ingested_at"]),
        ]
        for each in found["newest"]
    ]
    sections = [
        Section(
            "Reasons",
            "A record that broke two rules counts in both.",
            Table(["reason", "records", "open", "newest"], reasons),
            empty="" if reasons else "Nothing was refused.",
        ),
        Section(
            "Newest open records",
            "A record leads to its payload, and to its replay.",
            Table(["record", "reasons", "ingested"], newest),
            empty="" if newest else "No record is open.",
        ),
    ]
    return Page("Quarantine", "Records that clean refused, and why.", cards, sections)


def refused_record(lake: LakeReads, record_id: str) -> Page:
    """Return one refused record whole, with its replay; UsageError for an unknown one."""
    found = lake.quarantine.record(record_id)
    rows = [[name, cell(value)] for name, value in found.items()]
    button = Button(
        "Replay",
        "/replay",
        {"record_id": record_id},
        {"set": "FIELD=VALUE to set first, or nothing"},
    )
    what = "A replay lands it again, with a field set where one is named; the next run takes it in."
    whole = Section("The record", "As it came, and why it was refused.", Table(["", ""], rows))
    return Page("A refused record", what, (), [whole], [button])


def online(lake: LakeReads) -> Page:
    """Return how far the online store is behind gold."""
    rows: list[list[Any]] = []
    for each in lake.published():
        behind = each["behind_seconds"]
        rows.append(
            [
                each["view"],
                each["store"],
                each["as_of"],
                each["gold_version"],
                each["problem"] or ("up to date" if not behind else f"{span(behind)} behind"),
            ]
        )
    headings = ["view", "store", "as of", "gold version", "state"]
    return Page(
        "Online store",
        "What `tidemill serve` answers from, beside gold.",
        (),
        [
            Section(
                "Published views",
                "`tidemill publish` brings what is missing; with `publish:` each batch does.",
                Table(headings, rows),
                empty="" if rows else "Nothing is published.",
            )
        ],
    )
