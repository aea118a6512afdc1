"""How the values of each feature lie over the keys of gold, now and a week before, and how far
apart the two are.

    gold, newest version    ──classes──► shares of keys, now  ─┐
    gold, a week before it  ──classes──► shares of keys, then ─┴─► drift

A class is a power of ten, so that counts and amounts need no bounds of their own. Drift is the
population stability index of the two: 0 for equal shares; by the usual rule of thumb below 0.1 is
little, above 0.25 a shift.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import sqlglot.expressions as exp

from tidemill.config.settings import iso
from tidemill.features import FeatureView
from tidemill.features.columns import Column
from tidemill.lake.catalog import Lake
from tidemill.lake.relations import Relation
from tidemill.query.gold_history import GoldVersion, versions

BEFORE = timedelta(days=7)
CLASSES = ("null", "below 0", "0", "to 1", "to 10", "to 100", "to 1,000", "more")
_ENDS = (1, 10, 100, 1000)  # of the classes from "to 1" on, included
_NUMBERS = ("BIGINT", "INT", "DOUBLE", "FLOAT", "DECIMAL", "SMALLINT", "TINYINT")
_LEAST = 1e-4  # the share that an empty class counts as, in the drift
Shares = Mapping[str, Sequence[int]]


def distribution(lake: Lake, view: FeatureView) -> dict[str, Any]:
    """Return `{view, classes, now, then, features}`.

    `now` and `then` are `{gold_version, as_of, keys}`, `then` None where gold has no earlier
    version that can be read; it is the newest one a week before `now` or the oldest there is. A
    feature, of those that are numbers, has its keys by class, `now` and `then`, and its `drift`.
    """
    columns = [each for each in view.shown if each.type.partition("(")[0] in _NUMBERS]
    history = versions(lake, view)
    newest, earlier = (history[0], _before(history)) if history else (None, None)
    now = _counted(lake, view, columns, newest)
    try:
        then = _counted(lake, view, columns, earlier)
    except Exception:  # of whichever engine: the files of that version are gone
        earlier, then = None, {}
    return {
        "view": view.name,
        "classes": list(CLASSES),
        "now": _facts(newest, now),
        "then": _facts(earlier, then),
        "features": [
            {
                "feature": name,
                "now": list(now[name]),
                "then": list(then[name]) if then else None,
                "drift": round(drift(now[name], then[name]), 4) if then else None,
            }
            for name in now
        ],
    }


def drift(now: Sequence[int], then: Sequence[int]) -> float:
    """Return the population stability index of two counts by class; 0 where one has no keys."""
    if not (sum(now) and sum(then)):
        return 0.0
    total = 0.0
    for one, other in zip(now, then, strict=True):
        share, before = (max(n / sum(of), _LEAST) for n, of in ((one, now), (other, then)))
        total += (share - before) * math.log(share / before)
    return total


def _before(history: Sequence[GoldVersion]) -> GoldVersion | None:
    """Return the version a week before the newest one, else the oldest, if it is another."""
    edge = history[0].as_of - BEFORE
    found = next((each for each in history if each.as_of <= edge), history[-1])
    return found if found.version != history[0].version else None


def _counted(
    lake: Lake, view: FeatureView, columns: Sequence[Column], version: GoldVersion | None
) -> Shares:
    """Return the number of keys in each class, of each feature, at a version of gold."""
    if version is None or not columns:
        return {}
    gold = Relation(lake.tables.of(view).gold.name, version.version)
    listed = [
        exp.alias_(exp.Sum(this=_in_class(column.name, place)), f"c{number}_{place}")
        for number, column in enumerate(columns)
        for place in range(len(CLASSES))
    ]
    text = exp.select(*listed).from_("gold_rows").sql(dialect="spark")
    (row,) = lake.ask(text, {}, {"gold_rows": gold}).rows
    return {
        column.name: [int(row[f"c{number}_{place}"] or 0) for place in range(len(CLASSES))]
        for number, column in enumerate(columns)
    }


def _in_class(name: str, place: int) -> exp.Expression:
    """Return 1 where the value is in the class, else 0."""
    value = exp.column(name, quoted=True)
    inside: exp.Condition
    if place == 0:
        inside = value.is_(exp.null())
    elif place == 1:
        inside = value < 0
    elif place == 2:
        inside = value.eq(0)
    elif place - 3 < len(_ENDS):
        inside = exp.and_(value > (0, *_ENDS)[place - 3], value <= _ENDS[place - 3])
    else:
        inside = value > _ENDS[-1]
    return exp.Case().when(inside, exp.Literal.number(1)).else_(exp.Literal.number(0))


def _facts(version: GoldVersion | None, shares: Shares) -> dict[str, Any] | None:
    if version is None:
        return None
    keys = max((sum(each) for each in shares.values()), default=0)
    return {"gold_version": version.version, "as_of": iso(version.as_of), "keys": keys}
