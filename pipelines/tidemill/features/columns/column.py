"""The columns of the gold table: expressions over partials that are merged over windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidemill.features.columns.literal import literal
from tidemill.features.columns.partial import Partial, partials_by_value, stem
from tidemill.features.columns.placeholders import Types, placed, places_of
from tidemill.features.feature import Feature, known
from tidemill.features.windows import Window


@dataclass(frozen=True)
class Term:
    """A partial merged over a window."""

    partial: Partial
    window: Window

    @property
    def name(self) -> str:
        """The name that the term would have as a feature."""
        return f"{self.partial.name}_{self.window.text}"


@dataclass(frozen=True)
class Column:
    """A column of the gold table: an expression over terms, `{0}`, `{1}` ...

    `empty` is its value over an empty window. A `hidden` one is a term that gold keeps for the next
    refresh. A column with a `witness` is of the same events when that term is the same. `least`,
    `nested`, `bounds` and `off` are the aggregate's; `overflow` too, an expression over the terms
    as `result` is one. `finish` is `result` outside of SQL, over merged terms, None where only SQL
    can; `nothing` the declared value over an empty window.
    """

    name: str
    type: str
    window: Window
    terms: tuple[Term, ...]
    result: str
    empty: str
    what: str
    hidden: bool = False
    witness: Term | None = None
    least: int | None = None
    nested: str = ""
    bounds: str = ""
    off: str = ""
    overflow: str = ""
    finish: Callable[[Sequence[Any]], Any] | None = field(default=None, compare=False)
    nothing: Any = field(default=None, compare=False)

    @property
    def is_term(self) -> bool:
        """Whether the column is a term itself."""
        return self.result == "{0}" and self.empty == self.terms[0].partial.part.empty

    @property
    def partial(self) -> Partial:
        """The first partial that the column is made of."""
        return self.terms[0].partial

    def value(self, of: Callable[[Term], str]) -> str:
        """Return the SQL of the value, where `of` tells the SQL of a term."""
        sql = self.result.format(*map(of, self.terms))
        if self.is_term and self.empty != "NULL":
            return sql
        sql = f"coalesce({sql}, {self.empty})"
        return f"CASE WHEN NOT {self.overflows(of)} THEN {sql} END" if self.overflow else sql

    def overflows(self, of: Callable[[Term], str]) -> str:
        """Return the SQL condition that the window holds more than the value can tell."""
        return f"coalesce({self.overflow.format(*map(of, self.terms))}, FALSE)"

    def limits(self, of: Callable[[Term], str]) -> str:
        """Return the SQL of what `is_off` needs to know, NULL where that is nothing."""
        return self.bounds.format(*map(of, self.terms)) or "NULL"

    def is_off(self, fresh: str, gold: str, bounds: str) -> str:
        """Return the SQL condition of gold's value to be wrong where the recompute gives `fresh`:
        another one or, of a sketch, one farther away than its declared accuracy allows."""
        other = f"{fresh} IS DISTINCT FROM {gold}"
        if not self.off:
            return other
        off = self.off.format(fresh=fresh, gold=gold, bounds=bounds)
        return f"({other} AND ({fresh} IS NULL OR {gold} IS NULL OR coalesce({off}, TRUE)))"


def column_of(
    feature: Feature, value: str | None, window: Window, types: Types, event_time: str
) -> Column:
    """Return the gold column of a feature for one value and window."""
    declared, decided = known(feature.aggregate), places_of(feature, types)
    terms = tuple(Term(p, window) for p in partials_by_value(feature, value, types, event_time))
    order = {term.partial.part.name: f"{{{place}}}" for place, term in enumerate(terms)}
    witness = next((term for term in terms if term.partial.part.witness), None)
    type_ = placed(declared.type, decided)
    empty = literal(feature.when_nothing, type_) or placed(declared.empty, decided)
    return Column(
        name=f"{stem(feature, value, feature.aggregate)}_{window.text}",
        type=type_,
        window=window,
        terms=terms,
        result=placed(declared.result, {**decided, **order}),
        empty=empty,
        what=f"{feature.aggregate} of {terms[0].partial.of}",
        witness=witness,
        least=declared.least if feature.when_nothing is None else None,
        nested=declared.nested if feature.when_nothing is None else "",
        bounds=placed(declared.bounds, {**decided, **order}),
        off=placed(declared.off, decided),
        overflow=placed(declared.overflow, {**decided, **order}),
        finish=_finish(feature, decided),
        nothing=feature.when_nothing,
    )


@dataclass(frozen=True)
class _Finished:
    """A value of merged terms; a function that goes to another process."""

    finish: Callable[[Sequence[Any], Mapping[str, Any]], Any]
    decided: Mapping[str, Any]

    def __call__(self, merged: Sequence[Any]) -> Any:
        return self.finish(merged, self.decided)


def _finish(feature: Feature, decided: Mapping[str, Any]) -> Callable[[Sequence[Any]], Any] | None:
    finish = known(feature.aggregate).finished
    return finish and _Finished(finish, decided)
