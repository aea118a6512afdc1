"""Why a feature has its value: one key's row of gold, the buckets that make it, the events behind.

    gold row ◄── windows at as_of ◄── bucket rows with batch <= b ◄── events ◄── bronze records

Only reads, and takes no lock. What gold holds is read at the version whose ledger names (batch,
as_of), so a refresh meanwhile is not seen. An event that was accepted since then is shown before it
counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from tidemill.config.settings import EPOCH, iso
from tidemill.errors import UsageError
from tidemill.features import FeatureView
from tidemill.features.columns import Column, Partial
from tidemill.features.key_text import key_text
from tidemill.features.suggestions import did_you_mean
from tidemill.lake.catalog import Lake
from tidemill.lake.relations import Record, Relation
from tidemill.lake.statements import statement
from tidemill.pipeline.silver import minute_buckets
from tidemill.query.json_values import text_of
from tidemill.query.row_writers import last_writer

Key = Mapping[str, str]
EVERY = 2**62  # events: as many as there are


@dataclass(frozen=True)
class _Time:
    """The (batch, as_of) that is explained; `version` is gold's, None for another time than its
    own."""

    as_of: datetime | None
    batch: int
    version: int | None


@dataclass(frozen=True)
class Asked:
    """What to explain: features of one key, its values as text."""

    view: FeatureView
    key: Key
    columns: tuple[Column, ...]


def asked(view: FeatureView, words: Sequence[str], feature: str | None = None) -> Asked:
    """Return what the words ask for, before any table is read; UsageError when the view has no such
    keys or feature. Without a feature it is all of them."""
    return Asked(view, _key_of(view, words), _columns_of(view, feature))


def words_of(view: FeatureView, key: Mapping[str, object] | Sequence[object]) -> list[str]:
    """Return a key's values in the view's order, as text; UsageError for a mapping of other
    keys."""
    if isinstance(key, Mapping):
        if set(key) != set(view.keys):
            message = f"view {view.name} has other keys, found {', '.join(key) or 'none'}"
            raise UsageError(message, where="KEY", expected=" ".join(view.keys))
        key = [key[name] for name in view.keys]
    return [str(value) for value in key]


def explain(
    lake: Lake, of: Asked, at: datetime | None = None, most: int | None = None
) -> dict[str, Any]:
    """Return what makes one key's features, or one of them, what they are.

    `{view, key, as_of, batch, gold_version, recomputed, found, updated_at, written_by, features,
    buckets, events}`. A feature has its value, window and number of bucket rows; a bucket row and
    an event the windows they are in. `at` is another time than gold's: the values are then
    recomputed from the buckets, with everything known now, and nothing is written. The key of an
    absent row has the empty values. An event is `late` when gold had passed its minute before it
    was ingested, as far as `tidemill_batches` tells.

    With `most` these are the newest events alone, and `of_events` says of how many that the longest
    window holds and that count in something; it is None where the reader does not answer for
    events, and `no_events` says why.
    """
    view, key, columns = of.view, of.key, of.columns
    time = _time(lake, view, at)
    row = _row(lake, view, key, time)
    buckets = _buckets(lake, view, columns, key, time)
    written = last_writer(lake, view, key, row["updated_at"]) if row["updated_at"] else None
    events, of_events = _newest_events(lake, view, key, time, most)
    return {
        "view": view.name,
        "key": dict(key),
        "as_of": time.as_of and iso(time.as_of),
        "batch": time.batch,
        "gold_version": time.version,
        "recomputed": at is not None,
        "found": row["found"],
        "updated_at": plain(row["updated_at"]),
        "written_by": written,
        "features": [_feature(column, row, time, buckets) for column in columns],
        "buckets": [{n: plain(v) for n, v in bucket.items()} for bucket in buckets],
        "events": _events(events, columns, time),
        **({} if most is None else of_events),
    }


def _key_of(view: FeatureView, words: Sequence[str]) -> Key:
    """Return the key that the words name, in the order of the view's keys."""
    if len(words) != len(view.keys):
        raise UsageError(
            f"view {view.name} has {len(view.keys)} keys, found {len(words)} values",
            where="KEY",
            expected=" ".join(view.keys),
        )
    pairs = zip(view.keys, words, strict=True)
    return {key: key_text(key, view.types[key], word) for key, word in pairs}


def _columns_of(view: FeatureView, feature: str | None) -> tuple[Column, ...]:
    if feature is None:
        return view.shown
    matches = tuple(column for column in view.shown if column.name == feature)
    if not matches:
        hint = did_you_mean(feature, [column.name for column in view.shown])
        raise UsageError(f"view {view.name} has no feature {feature!r}{hint}", where="--feature")
    return matches


def _time(lake: Lake, view: FeatureView, at: datetime | None) -> _Time:
    state = lake.gold_state(view)
    if at is None:
        return _Time(state.as_of, state.batch, state.version)
    if (at - EPOCH) % view.bucket_length:
        expected = f"a multiple of {view.bucket}"
        raise UsageError(f"{iso(at)} is not the end of a bucket", where="--at", expected=expected)
    kept = lake.pipeline.kept_of(view)
    if state.as_of and at - view.apart < state.as_of - kept:
        expected = f"{iso(state.as_of - kept + view.apart)} or later"
        message = f"buckets are kept for {kept.days} days: those of {iso(at)} may be gone"
        raise UsageError(message, where="--at", expected=expected)
    return _Time(at, minute_buckets.bucketed(lake, view).batch, None)


def _row(lake: Lake, view: FeatureView, key: Key, time: _Time) -> Record:
    if time.version is None:
        return _asked(lake, "key_features", view, key, _known(time))[0]
    gold = {"gold_rows": Relation(lake.tables.of(view).gold.name, time.version)}
    return _asked(lake, "key_row", view, key, {}, gold)[0]


def _asked(
    lake: Lake,
    name: str,
    view: FeatureView,
    key: Key,
    args: Mapping[str, Any],
    relations: Mapping[str, Relation] | None = None,
) -> list[Record]:
    named = {f"key_{name}": value for name, value in key.items()}
    return lake.ask(statement(name, view), {**named, **args}, relations).rows


def _known(time: _Time) -> dict[str, Any]:
    return {"as_of": time.as_of, "batch": time.batch}


def _feature(
    column: Column, row: Record, time: _Time, buckets: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    partials = [term.partial for term in column.terms]
    inside = [
        bucket
        for bucket in buckets
        if column.window.text in bucket["windows"]
        and any(_holds(partial, bucket["partials"][partial.name]) for partial in partials)
    ]
    starts = time.as_of and not column.window.is_lifetime
    start = iso(column.window.start(time.as_of)) if starts and time.as_of else None
    end = time.as_of and iso(time.as_of - column.window.offset)
    return {
        "feature": column.name,
        "type": column.type,
        "what": column.what,
        "value": plain(row[column.name]),
        "window": {"start": start, "end": end},
        "buckets": len(inside),
    }


def _buckets(
    lake: Lake, view: FeatureView, columns: Sequence[Column], key: Key, time: _Time
) -> list[dict[str, Any]]:
    """Return the bucket rows that are in a window of the columns and hold something for them."""
    if time.as_of is None:
        return []
    partials = {term.partial.name: term.partial for c in columns for term in c.terms}
    buckets = []
    for row in _asked(lake, "key_buckets", view, key, _known(time)):
        windows = _windows(columns, time.as_of, row["bucket_start"])
        if windows and any(_holds(partial, row[name]) for name, partial in partials.items()):
            buckets.append(
                {
                    "bucket_start": row["bucket_start"],
                    "batch": row["batch"],
                    "windows": windows,
                    "partials": {name: row[name] for name in partials},
                }
            )
    return buckets


def _newest_events(
    lake: Lake, view: FeatureView, key: Key, time: _Time, most: int | None
) -> tuple[list[Record], Mapping[str, Any]]:
    """Return the events, and what `explain` says of them besides where only the newest are asked
    for."""
    try:
        events = _event_rows(lake, view, key, time, EVERY if most is None else most)
    except UsageError as error:  # an expression of the view that the reader has no word for
        if most is None:
            raise
        return [], {"of_events": None, "no_events": error.message}
    return events, {"of_events": events[0]["of_all"] if events else 0}


def _event_rows(lake: Lake, view: FeatureView, key: Key, time: _Time, most: int) -> list[Record]:
    """Return the newest events that the longest window holds, with `of_all`: of how many."""
    if time.as_of is None:
        return []
    of = {"known_events": lake.tables.events, "known_records": lake.tables.bronze}
    known = {name: Relation(table.name) for name, table in of.items()}
    return _asked(lake, "key_events", view, key, {"as_of": time.as_of, "most": most}, known)


def _events(rows: Sequence[Record], columns: Sequence[Column], time: _Time) -> list[dict[str, Any]]:
    """Return the events in a window of the columns that meet a condition of theirs."""
    partials = {term.partial.name for column in columns for term in column.terms}
    events = []
    for row in rows:
        event = dict(row)
        del event["of_all"]
        event["counts_in"] = [name for name in event["counts_in"] if name in partials]
        assert time.as_of is not None, "there are no rows otherwise"
        event["windows"] = _windows(columns, time.as_of, event.pop("bucket_start"))
        if event["windows"] and event["counts_in"]:
            events.append({name: plain(value) for name, value in event.items()})
    return events


def _windows(columns: Sequence[Column], as_of: datetime, bucket_start: datetime) -> list[str]:
    """Return the windows that a bucket is in, by name."""
    windows = dict.fromkeys(column.window for column in columns)
    return [w.text for w in windows if w.start(as_of) <= bucket_start < as_of - w.offset]


def _holds(partial: Partial, value: Any) -> bool:
    """Return whether a partial is of any event."""
    return value is not None and value != [] and not (partial.part.empty == "0" and value == 0)


def plain(value: Any) -> Any:
    """Return a value as JSON has it; bytes and sketches, which nobody reads, by how many bytes
    there are."""
    if isinstance(value, date | Decimal):
        return text_of(value)
    if isinstance(value, bytes | bytearray):
        return f"{len(value)} bytes"
    if isinstance(value, Mapping):
        if isinstance(value.get("sketch"), bytes | bytearray):
            return plain(value["sketch"])
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value
