"""What `explain` and `describe` print for people; both find it as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidemill.cli.output.display import Show

MOST = 20  # rows of a list that are printed; --json has them all
Found = Mapping[str, Any]


def tell_explained(show: Show, found: Found) -> None:
    """Print one key's features, then the buckets that make them and the events behind."""
    key = ", ".join(f"{name} {value}" for name, value in found["key"].items())
    show.say((found["view"], "bold"), f"  {key}")
    for text in _standing(found):
        show.say(text)
    show.prose(_row(found))
    show.say()
    show.table(
        ["feature", "value", "window", "buckets"],
        [
            [f["feature"], _text(f["value"]), _window(f["window"]), f["buckets"]]
            for f in found["features"]
        ],
    )
    _list(show, "buckets", _bucket_rows(found["buckets"]))
    _list(show, "events", _event_rows(found["events"]))


def _standing(found: Found) -> list[str]:
    if not found["as_of"]:
        return ["gold was never refreshed"]
    at = f"as_of {found['as_of']}, buckets up to batch {found['batch']}"
    if found["recomputed"]:
        again = "recomputed from the buckets with what is known now; nothing was written"
        return [at, again]
    return [f"{at}, gold version {found['gold_version']}"]


def _row(found: Found) -> str:
    if not found["found"]:
        return "there is nothing of this key: its features are empty"
    if found["recomputed"]:
        return "gold is as it was; these values are not read from it"
    by = found["written_by"]
    changed = f"the row changed last at as_of {found['updated_at']}"
    if not by:
        return f"{changed}; the ledger of that refresh is no longer kept"
    return (
        f"{changed}: by refresh {by['refresh']} ({by['mode']}) with batch {by['batch']}, gold "
        f"version {by['gold_version']}, committed {by['committed_at']}"
    )


def _window(window: Found) -> str:
    return f"[{window['start']}, {window['end']})" if window["start"] else ""


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
    """Return a value as a cell: null by its name, lists and rows as text."""
    if value is None:
        return "null"
    return str(value) if isinstance(value, list | dict | bool) else value


def tell_described(show: Show, found: Found) -> None:
    """Print a view's features, its tables and how fresh gold is."""
    keys = ", ".join(found["keys"])
    show.say(
        (found["view"], "bold"),
        f"  of pipeline {found['pipeline']}, by {keys}; buckets of {found['bucket']}, engine "
        f"{found['engine']}",
    )
    show.say(_freshness(found))
    show.say()
    columns = ("feature", "type", "window", "what", "empty", "edge")
    show.table(
        columns, [[_short(feature[name]) for name in columns] for feature in found["features"]]
    )
    edge = found["bucket"]
    show.say((f"edge: at a window's edge a value is off by one bucket at worst, {edge}", "dim"))
    show.say()
    names = ("table", "rows", "files", "bytes")
    show.table(
        [*names, "newest"],
        [[*(table[name] for name in names), _newest(table["newest"])] for table in found["tables"]],
    )
    for each in found["unfinished"]:
        show.say(f"a rebuild of {each['of']} is unfinished: {each['way']}")


def _freshness(found: Found) -> str:
    if not found["as_of"]:
        return "gold was never refreshed"
    return (
        f"as_of {found['as_of']}, {found['age_seconds']:,} s ago; gold version "
        f"{found['gold_version']}"
    )


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _newest(commit: Found | None) -> str:
    if commit is None:
        return "as it was made"
    words = ("refresh", "batch", "as_of", "newest", "mode", "upkeep")
    told = commit["ledger"] or {}
    said = [f"{word} {told[word]}" for word in words if told.get(word) is not None]
    return ", ".join([f"version {commit['version']}, {commit['operation']}", *said])
