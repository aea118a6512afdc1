"""The finished text of each statement in `sql/`: the one place where Python puts text into SQL.

What it puts in are lists that follow from a declared view: names that are validated identifiers,
windows that are whole numbers of minutes, and the aggregates' own expressions. Values are never put
in; they are bound by name (`:as_of`) when a statement runs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import date
from functools import cache
from pathlib import Path
from string import Template

from tidemill.errors import UsageError
from tidemill.features import FeatureView, attempts
from tidemill.features.expressions import fallible
from tidemill.features.suggestions import did_you_mean
from tidemill.features.windows import BEGINNING_SECONDS, HOUR
from tidemill.lake.statements import spine_terms, window_rows
from tidemill.lake.statements.gold_values import (
    difference,
    differs,
    is_wrong,
    moves,
    of_sums,
    or_empty,
    total,
    value,
    value_by,
)

_PACKAGE = Path(__file__).parents[2]
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
        "bucket_seconds": str(window_rows.whole_seconds(view.bucket_length)),
        "selected": "".join(
            f",\n    {fallible.or_null(one.sql, view.event_time)} AS {one.name}"
            for one in attempts.selected(view)
        ),
        **spine_terms.lists(view),
        "keys": _comma(keys),
        "key_names": ", ".join(keys),
        "bucket_is_of_spine": _and(f"known.{k} = spine.{k}" for k in keys),
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
        "beginning": str(BEGINNING_SECONDS),
        "horizon": window_rows.interval(view.horizon),
        "horizon_and_hour": window_rows.interval(view.horizon + HOUR),
        "edge_hours": "\n    OR ".join(window_rows.edge_hours(view)),
        "features": _comma(f"{value(c, by_hours)} AS {c.name}" for c in columns),
        "shown": _comma(
            f"features.{name}" for name in (*keys, *(c.name for c in view.shown), "updated_at")
        ),
        "shown_names": _comma(c.name for c in view.shown),
        "feature_names": _comma(c.name for c in columns),
        "fresh_features": _comma(f"{or_empty('fresh', c, view)} AS {c.name}" for c in columns),
        "fresh_values": _comma(f"{or_empty('fresh', c, view)} AS {c.name}" for c in values),
        "differs": differs((c for c in columns if strictly or not c.witness), view),
        "bounds": _comma(
            f"{value_by(c.limits, by_hours)} AS __bounds_{c.name}" for c in columns if c.off
        )
        or "NULL AS __bounds",
        "wrong": "\n  OR ".join(is_wrong(c, view) for c in values),
        "fresh_is_empty": _and(
            f"{or_empty('fresh', c, view)} IS NOT DISTINCT FROM {c.empty}" for c in columns
        ),
        "is_empty": _and(f"{c.name} IS NOT DISTINCT FROM {c.empty}" for c in columns),
        "values_are_empty": _and(f"{c.name} IS NOT DISTINCT FROM {c.empty}" for c in values),
        "empty_rows_leave": "TRUE" if view.when_empty == "delete" else "FALSE",
        "assignments": _comma(f"{c.name} = changed.{c.name}" for c in columns),
        "signs": _comma(window_rows.sign(w) for w in view.windows),
        "edges": "\n    OR ".join(window_rows.edges(view)),
        "edge_partitions": "\n    OR ".join(window_rows.edge_partitions(view)),
        "any_sign": " OR ".join(f"{window_rows.sign_name(w)} <> 0" for w in view.windows),
        "differences": _comma(f"{difference(c)} AS {c.name}" for c in terms),
        "any_difference": " OR ".join(map(moves, terms)),
        "term_names": _comma(c.name for c in terms),
        "sums": _comma(f"{total(c)} AS {c.name}" for c in terms),
        "features_of_sums": _comma(of_sums(columns, terms)),
        "moved_is_horizon": _and(f"moved.{k} = horizon.{k}" for k in keys),
        "moved_is_gold": _and(f"moved.{k} = gold.{k}" for k in keys),
        "changed_columns": _comma(
            f"changed.{name}" for name in (*keys, *(c.name for c in columns))
        ),
    }
    over_hours = [("horizon", "horizon_by_hours")] if by_hours else []
    inner = ("features", "moved", "diff", "buckets", "event_horizon", "compared")
    whole = [(name, name) for name in inner]
    for part, name in (("horizon", "horizon"), *over_hours, *whole):  # a later one holds earlier
        lists[f"{part}_statement"] = _inner(Template(_text(name)).substitute(lists))
    return lists


def _inner(text: str) -> str:
    """Return a statement without its header, to stand inside another."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip()


def _comma(items: Iterable[str]) -> str:
    return ",\n  ".join(items)


def _and(items: Iterable[str]) -> str:
    return "\n  AND ".join(items)
