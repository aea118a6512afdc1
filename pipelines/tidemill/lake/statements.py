"""The finished text of each statement in `sql/`: the one place where Python puts text into SQL.

What it puts in are lists that follow from a declared view: names that are validated identifiers,
windows that are whole numbers of minutes, and the aggregates' own expressions. Values are never put
in; they are bound by name (`:as_of`) when a statement runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from string import Template

from tidemill.errors import UsageError
from tidemill.features import FeatureView, attempts
from tidemill.features.aggregates import exact_sums
from tidemill.features.columns import Column, Term
from tidemill.features.expressions import fallible
from tidemill.features.suggestions import did_you_mean
from tidemill.features.windows import HOUR, Window

_PACKAGE = Path(__file__).parents[1]
_CLAUSE = re.compile(r"^-- clause: (\w+)\n", re.MULTILINE)
FOLDER = next(f for f in (_PACKAGE / "sql", _PACKAGE.parents[1] / "sql") if f.is_dir())


def names() -> dict[str, Path]:
    """Return every statement by name, the questions of `sql/adhoc` included."""
    return {path.stem: path for path in sorted(FOLDER.rglob("*.sql"))}


def functions() -> list[str]:
    """Return the statements that make the SQL functions of `sql/functions` for a session."""
    return [_text(path.stem) for path in sorted((FOLDER / "functions").glob("*.sql"))]


def statement(
    name: str,
    view: FeatureView,
    clauses: Collection[str] | None = None,
    *,
    by_hours: bool = False,
    strictly: bool = False,
    source: str | None = None,
    version: int | None = None,
    since: date = date.min,
) -> str:
    """Return the statement called `name`, finished for `view`.

    Of the parts that a statement marks with `-- clause: <name>`, only those in `clauses` stay;
    all of them when it is None. With `by_hours` it reads hour buckets where it can, and takes one
    parameter more, `:hours` (see `horizon_by_hours`). `strictly`, a sketch is merged when its value
    differs, and not only when the events behind it do. `source` is the pipeline whose records it
    reads, where it reads records; the view's namesake by default. `version` is the one of gold
    that it compares with; the newest by default. `since` is a day, of rows of which only newer ones
    are read where there are any.
    """
    head, *parts = _CLAUSE.split(_text(name))
    kept = [
        text
        for clause, text in zip(parts[::2], parts[1::2], strict=True)
        if clauses is None or clause in clauses
    ]
    as_read = "" if version is None else f" VERSION AS OF {version}"  # no value can be bound there
    lists = {
        **_lists(view, by_hours, strictly),
        "source": source or view.name,
        "gold": f"{view.name}_features{as_read}",
        "since": since.isoformat(),
    }
    return Template("".join([head, *kept])).substitute(lists)


@cache
def _text(name: str) -> str:
    known = names()
    if name not in known:
        raise UsageError(f"unknown statement {name!r}{did_you_mean(name, known)}")
    return known[name].read_text(encoding="utf-8").strip() + "\n"


def _lists(view: FeatureView, by_hours: bool, strictly: bool) -> dict[str, str]:
    """Return the lists that statements name; `<name>_statement` is a statement that stands inside
    others."""
    keys, columns, values = view.keys, view.columns, view.values
    terms = [column for column in columns if column.is_term]
    lists = {
        "view": view.name,
        "event_time": view.event_time,
        "bucket_seconds": str(_seconds(view.bucket_length)),
        "selected": "".join(
            f",\n    {fallible.or_null(one.sql, view.event_time)} AS {one.name}"
            for one in attempts.selected(view)
        ),
        "keys": _comma(keys),
        "keys_known": _and(f"{k} IS NOT NULL" for k in keys),
        "key_match": _and(f"changed.{k} = gold.{k}" for k in keys),
        "fresh_is_gold": _and(f"fresh.{k} = gold.{k}" for k in keys),
        "either_keys": _comma(f"coalesce(fresh.{k}, gold.{k}) AS {k}" for k in keys),
        "gold_is_absent": f"gold.{keys[0]} IS NULL",
        "fresh_is_absent": f"fresh.{keys[0]} IS NULL",
        "in_sample": f"pmod(xxhash64({', '.join(keys)}, :as_of), 10000) < :sample",
        "key_is": _and(f"{k} = CAST(:key_{k} AS {view.types[k]})" for k in keys),
        "counted": _comma(f"CASE WHEN {p.meets} THEN '{p.name}' END" for p in view.partials),
        "partials": _comma(f"{p.made} AS {p.name}" for p in view.partials),
        "partial_names": _comma(p.name for p in view.partials),
        "merged_partials": _comma(f"{p.merged()} AS {p.name}" for p in view.partials),
        "no_partials": _comma(f"NULL AS {p.name}" for p in view.partials),
        "no_keys": _comma(f"NULL AS {k}" for k in keys),
        "horizon": _length(view.horizon),
        "horizon_and_hour": _length(view.horizon + HOUR),
        "edge_hours": "\n    OR ".join(_edge_hours(view)),
        "features": _comma(f"{_value(c, by_hours)} AS {c.name}" for c in columns),
        "shown": _comma(
            f"features.{name}" for name in (*keys, *(c.name for c in view.shown), "updated_at")
        ),
        "feature_names": _comma(c.name for c in columns),
        "fresh_features": _comma(f"{_or_empty('fresh', c, view)} AS {c.name}" for c in columns),
        "fresh_values": _comma(f"{_or_empty('fresh', c, view)} AS {c.name}" for c in values),
        "differs": _differs((c for c in columns if strictly or not c.witness), view),
        "bounds": _comma(
            f"{_value_by(c.limits, by_hours)} AS __bounds_{c.name}" for c in columns if c.off
        )
        or "NULL AS __bounds",
        "wrong": "\n  OR ".join(_wrong(c, view) for c in values),
        "fresh_is_empty": _and(
            f"{_or_empty('fresh', c, view)} IS NOT DISTINCT FROM {c.empty}" for c in columns
        ),
        "is_empty": _and(f"{c.name} IS NOT DISTINCT FROM {c.empty}" for c in columns),
        "values_are_empty": _and(f"{c.name} IS NOT DISTINCT FROM {c.empty}" for c in values),
        "empty_rows_leave": "TRUE" if view.when_empty == "delete" else "FALSE",
        "assignments": _comma(f"{c.name} = changed.{c.name}" for c in columns),
        "signs": _comma(_sign(w) for w in view.windows),
        "edges": "\n    OR ".join(_edges(view)),
        "edge_partitions": "\n    OR ".join(_edge_partitions(view)),
        "any_sign": " OR ".join(f"{_sign_name(w)} <> 0" for w in view.windows),
        "differences": _comma(f"{_difference(c)} AS {c.name}" for c in terms),
        "any_difference": " OR ".join(map(_moves, terms)),
        "term_names": _comma(c.name for c in terms),
        "sums": _comma(f"{_sum(c)} AS {c.name}" for c in terms),
        "features_of_sums": _comma(_of_sums(columns, terms)),
        "moved_is_horizon": _and(f"moved.{k} = horizon.{k}" for k in keys),
        "moved_is_gold": _and(f"moved.{k} = gold.{k}" for k in keys),
        "changed_columns": _comma(
            f"changed.{name}" for name in (*keys, *(c.name for c in columns))
        ),
    }
    over_hours = [("horizon", "horizon_by_hours")] if by_hours else []
    whole = [(name, name) for name in ("features", "moved", "diff", "buckets", "compared")]
    for part, name in (("horizon", "horizon"), *over_hours, *whole):  # a later one holds earlier
        lists[f"{part}_statement"] = _inner(Template(_text(name)).substitute(lists))
    return lists


def _seconds(length: timedelta) -> int:
    return length // timedelta(seconds=1)


def _length(length: timedelta) -> str:
    """Return a length of time as a SQL interval."""
    seconds = _seconds(length)
    whole = seconds % 60 == 0
    return f"INTERVAL '{seconds // 60 if whole else seconds}' {'MINUTE' if whole else 'SECOND'}"


def _before(time: str, length: timedelta) -> str:
    return f"{time} - {_length(length)}" if length else time


def _sign(window: Window) -> str:
    """Return the SQL that tells what a bucket row does to a window: 1 enters, -1 leaves, 0
    neither."""
    now = _in_window(window, ":as_of")
    before = f"batch <= :batch_before AND {_in_window(window, ':as_of_before')}"
    return f"CAST({now} AS INT) - CAST({before} AS INT) AS {_sign_name(window)}"


def _in_window(window: Window, as_of: str) -> str:
    start, end = _before(as_of, window.reach), _before(as_of, window.offset)
    return f"bucket_start >= {start} AND bucket_start < {end}"


def _sign_name(window: Window) -> str:
    return f"__sign_{window.text}"


def _ends(window: Window) -> tuple[timedelta, timedelta]:
    """Return how far before as_of a window starts and ends."""
    return window.reach, window.offset


def _edges(view: FeatureView) -> Iterator[str]:
    """Yield the SQL conditions for a bucket to be where a window's start or end passed."""
    for length in dict.fromkeys(edge for w in view.windows for edge in _ends(w)):
        if length:
            low, high = _before(":low", length), _before(":high", length)
            yield f"(bucket_start >= {low} AND bucket_start < {high})"


def _edge_partitions(view: FeatureView) -> Iterator[str]:
    """Yield the SQL conditions for an hour to hold buckets of such an edge, or of where as_of
    passed."""
    for length in dict.fromkeys((timedelta(), *(e for w in view.windows for e in _ends(w)))):
        low, high = _before(":low", length + HOUR), _before(":high", length)
        yield f"(bucket_hour > {low} AND bucket_hour < {high})"


def _difference(column: Column) -> str:
    """Return what bucket rows add to a term; a product with an INT would round a long decimal."""
    partial, sign = column.partial, _sign_name(column.window)
    if partial.part.adds:
        return exact_sums.difference(partial.name, column.type, sign)
    if not column.type.startswith("DECIMAL"):
        return f"sum({partial.name} * {sign})"
    signed = f"CASE {sign} WHEN 1 THEN {partial.name} WHEN -1 THEN -{partial.name} ELSE 0 END"
    return f"sum({signed})"


def _moves(column: Column) -> str:
    """Return the condition of a difference to change its term."""
    changed = f"{column.name} <> 0"
    return f"{changed} OR {column.name} IS NULL" if column.partial.part.adds else changed


def _sum(column: Column) -> str:
    """Return the SQL of a term from what gold holds and the difference to it."""
    if column.partial.part.adds:
        return exact_sums.together(column.name, column.type)
    return f"sum({column.name})"


def _of_sums(columns: Iterable[Column], terms: Iterable[Column]) -> Iterator[str]:
    """Yield the gold columns, as expressions over the columns that are terms."""
    kept = {column.terms[0]: column.name for column in terms}
    for column in columns:
        if column.is_term:
            yield column.name
        elif all(term in kept for term in column.terms):
            yield f"{column.value(kept.__getitem__)} AS {column.name}"
        else:
            yield f"NULL AS {column.name}"  # a view that does not add up has no such statement


def _edge_hours(view: FeatureView) -> Iterator[str]:
    """Yield the SQL conditions for a bucket to be where a window has only a part of an hour: after
    its start, and before its end."""
    for start in dict.fromkeys(window.reach for window in view.windows):
        seconds = _seconds(start) - 3599
        end = f"timestamp_seconds(floor((unix_seconds(:as_of) - {seconds}) / 3600) * 3600)"
        yield f"(bucket_start >= {_before(':as_of', start)} AND bucket_start < {end})"
    for offset in dict.fromkeys(window.offset for window in view.windows):
        if offset:
            first = f"floor((unix_seconds(:as_of) - {_seconds(offset)}) / 3600) * 3600"
            yield (
                f"(bucket_start >= timestamp_seconds({first}) "
                f"AND bucket_start < {_before(':as_of', offset)})"
            )


def _value(column: Column, by_hours: bool) -> str:
    """Return a feature's expression over the buckets of the horizon."""
    return _value_by(column.value, by_hours)


def _value_by(of: Callable[[Callable[[Term], str]], str], by_hours: bool) -> str:
    return of(lambda term: term.partial.merged(_inside(term.window, by_hours)))


def _inside(window: Window, by_hours: bool) -> str:
    """Return the SQL condition for a row of the horizon to count in a window.

    By hours a minute row counts only where no hour row stands for it, and an hour row where the
    window holds all of it.
    """
    start, end = _before(":as_of", window.reach), _before(":as_of", window.offset)
    inside = f"bucket_start >= {start}"
    if not by_hours:
        return f"{inside} AND bucket_start < {end}" if window.offset else inside
    if not window.offset:
        return f"{inside} AND __covered_from < {start}"
    hour = f"{end} - INTERVAL '60' MINUTE"
    uncovered = f"(__covered_from < {start} OR __covered_from > {hour})"
    return f"{inside} AND __last < {end} AND {uncovered}"


def _or_empty(side: str, column: Column, view: FeatureView) -> str:
    """Return the value of a side, the empty one where it has no row; null may be an overflow."""
    value = f"{side}.{column.name}"
    if column.overflow and column.empty != "NULL":
        return f"CASE WHEN {side}.{view.keys[0]} IS NULL THEN {column.empty} ELSE {value} END"
    return f"coalesce({value}, {column.empty})"


def _differs(columns: Iterable[Column], view: FeatureView) -> str:
    return "\n  OR ".join(
        f"{_or_empty('fresh', c, view)} IS DISTINCT FROM {_or_empty('gold', c, view)}"
        for c in columns
    )


def _wrong(column: Column, view: FeatureView) -> str:
    sides = _or_empty("fresh", column, view), _or_empty("gold", column, view)
    return column.is_off(*sides, f"fresh.__bounds_{column.name}")


def _inner(text: str) -> str:
    """Return a statement without its header, to stand inside another."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip()


def _comma(items: Iterable[str]) -> str:
    return ",\n  ".join(items)


def _and(items: Iterable[str]) -> str:
    return "\n  AND ".join(items)
