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

from tidemill.features.aggregates import Part, exact_sums
from tidemill.features.expressions.fallible import holds, or_null
from tidemill.features.feature import RATIO, Feature, Scalar, known
from tidemill.features.suggestions import did_you_mean
from tidemill.features.windows import Window

Types = Mapping[str, str]
NUMBERS = ("BIGINT", "DOUBLE", "DECIMAL")
OVERFLOWED = "__overflowed"


@dataclass(frozen=True)
class Partial:
    """A column of the bucket table: one part of an aggregate over the events that meet `where`.

    `bucket` and `merge` say what it is made of; a change of either is another partial. `made` is
    the SQL that makes it of events, none of which can fail it; `meets` is `where`, and `tried` the
    expressions that clean tries for `feature`.
    """

    name: str
    type: str
    part: Part
    where: str
    bucket: str
    merge: str
    aggregate: str = field(compare=False)  # the first of those that share it
    of: str = field(compare=False)
    made: str = field(compare=False)
    meets: str = field(compare=False)
    tried: tuple[str, ...] = field(compare=False)
    feature: str = field(compare=False)

    @property
    def additive(self) -> bool:
        """Whether it merges by a sum."""
        return self.part.additive

    def merged(self, inside: str | None = None) -> str:
        """Return the SQL that merges the partial over the rows of which `inside` is true, all by
        default."""
        filter_ = f" FILTER (WHERE {inside})" if inside else ""
        if self.part.adds:
            return exact_sums.total(self.name, self.type, filter_)
        # A bucket row that was made before its column holds nothing: it is outside.
        holds = " AND ".join(filter(None, (inside, f"{self.name} IS NOT NULL")))
        places = {"partial": self.name, "filter": filter_, "inside": holds}
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
    refresh. A column with a `witness` is of the same events when that term is the same. `least`,
    `nested`, `bounds` and `off` are the aggregate's; `overflow` too, an expression over the terms
    as `result` is one.
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
        found = self.result.format(*map(of, self.terms))
        if self.is_term and self.empty != "NULL":
            return found
        found = f"coalesce({found}, {self.empty})"
        return f"CASE WHEN NOT {self.overflows(of)} THEN {found} END" if self.overflow else found

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


def _stem(feature: Feature, value: str | None, end: str) -> str:
    return "_".join(filter(None, (value, feature.stem, end)))


def _where(feature: Feature, value: str | None) -> str:
    by = f"{feature.column} = '{value}'" if value is not None else None
    both = [by, feature.condition and f"({feature.condition})"]
    return " AND ".join(filter(None, both)) or "TRUE"


def _places(feature: Feature, types: Types) -> dict[str, Any]:
    """Return what stands for the placeholders of an aggregate that the view decides."""
    declared = known(feature.aggregate)
    given = feature.given
    places: dict[str, Any] = {**feature.inputs, **given}
    places |= {f"{role}_type": types[column] for role, column in feature.inputs.items()}
    if "number" in declared.inputs.values():
        places |= _exact(types[feature.inputs["of"]], given.get("scale"))
    return {**places, **(declared.derived(given) if declared.derived else {})}


def _exact(type_: str, scale: int | None) -> dict[str, str]:
    """Return the types in which a number adds up without rounding."""
    if type_ == "BIGINT":
        return {"exact": "BIGINT", "units": "CAST({of} AS DECIMAL(19, 0))", "unit": "1"}
    if type_.startswith("DECIMAL"):
        scale = int(type_.rstrip(")").split(",")[1])
    digits = scale or 0
    unit = f"{10**digits}"
    units = f"CAST(CAST({{of}} AS DECIMAL(18, {digits})) * {unit} AS DECIMAL(18, 0))"
    return {"exact": f"DECIMAL(38, {digits})", "units": units, "unit": unit}


def _placed(text: str, places: Mapping[str, Any]) -> str:
    """Return a text with its placeholders filled in, those that stand in others' values too; others
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
    meets = or_null(where, event_time) if feature.condition else where
    number, input_ = _number(feature, types), feature.inputs.get("of", "")
    tamed = {"of": f"CASE WHEN {holds(number, event_time)} THEN {input_} END"} if number else {}
    tried = [where] if feature.condition else []
    tried += [f"CASE WHEN {where} THEN {number} END"] if number else []
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
            made=_made(part, {**places, **tamed}, meets),
            meets=meets,
            tried=tuple(tried),
            feature="_".join(filter(None, (feature.stem, feature.aggregate))),
        )


def _number(feature: Feature, types: Types) -> str:
    """Return what a double is to be added up as, which it may be too large for; else nothing."""
    adds = any(part.adds for part in known(feature.aggregate).parts)
    if not adds or types[feature.inputs["of"]] != "DOUBLE":
        return ""
    return f"CAST({feature.inputs['of']} AS DECIMAL(18, {feature.given.get('scale') or 0}))"


def _made(part: Part, places: Mapping[str, Any], meets: str) -> str:
    """Return the SQL that makes a part of events, where no event and no sum of them can fail."""
    if not part.adds:
        return _placed(part.bucket, places).replace("{where}", meets)
    value, type_ = _placed(part.adds, places), _placed(part.type, places)
    return exact_sums.total(value, type_, f" FILTER (WHERE {meets})")


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
        bounds=_placed(declared.bounds, {**decided, **order}),
        off=_placed(declared.off, decided),
        overflow=_placed(declared.overflow, {**decided, **order}),
    )


def _literal(value: Scalar | None, type_: str) -> str | None:
    """Return a value of a type as SQL; ValueError where the type cannot hold it, to the digit."""
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
        empty=_literal(feature.when_nothing, "DOUBLE") or "NULL",
        what=f"{feature.inputs['of']} divided by {feature.inputs['to']}",
        overflow=" OR ".join(overflow),
    )


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
            name = _stem(feature, value, feature.aggregate)
            seen.append(name)
            if name == wanted:
                column = _column(feature, value, window, types, event_time)
                if not column.type.startswith(NUMBERS):
                    raise ValueError(f"a ratio takes numbers, {wanted} is {column.type}")
                return column
    raise ValueError(f"ratio names no feature {wanted!r}{did_you_mean(wanted, seen)}")
