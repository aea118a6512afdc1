"""The finished text of each statement in `sql/`: the one place where Python puts text into SQL.

What it puts in are lists that follow from a declared view: names that are validated identifiers,
windows that are whole numbers of minutes, and the aggregates' own expressions. Values are never put
in; they are bound by name (`:as_of`) when a statement runs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path
from string import Template

from tidemill.errors import UsageError
from tidemill.features import FeatureView
from tidemill.features.suggest import did_you_mean
from tidemill.features.view import Column
from tidemill.features.windows import Window

_HERE = Path(__file__).parent
_CLAUSE = re.compile(r"^-- clause: (\w+)\n", re.MULTILINE)
FOLDER = next(f for f in (_HERE / "sql", _HERE.parents[1] / "sql") if f.is_dir())


def names() -> dict[str, Path]:
    """Yield every statement by name, the questions of `sql/adhoc` included."""
    return {path.stem: path for path in sorted(FOLDER.rglob("*.sql"))}


def statement(
    name: str,
    view: FeatureView,
    clauses: Collection[str] | None = None,
    *,
    by_hours: bool = False,
) -> str:
    """Yield the statement called `name`, finished for `view`.

    Of the parts that a statement marks with `-- clause: <name>`, only those in `clauses` stay;
    all of them when it is None. With `by_hours` it reads hour buckets where it can, and takes one
    parameter more, `:hours` (see `horizon_by_hours`).
    """
    head, *parts = _CLAUSE.split(_text(name))
    kept = [
        text
        for clause, text in zip(parts[::2], parts[1::2], strict=True)
        if clauses is None or clause in clauses
    ]
    return Template("".join([head, *kept])).substitute(_lists(view, by_hours))


@cache
def _text(name: str) -> str:
    known = names()
    if name not in known:
        raise UsageError(f"unknown statement {name!r}{did_you_mean(name, known)}")
    return known[name].read_text(encoding="utf-8").strip() + "\n"


def _lists(view: FeatureView, by_hours: bool) -> dict[str, str]:
    """Yield the lists that statements name; `<name>_statement` is a statement that stands inside
    others."""
    keys, columns = view.keys, view.columns
    lists = {
        "view": view.name,
        "event_time": view.event_time,
        "keys": _comma(keys),
        "key_match": _and(f"changed.{k} = gold.{k}" for k in keys),
        "fresh_is_gold": _and(f"fresh.{k} = gold.{k}" for k in keys),
        "either_keys": _comma(f"coalesce(fresh.{k}, gold.{k}) AS {k}" for k in keys),
        "gold_is_absent": f"gold.{keys[0]} IS NULL",
        "partials": _comma(f"{p.bucket} AS {p.name}" for p in view.partials),
        "partial_names": _comma(p.name for p in view.partials),
        "merged_partials": _comma(
            f"{p.aggregate.merge.format(partial=p.name, filter='')} AS {p.name}"
            for p in view.partials
        ),
        "no_partials": _comma(f"NULL AS {p.name}" for p in view.partials),
        "no_keys": _comma(f"NULL AS {k}" for k in keys),
        "horizon": str(view.horizon.minutes),
        "horizon_and_hour": str(view.horizon.minutes + 60),
        "first_hours": "\n    OR ".join(_first_hour(w) for w in view.windows),
        "features": _comma(f"{_value(c, by_hours)} AS {c.name}" for c in columns),
        "feature_names": _comma(c.name for c in columns),
        "fresh_features": _comma(f"{_or_empty('fresh', c)} AS {c.name}" for c in columns),
        "differs": "\n  OR ".join(
            f"{_or_empty('fresh', c)} IS DISTINCT FROM {_or_empty('gold', c)}" for c in columns
        ),
        "fresh_is_empty": _and(
            f"{_or_empty('fresh', c)} IS NOT DISTINCT FROM {_empty(c)}" for c in columns
        ),
        "is_empty": _and(f"{c.name} IS NOT DISTINCT FROM {_empty(c)}" for c in columns),
        "empty_rows_leave": "TRUE" if view.when_empty == "delete" else "FALSE",
        "assignments": _comma(f"{c.name} = changed.{c.name}" for c in columns),
        "signs": _comma(_sign(w) for w in view.windows),
        "edges": "\n    OR ".join(_edge(w) for w in view.windows),
        "any_sign": " OR ".join(f"{_sign_name(w)} <> 0" for w in view.windows),
        "differences": _comma(
            f"sum({c.partial.name} * {_sign_name(c.window)}) AS {c.name}" for c in columns
        ),
        "any_difference": " OR ".join(f"{c.name} <> 0" for c in columns),
        "sums": _comma(f"sum({c.name}) AS {c.name}" for c in columns),
        "moved_is_horizon": _and(f"moved.{k} = horizon.{k}" for k in keys),
        "moved_is_gold": _and(f"moved.{k} = gold.{k}" for k in keys),
        "changed_columns": _comma(
            f"changed.{name}" for name in (*keys, *(c.name for c in columns))
        ),
    }
    over_hours = [("horizon", "horizon_by_hours")] if by_hours else []
    whole = [(name, name) for name in ("features", "moved", "diff")]
    for part, name in (("horizon", "horizon"), *over_hours, *whole):  # a later one holds earlier
        lists[f"{part}_statement"] = _inner(Template(_text(name)).substitute(lists))
    return lists


def _sign(window: Window) -> str:
    """Yield the SQL that tells what a bucket row does to a window: 1 enters, -1 leaves, 0
    neither."""
    now = _in_window(window, ":as_of")
    before = f"batch <= :batch_before AND {_in_window(window, ':as_of_before')}"
    return f"CAST({now} AS INT) - CAST({before} AS INT) AS {_sign_name(window)}"


def _in_window(window: Window, as_of: str) -> str:
    start = f"{as_of} - INTERVAL '{window.minutes}' MINUTE"
    return f"bucket_start >= {start} AND bucket_start < {as_of}"


def _sign_name(window: Window) -> str:
    return f"__sign_{window.text}"


def _edge(window: Window) -> str:
    """Yield the SQL condition for a bucket to be where the window's start passed."""
    length = f"INTERVAL '{window.minutes}' MINUTE"
    return f"(bucket_start >= :low - {length} AND bucket_start < :high - {length})"


def _first_hour(window: Window) -> str:
    """Yield the SQL condition for a bucket to be where a window has only a part of an hour."""
    start = f":as_of - INTERVAL '{window.minutes}' MINUTE"
    end = f"floor((unix_seconds(:as_of) - {(window.minutes - 59) * 60}) / 3600) * 3600"
    return f"(bucket_start >= {start} AND bucket_start < timestamp_seconds({end}))"


def _value(column: Column, by_hours: bool) -> str:
    """Yield a feature's expression over the buckets of the horizon."""
    aggregate = column.partial.aggregate
    start = f":as_of - INTERVAL '{column.window.minutes}' MINUTE"
    covered = f" AND __covered_from < {start}" if by_hours else ""
    window = f" FILTER (WHERE bucket_start >= {start}{covered})"
    merged = aggregate.merge.format(partial=column.partial.name, filter=window)
    return f"coalesce({aggregate.result.format(merged=merged)}, {aggregate.empty})"


def _or_empty(side: str, column: Column) -> str:
    return f"coalesce({side}.{column.name}, {_empty(column)})"


def _empty(column: Column) -> str:
    return column.partial.aggregate.empty


def _inner(text: str) -> str:
    """Yield a statement without its header, to stand inside another."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip()


def _comma(items: Iterable[str]) -> str:
    return ",\n  ".join(items)


def _and(items: Iterable[str]) -> str:
    return "\n  AND ".join(items)
