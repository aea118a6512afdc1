"""A key's page: its values now and before, the windows, buckets and events behind them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from decimal import Decimal

from tidemill.monitoring.pages import window_picture
from tidemill.monitoring.pages.content import Card, Page, cell, of_view
from tidemill.monitoring.pages.lake_reads import Facts, LakeReads, Shown
from tidemill.monitoring.report.html import WIDTHS, Section, Table, section

MOST = 200  # rows of a table; `explain --json` has all


def key_page(shown: Shown, view: str, key: Mapping[str, str]) -> Page:
    """Return the page of a key; of one without a row too, with its empty values."""
    lake = shown.lake
    facts = lake.explain(view, key, MOST)
    name = " ".join(str(value) for value in facts["key"].values())
    written, events = facts["written_by"], facts["of_events"]
    cards = [
        Card(view, "the view", of_view(view)),
        Card("known" if facts["found"] else "not in gold", _since(facts)),
        Card(f"{len(facts['buckets']):,}", "bucket rows in the windows"),
        Card("-" if events is None else f"{events:,}", "events behind them"),
    ]
    by = f"written by batch {written['batch']}, refresh {written['refresh']}" if written else "-"
    sections = [_values(facts), _windows(facts), _over_time(lake, view, facts)]
    sections.append(_events(facts, explaining(shown, facts)))
    return Page(f"{view}: {name}", f"A key of `{view}`; {by}.", cards, sections)


def _values(facts: Facts) -> Section:
    rows = [
        [
            f["feature"],
            cell(f["value"]),
            f["window"]["start"] or "ever",
            f["window"]["end"],
            f["buckets"],
        ]
        for f in facts["features"]
    ]
    headings = ["feature", "value", "from", "to", "bucket rows"]
    return Section("Values now", "Each window holds its start, not its end.", Table(headings, rows))


def _windows(facts: Facts) -> Section:
    """Return the windows and the buckets in them as a picture, and as a table."""
    rows = [
        [each["bucket_start"], each["batch"], " ".join(each["windows"]), cell(each["partials"])]
        for each in facts["buckets"][:MOST]
    ]
    plots = {name: window_picture.svg(facts, width) for name, (width, _) in WIDTHS.items()}
    return Section(
        "Windows and buckets",
        "A line for each window up to as_of, a mark where bucket rows lie."
        + _of(len(facts["buckets"])),
        Table(["bucket", "batch", "windows", "partials"], rows),
        plots if rows else {},
        empty="" if rows else "No bucket row lies in the windows: these are the empty values.",
    )


def _over_time(lake: LakeReads, view: str, facts: Facts) -> Section:
    """Return the values of the key at earlier versions of gold."""
    changes = lake.key_history(view, facts["key"])
    names = [each["feature"] for each in facts["features"]]
    rows = [
        [each["gold_version"], each["as_of"]]
        + [cell(each["values"][name]) if each["values"] else None for name in names]
        for each in changes
    ]
    points = [
        [each["as_of"], name, float(each["values"][name])]
        for each in changes
        if each["values"]
        for name in names
        if _is_number(each["values"][name])
    ]
    return section(
        "Values over time",
        "What gold held at its newest versions that changed this key.",
        ["time", "feature", "value"],
        points,
        kind="line",
        color="feature",
        table=Table(["gold version", "as of", *names], rows),
        empty="No version that can be read has changed this key.",
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def explaining(shown: Shown, facts: Facts) -> str:
    """Return the command that explains a key, from wherever it is called."""
    of = [] if shown.named == shown.pipeline else ["--pipeline", shown.named]
    key = [str(value) for value in facts["key"].values()]
    # Behind it a negative number is no option.
    behind = ["--"] if any(value.startswith("-") for value in key) else []
    words = [*shown.commands.place, *of, facts["view"], *behind, *key]
    return shlex.join(["tidemill", "explain", *words])


def _events(facts: Facts, command: str) -> Section:
    if facts["of_events"] is None:
        what = f"{facts['no_events']}: `{command}` shows them by Spark."
        return Section("Events", what, Table([], []), empty="They are not told here.")
    rows = [
        [
            each["event_timestamp"],
            each["event_id"],
            "late" if each["late"] else None,
            each["batch"],
            " ".join(each["counts_in"]),
            each["topic"],
            each["partition"],
            each["offset"],
            each["record_id"],
        ]
        for each in facts["events"]
    ]
    headings = ["at", "event", "late", "batch", "counts in", "topic", "partition", "offset"]
    return Section(
        "Events",
        "The events behind the buckets, and the records that brought them."
        + _of(facts["of_events"]),
        Table([*headings, "record"], rows),
        empty="" if rows else "No event lies in the windows.",
    )


def _of(rows: int) -> str:
    """Return that the table shows the first of so many rows; nothing where it shows all."""
    return f" The table has the newest {MOST} of {rows:,}." if rows > MOST else ""


def _since(facts: Facts) -> str:
    """Return as of when the values are, and since when."""
    changed = f", since {facts['updated_at']}" if facts["updated_at"] else ""
    return f"as of {facts['as_of'] or '-'}{changed}"
