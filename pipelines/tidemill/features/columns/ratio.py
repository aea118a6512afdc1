"""The column of a ratio: one feature divided by another, over the terms of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tidemill.features.columns.column import Column, Term, column_of
from tidemill.features.columns.literal import literal
from tidemill.features.columns.partial import stem
from tidemill.features.columns.placeholders import Types
from tidemill.features.feature import RATIO, Feature
from tidemill.features.suggestions import did_you_mean
from tidemill.features.windows import Window

NUMBERS = ("BIGINT", "DOUBLE", "DECIMAL")


def ratio(
    feature: Feature,
    features: tuple[Feature, ...],
    types: Types,
    event_time: str,
    window: Window,
) -> Column:
    """Return the gold column of a ratio over one window; `features` are all of the view."""
    over, under = (
        _part_of_ratio(feature, role, features, types, event_time, window) for role in ("of", "to")
    )
    of, to = _places_of(over), _places_of(under, len(over.terms))
    top, bottom = over.value(of), under.value(to)
    overflow = [c.overflows(at) for c, at in ((over, of), (under, to)) if c.overflow]
    result = f"CAST({top} AS DOUBLE) / nullif(CAST({bottom} AS DOUBLE), 0)"
    return Column(
        name="_".join(filter(None, (feature.stem, RATIO, window.text))),
        type="DOUBLE",
        window=window,
        terms=(*over.terms, *under.terms),
        result=result,
        empty=literal(feature.when_nothing, "DOUBLE") or "NULL",
        what=f"{feature.inputs['of']} divided by {feature.inputs['to']}",
        overflow=" OR ".join(overflow),
        finish=_divided(over, under),
    )


def _divided(over: Column, under: Column) -> Callable[[Sequence[Any]], Any] | None:
    """Return the ratio outside of SQL, of the merged terms of both; None where only SQL has it."""
    return _Divided(over, under) if over.finish and under.finish else None


@dataclass(frozen=True)
class _Divided:
    """A ratio of merged terms; a function that goes to another process."""

    over: Column
    under: Column

    def __call__(self, merged: Sequence[Any]) -> float | None:
        count = len(self.over.terms)
        of, to = _value(self.over, merged[:count]), _value(self.under, merged[count:])
        return float(of) / float(to) if of is not None and to else None


def _value(column: Column, merged: Sequence[Any]) -> Any:
    assert column.finish is not None
    value = column.finish(merged)
    return column.nothing if value is None else value


def _places_of(column: Column, first: int = 0) -> Callable[[Term], str]:
    """Return what gives each term of a column a place, from `first`."""
    places = {term: f"{{{first + place}}}" for place, term in enumerate(column.terms)}
    return places.__getitem__


def _part_of_ratio(
    ratio: Feature,
    role: str,
    features: tuple[Feature, ...],
    types: Types,
    event_time: str,
    window: Window,
) -> Column:
    wanted, seen = ratio.inputs[role], []
    for feature in features:
        if feature.aggregate == RATIO:
            continue
        for value in feature.values or (None,):
            name = stem(feature, value, feature.aggregate)
            seen.append(name)
            if name == wanted:
                column = column_of(feature, value, window, types, event_time)
                if not column.type.startswith(NUMBERS):
                    raise ValueError(f"a ratio takes numbers, {wanted} is {column.type}")
                return column
    raise ValueError(f"ratio names no feature {wanted!r}{did_you_mean(wanted, seen)}")
