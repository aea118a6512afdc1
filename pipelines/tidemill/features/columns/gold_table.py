"""All columns of a view's gold table: its features, and what is kept beside them."""

from __future__ import annotations

from collections.abc import Iterator

from tidemill.features.columns.column import Column, Term, column_of
from tidemill.features.columns.placeholders import Types
from tidemill.features.columns.ratio import ratio
from tidemill.features.feature import RATIO, Feature

OVERFLOWED = "__overflowed"


def columns_of(
    feature: Feature, features: tuple[Feature, ...], types: Types, event_time: str
) -> Iterator[Column]:
    """Yield the gold columns of a feature, by value and window; `features` are all of the view,
    which a ratio names."""
    if feature.aggregate == RATIO:
        for window in feature.windows:
            yield ratio(feature, features, types, event_time, window)
        return
    for value in feature.values or (None,):
        for window in feature.windows:
            yield column_of(feature, value, window, types, event_time)


def hidden_of(columns: tuple[Column, ...]) -> Iterator[Column]:
    """Yield the terms that gold keeps beside the features: all where all add up, else only what
    tells a sketch."""
    every = all(term.partial.additive for column in columns for term in column.terms)
    shown = {column.terms[0] for column in columns if column.is_term}
    for column in columns:
        for term in column.terms:
            if term not in shown and (every or term.partial.part.witness):
                shown.add(term)
                part = term.partial.part
                what = f"for the next refresh: {part.name} of {term.partial.of}"
                name, type_ = f"__{term.name}", term.partial.type
                over = "{0} IS NULL" if part.adds else ""
                yield Column(
                    name,
                    type_,
                    term.window,
                    (term,),
                    "{0}",
                    part.empty,
                    what,
                    hidden=True,
                    overflow=over,
                )


def overflow_of(columns: tuple[Column, ...]) -> Iterator[Column]:
    """Yield the column that names the features of a row without a value because a window holds too
    much, where any can."""
    terms: list[Term] = []
    named = []
    for column in columns:
        if column.overflow:
            places = [f"{{{len(terms) + place}}}" for place in range(len(column.terms))]
            named.append(f"CASE WHEN {column.overflow.format(*places)} THEN '{column.name}' END")
            terms += column.terms
    if named:
        result = f"nullif(concat_ws(',', {', '.join(named)}), '')"
        what = "the features that are null because their windows hold too much"
        window = columns[0].window
        yield Column(OVERFLOWED, "STRING", window, tuple(terms), result, "NULL", what, hidden=True)
