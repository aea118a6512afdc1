"""What `explain` and `describe` print for people; both find it as data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tidemill.cli.output.display import Show

MOST = 20  # rows of a list that are printed; --json has them all
Found = Mapping[str, Any]


def tell_explained(show: Show, facts: Found) -> None:
    """Print one key's features, then the buckets that make them and the events behind."""
    key = ", ".join(f"{name} {value}" for name, value in facts["key"].items())
    show.say((facts["view"], "bold"), f"  {key}")
    for text in _standing(facts):
        show.say(text)
    show.prose(_row(facts))
    show.say()
    show.table(
        ["feature", "value", "window", "buckets"],
        [
            [f["feature"], _text(f["value"]), _window(f["window"]), f["buckets"]]
            for f in facts["features"]
        ],
    )
    _list(show, "buckets", _bucket_rows(facts["buckets"]))
    _list(show, "events", _event_rows(facts["events"]))


def _standing(facts: Found) -> list[str]:
    if not facts["as_of"]:
        return ["gold was never refreshed"]
    at = f"as_of {facts['as_of']}, buckets up to batch {facts['batch']}"
    if facts["recomputed"]:
        again = "recomputed from the buckets with what is known now; nothing was written"
        return [at, again]
    return [f"{at}, gold version {facts['gold_version']}"]


def _row(facts: Found) -> str:
    if not facts["found"]:
        return "there is nothing of this key: its features are empty"
    if facts["recomputed"]:
        return "gold is as it was; these values are not read from it"
    by = facts["written_by"]
    changed = f"the row changed last at as_of {facts['updated_at']}"
    if not by:
        return f"{changed}; the ledger of that refresh is no longer kept"
    return (
        f"{changed}: by refresh {by['refresh']} ({by['mode']}) with batch {by['batch']}, gold "
        f"version {by['gold_version']}, committed {by['committed_at']}"
    )


def _window(window: Found) -> str:
    if not window["start"]:
        return f"before {window['end']}" if window["end"] else ""
    return f"[{window['start']}, {window['end']})"


def _bucket_rows(buckets: Sequence[Found]) -> list[dict[str, Any]]:
    return [
        {
            "bucket_start": bucket["bucket_start"],
            "batch": bucket["batch"],
            "windows": " ".join(bucket["windows"]),
            **{name: _text(value) for name, value in bucket["partials"].items()},
        }
        for bucket in buckets
    ]


def _event_rows(events: Sequence[Found]) -> list[dict[str, Any]]:
    names = ("event_timestamp", "ingested_at", "late", "record_id", "topic", "partition", "offset")
    return [
        {
            **{name: event[name] for name in names},
            "late": "late" if event["late"] else "",
            "windows": " ".join(event["windows"]),
            "counts_in": " ".join(event["counts_in"]),
        }
        for event in events
    ]


def _list(show: Show, name: str, rows: Sequence[Found]) -> None:
    if not rows:
        return
    more = f", the newest {MOST}; --json has them all" if len(rows) > MOST else ""
    show.say()
    show.say((name, "bold"), f"  {len(rows):,}{more}")
    show.table(list(rows[0]), [list(row.values()) for row in rows[:MOST]])


def _text(value: Any) -> Any:
    """Return a value as a cell: null, truths, lists and rows as JSON has them."""
    if value is None or isinstance(value, list | dict | bool):
        return json.dumps(value, ensure_ascii=False)
    return value


def tell_described(show: Show, facts: Found) -> None:
    """Print a view's features, its tables and how fresh gold is."""
    keys = ", ".join(facts["keys"])
    show.say(
        (facts["view"], "bold"),
        f"  of pipeline {facts['pipeline']}, by {keys}; buckets of {facts['bucket']}, engine "
        f"{facts['engine']}",
    )
    show.say(_freshness(facts))
    show.say()
    columns = ("feature", "type", "window", "what", "empty", "edge")
    show.table(
        columns, [[_short(feature[name]) for name in columns] for feature in facts["features"]]
    )
    edge = facts["bucket"]
    show.say((f"edge: at a window's edge a value is off by one bucket at worst, {edge}", "dim"))
    show.say()
    names = ("table", "rows", "files", "bytes")
    show.table(
        [*names, "newest"],
        [[*(table[name] for name in names), _newest(table["newest"])] for table in facts["tables"]],
    )
    for each in facts["unfinished"]:
        show.say(f"a rebuild of {each['of']} is unfinished: {each['way']}")


def _freshness(facts: Found) -> str:
    if not facts["as_of"]:
        return "gold was never refreshed"
    return (
        f"as_of {facts['as_of']}, {facts['age_seconds']:,} s ago; gold version "
        f"{facts['gold_version']}"
    )


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _newest(commit: Found | None) -> str:
    if commit is None:
        return "as it was made"
    words = ("refresh", "batch", "as_of", "newest", "mode", "upkeep")
    ledger = commit["ledger"] or {}
    said = [f"{word} {ledger[word]}" for word in words if ledger.get(word) is not None]
    return ", ".join([f"version {commit['version']}, {commit['operation']}", *said])
