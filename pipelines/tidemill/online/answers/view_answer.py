"""Answers from rows: values, as_of, age, whether they are stale, whether the key is known.

A row is not stale because nothing changed in it: its values hold as of the view's as_of, which
moves with each publish. While a publish is under way a row may be newer than that, and then has an
as_of of its own. An unknown key has the view's declared empty values, and `found: false`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from tidemill.config.settings import exact
from tidemill.features.aggregates.membership import contains
from tidemill.online.answers.feature_request import ViewQuestion
from tidemill.online.answers.served_view import ServedView
from tidemill.online.store import Row

Answer = dict[str, Any]


def answer(
    view: ServedView,
    question: ViewQuestion,
    keys: Sequence[Any],
    rows: Sequence[Row | None],
    now: datetime,
    stale_after: float,
) -> Answer:
    """Return the answer of one view: an entry for each key, in the order of the request."""
    state, names = view.state, question.features or view.names
    places = None if question.features is None else [view.places[name] for name in names]
    when = _when(view.as_of, view.age(now), stale_after)
    entries = []
    for key, row in zip(keys, rows, strict=True):
        values = state.empty if row is None else row.values
        picked = values if places is None else [values[place] for place in places]
        ahead = row is not None and row.as_of > state.as_of
        entry = {
            "key": key,
            "found": row is not None,
            **(_ahead(row, now, stale_after) if row and ahead else when),
            "values": dict(zip(names, picked, strict=True)),
        }
        if question.contains:
            entry["contains"] = _contained(view, question.contains, values)
        entries.append(entry)
    return {"view": state.view, "gold_version": state.gold_version, **when, "rows": entries}


def described(view: ServedView, now: datetime, stale_after: float) -> Answer:
    """Return what there is to ask of a view, and how fresh it is."""
    state = view.state
    return {
        "view": state.view,
        "gold_version": state.gold_version,
        **_when(view.as_of, view.age(now), stale_after),
        "keys": dict(state.keys),
        "features": dict(state.features),
        "empty": dict(zip(view.names, state.empty, strict=True)),
        "filters": sorted(view.filters),
    }


def _when(as_of: str, age: float, stale_after: float) -> Answer:
    return {"as_of": as_of, "age_seconds": round(age, 3), "stale": age > stale_after}


def _ahead(row: Row, now: datetime, stale_after: float) -> Answer:
    age = max(0.0, (now - row.as_of).total_seconds())
    return _when(exact(row.as_of), age, stale_after)


def _contained(
    view: ServedView, asked: Mapping[str, Any], values: Sequence[Any]
) -> dict[str, bool | list[bool]]:
    """Return whether each filter may hold the value, or each of the values."""
    found: dict[str, bool | list[bool]] = {}
    for name, value in asked.items():
        held = values[view.places[name]]
        each = value if isinstance(value, list) else [value]
        answers = [contains(held, one) for one in each]
        found[name] = answers if isinstance(value, list) else answers[0]
    return found
