"""The columns of the bucket table: what a bucket keeps of its events for a feature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidemill.features.aggregates import Part, exact_sums
from tidemill.features.columns.placeholders import Types, placed, places_of
from tidemill.features.expressions.fallible import holds, or_null
from tidemill.features.feature import RATIO, Feature, known


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
        merged = placed(self.merge, places)
        return merged if self.part.empty == "NULL" else f"coalesce({merged}, {self.part.empty})"


def partials_of(feature: Feature, types: Types, event_time: str) -> Iterator[Partial]:
    """Yield the bucket columns of a feature, by value and part; none of a ratio."""
    if feature.aggregate == RATIO:
        return
    for value in feature.values or (None,):
        yield from partials_by_value(feature, value, types, event_time)


def partials_by_value(
    feature: Feature, value: str | None, types: Types, event_time: str
) -> Iterator[Partial]:
    """Yield the bucket columns of a feature for one value, by part."""
    declared, where = known(feature.aggregate), condition(feature, value)
    decided = places_of(feature, types)
    of = f"{', '.join(feature.inputs.values())} of " if feature.inputs else ""
    meets = or_null(where, event_time) if feature.condition else where
    number, input_ = _number(feature, types), feature.inputs.get("of", "")
    tamed = {"of": f"CASE WHEN {holds(number, event_time)} THEN {input_} END"} if number else {}
    tried = [where] if feature.condition else []
    tried += [f"CASE WHEN {where} THEN {number} END"] if number else []
    for part in declared.parts:
        places = {**decided, "time": event_time}
        yield Partial(
            name=stem(feature, value, part.name),
            type=placed(part.type, decided),
            part=part,
            aggregate=feature.aggregate,
            where=where,
            bucket=placed(part.bucket, places).replace("{where}", where),
            merge=placed(part.merge, decided),
            of=f"{of}events" + ("" if where == "TRUE" else f" where {where}"),
            made=_made(part, {**places, **tamed}, meets),
            meets=meets,
            tried=tuple(tried),
            feature="_".join(filter(None, (feature.stem, feature.aggregate))),
        )


def stem(feature: Feature, value: str | None, end: str) -> str:
    """Return the name of a feature's column for a value, without its window."""
    return "_".join(filter(None, (value, feature.stem, end)))


def condition(feature: Feature, value: str | None) -> str:
    """Return the SQL condition for an event to count in a feature, for a value."""
    by = f"{feature.column} = '{value}'" if value is not None else None
    both = [by, feature.condition and f"({feature.condition})"]
    return " AND ".join(filter(None, both)) or "TRUE"


def _number(feature: Feature, types: Types) -> str:
    """Return what a double is to be added up as, which it may be too large for; else nothing."""
    adds = any(part.adds for part in known(feature.aggregate).parts)
    if not adds or types[feature.inputs["of"]] != "DOUBLE":
        return ""
    return f"CAST({feature.inputs['of']} AS DECIMAL(18, {feature.given.get('scale') or 0}))"


def _made(part: Part, places: Mapping[str, Any], meets: str) -> str:
    """Return the SQL that makes a part of events, where no event and no sum of them can fail."""
    if not part.adds:
        return placed(part.bucket, places).replace("{where}", meets)
    value, type_ = placed(part.adds, places), placed(part.type, places)
    return exact_sums.total(value, type_, f" FILTER (WHERE {meets})")
