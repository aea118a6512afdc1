"""The columns that follow from features: what buckets keep, and what gold shows.

    feature ──► partials     columns of the bucket table, one per part of the aggregate
            ──► columns      of the gold table, one per value and window: an expression over terms
    term                     a partial, merged over a window

So a mean is an expression over two terms, a ratio one over the terms of two features. Where all
terms of a view add up, gold keeps each of them, hidden as `__<term>` unless it is a feature itself;
an incremental refresh adds to the terms and computes the expressions from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tidemill.features.aggregates import Part
from tidemill.features.feature import RATIO, Feature, Scalar, known
from tidemill.features.suggest import did_you_mean
from tidemill.features.windows import Window

Types = Mapping[str, str]
NUMBERS = ("BIGINT", "DOUBLE", "DECIMAL")


@dataclass(frozen=True)
class Partial:
    """A column of the bucket table: one part of an aggregate over the events that meet `where`.

    `bucket` is the SQL that makes it of events; `merge` a text with `{partial}`, `{filter}` and
    `{inside}`.
    """

    name: str
    type: str
    part: Part
    where: str
    bucket: str
    merge: str
    aggregate: str = field(compare=False)  # the first of those that share it
    of: str = field(compare=False)

    @property
    def additive(self) -> bool:
        """Whether it merges by a sum."""
        return self.part.additive

    def merged(self, inside: str | None = None) -> str:
        """Yield the SQL that merges the partial over the rows of which `inside` is true, all by
        default."""
        filter_ = f" FILTER (WHERE {inside})" if inside else ""
        places = {"partial": self.name, "filter": filter_, "inside": inside or "TRUE"}
        merged = _placed(self.merge, places)
        return merged if self.part.empty == "NULL" else f"coalesce({merged}, {self.part.empty})"


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
    refresh. A column with a `witness` is as it should be when that term is. `least` and `nested`
    are the aggregate's.
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

    @property
    def is_term(self) -> bool:
        """Whether the column is a term itself."""
        return self.result == "{0}" and self.empty == self.terms[0].partial.part.empty

    @property
    def partial(self) -> Partial:
        """The first partial that the column is made of."""
        return self.terms[0].partial

    def value(self, of: Callable[[Term], str]) -> str:
        """Yield the SQL of the value, where `of` tells the SQL of a term."""
        found = self.result.format(*map(of, self.terms))
        return (
            found if self.is_term and self.empty != "NULL" else f"coalesce({found}, {self.empty})"
        )


def partials_of(feature: Feature, types: Types, event_time: str) -> Iterator[Partial]:
    """Yield the bucket columns of a feature, by value and part; none of a ratio."""
    if feature.aggregate == RATIO:
        return
    for value in feature.values or (None,):
        yield from _partials(feature, value, types, event_time)


def columns_of(
    feature: Feature, features: tuple[Feature, ...], types: Types, event_time: str
) -> Iterator[Column]:
    """Yield the gold columns of a feature, by value and window; `features` are all of the view,
    which a ratio names."""
    if feature.aggregate == RATIO:
        for window in feature.windows:
            yield _ratio(feature, features, types, event_time, window)
        return
    for value in feature.values or (None,):
        for window in feature.windows:
            yield _column(feature, value, window, types, event_time)


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
                yield Column(
                    name, type_, term.window, (term,), "{0}", part.empty, what, hidden=True
                )


def _stem(feature: Feature, value: str | None, end: str) -> str:
    return "_".join(filter(None, (value, feature.stem, end)))


def _where(feature: Feature, value: str | None) -> str:
    by = f"{feature.column} = '{value}'" if value is not None else None
    both = [by, feature.condition and f"({feature.condition})"]
    return " AND ".join(filter(None, both)) or "TRUE"


def _places(feature: Feature, types: Types) -> dict[str, Any]:
    """Yield what stands for the placeholders of an aggregate that the view decides."""
    declared = known(feature.aggregate)
    given = feature.given
    places: dict[str, Any] = {**feature.inputs, **given}
    places |= {f"{role}_type": types[column] for role, column in feature.inputs.items()}
    if "number" in declared.inputs.values():
        places |= _exact(types[feature.inputs["of"]], given.get("scale"))
    return {**places, **(declared.derived(given) if declared.derived else {})}


def _exact(type_: str, scale: int | None) -> dict[str, str]:
    """Yield the types in which a number adds up without rounding."""
    if type_ == "BIGINT":
        return {"exact": "BIGINT", "units": "CAST({of} AS DECIMAL(19, 0))", "unit": "1"}
    if type_.startswith("DECIMAL"):
        scale = int(type_.rstrip(")").split(",")[1])
    digits = scale or 0
    unit = f"{10**digits}"
    units = f"CAST(CAST({{of}} AS DECIMAL(18, {digits})) * {unit} AS DECIMAL(18, 0))"
    return {"exact": f"DECIMAL(38, {digits})", "units": units, "unit": unit}


def _placed(text: str, places: Mapping[str, Any]) -> str:
    """Yield a text with its placeholders filled in, those that stand in others' values too; others
    stay."""
    for _ in range(3):
        for name, value in places.items():
            text = text.replace(f"{{{name}}}", str(value))
    return text


def _partials(
    feature: Feature, value: str | None, types: Types, event_time: str
) -> Iterator[Partial]:
    declared, where = known(feature.aggregate), _where(feature, value)
    decided = _places(feature, types)
    of = f"{', '.join(feature.inputs.values())} of " if feature.inputs else ""
    for part in declared.parts:
        places = {**decided, "time": event_time}
        yield Partial(
            name=_stem(feature, value, part.name),
            type=_placed(part.type, decided),
            part=part,
            aggregate=feature.aggregate,
            where=where,
            bucket=_placed(part.bucket, places).replace("{where}", where),
            merge=_placed(part.merge, decided),
            of=f"{of}events" + ("" if where == "TRUE" else f" where {where}"),
        )


def _column(
    feature: Feature, value: str | None, window: Window, types: Types, event_time: str
) -> Column:
    declared, decided = known(feature.aggregate), _places(feature, types)
    terms = tuple(Term(p, window) for p in _partials(feature, value, types, event_time))
    order = {term.partial.part.name: f"{{{place}}}" for place, term in enumerate(terms)}
    witness = next((term for term in terms if term.partial.part.witness), None)
    type_ = _placed(declared.type, decided)
    empty = _literal(feature.when_nothing, type_) or _placed(declared.empty, decided)
    return Column(
        name=f"{_stem(feature, value, feature.aggregate)}_{window.text}",
        type=type_,
        window=window,
        terms=terms,
        result=_placed(declared.result, {**decided, **order}),
        empty=empty,
        what=f"{feature.aggregate} of {terms[0].partial.of}",
        witness=witness,
        least=declared.least if feature.when_nothing is None else None,
        nested=declared.nested if feature.when_nothing is None else "",
    )


def _literal(value: Scalar | None, type_: str) -> str | None:
    """Yield a value of a type as SQL; ValueError where the type cannot hold it, to the digit."""
    if value is None:
        return None
    if not _fits(value, type_):
        raise ValueError(f"'empty' takes a {type_} that can be written, found {value!r}")
    if isinstance(value, str):
        return "'" + value.replace("'", "\\'") + "'"
    return str(value).upper() if isinstance(value, bool) else f"CAST('{value!r}' AS {type_})"


def _fits(value: Scalar, type_: str) -> bool:
    if isinstance(value, bool) or type_ == "BOOLEAN":
        return isinstance(value, bool) and type_ == "BOOLEAN"
    if isinstance(value, str):
        return type_ == "STRING" and value.isprintable() and not {"\\", "$"} & {*value}
    if type_ == "DOUBLE":
        return abs(value) <= 2**53 if isinstance(value, int) else math.isfinite(value)
    if type_ == "BIGINT":
        return isinstance(value, int) and abs(value) < 2**63
    if not type_.startswith("DECIMAL") or not math.isfinite(value):
        return False
    digits, scale = map(int, type_.removeprefix("DECIMAL(").rstrip(")").split(","))
    exact = Decimal(repr(value))
    return abs(exact) < 10 ** (digits - scale) and round(exact, scale) == exact


def _ratio(
    feature: Feature,
    features: tuple[Feature, ...],
    types: Types,
    event_time: str,
    window: Window,
) -> Column:
    over, under = (
        _part_of_ratio(feature, role, features, types, event_time, window) for role in ("of", "to")
    )
    top, bottom = over.value(_places_of(over)), under.value(_places_of(under, len(over.terms)))
    result = f"CAST({top} AS DOUBLE) / nullif(CAST({bottom} AS DOUBLE), 0)"
    return Column(
        name="_".join(filter(None, (feature.stem, RATIO, window.text))),
        type="DOUBLE",
        window=window,
        terms=(*over.terms, *under.terms),
        result=result,
        empty=_literal(feature.when_nothing, "DOUBLE") or "NULL",
        what=f"{feature.inputs['of']} divided by {feature.inputs['to']}",
    )


def _places_of(column: Column, first: int = 0) -> Callable[[Term], str]:
    """Yield what gives each term of a column a place, from `first`."""
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
            name = _stem(feature, value, feature.aggregate)
            seen.append(name)
            if name == wanted:
                column = _column(feature, value, window, types, event_time)
                if not column.type.startswith(NUMBERS):
                    raise ValueError(f"a ratio takes numbers, {wanted} is {column.type}")
                return column
    raise ValueError(f"ratio names no feature {wanted!r}{did_you_mean(wanted, seen)}")
