"""Feature views: what a user declares, and the columns that follow from it.

    events ──bucket──► partials per (keys, minute) ──merge over a window──► features per keys

`partials` are the bucket table's columns, `columns` the gold table's; both are derived here, once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from tidemill.errors import DefinitionError
from tidemill.features.aggregates import AGGREGATES, COUNT, MAX, MIN, Aggregate
from tidemill.features.suggest import did_you_mean
from tidemill.features.windows import Window, duration

RESERVED = frozenset(
    "record_id raw_payload topic partition offset source_ts ingested_at ingest_date reasons "
    "event_id event_hour batch duplicate bucket_start bucket_hour updated_at as_of".split()
)
COLUMN_TYPES = ("string", "bigint", "double", "boolean")


def identifier(text: str) -> str:
    """Yield `text` when it is a plain lower- or mixed-case SQL identifier of at most 128
    letters."""
    plain = text.isascii() and text.isidentifier() and len(text) <= 128
    if not plain or text.startswith("__"):
        raise ValueError(f"{text!r} is not an identifier (letters, digits and _)")
    return text


def _is_duration(text: str) -> str:
    try:
        duration(text)
    except DefinitionError as error:
        raise ValueError(str(error)) from error
    return text


Identifier = Annotated[str, AfterValidator(identifier)]
Duration = Annotated[str, AfterValidator(_is_duration)]
ColumnType = Literal["string", "bigint", "double", "boolean"]


@dataclass(frozen=True)
class Partial:
    """A column of the bucket table: one aggregate over the events that meet `where`.

    `input` is the event's column that the aggregate takes, None where it takes none.
    """

    name: str
    aggregate: Aggregate
    where: str
    input: str | None = None

    @property
    def bucket(self) -> str:
        """The SQL that makes the partial of a bucket's events."""
        return self.aggregate.bucket.format(where=self.where, input=self.input)


@dataclass(frozen=True)
class Column:
    """A feature column of the gold table: one partial over one window."""

    name: str
    partial: Partial
    window: Window


class Feature(BaseModel):
    """An aggregate, split by the values of a column, over windows.

    Written as a sentence: `count().by("event_type", ["select", "view"]).over("1h", "1d")`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    aggregate: str
    input: Identifier | None = None
    column: Identifier | None = None
    values: tuple[Identifier, ...] = ()
    windows: tuple[Window, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _from_yaml(cls, data: Any) -> Any:
        """Take `{count: {by: {column: [values]}}, over: [...]}` as well as the fields."""
        if not isinstance(data, Mapping) or "aggregate" in data:
            return data
        return _read_feature(data)

    def by(self, column: str, values: Iterable[str]) -> Feature:
        """Yield the feature split by `values` of `column`: one column of gold for each."""
        return Feature(**{**dict(self), "column": column, "values": tuple(values)})

    def over(self, *windows: str) -> Feature:
        """Yield the feature over `windows`, such as "1h", "12h", "1d", in any order."""
        return Feature(**{**dict(self), "windows": tuple(map(Window.parse, windows))})

    def partials(self) -> Iterator[Partial]:
        """Yield the bucket columns, in the order of the values."""
        aggregate = AGGREGATES[self.aggregate]
        name = f"{self.input}_{aggregate.name}" if self.input else aggregate.name
        if not self.values:
            yield Partial(name, aggregate, "TRUE", self.input)
        for value in self.values:
            yield Partial(f"{value}_{name}", aggregate, f"{self.column} = '{value}'", self.input)


def count() -> Feature:
    """Yield the feature that counts events."""
    return Feature(aggregate=COUNT.name)


def min_(column: str) -> Feature:
    """Yield the feature that is the smallest value of `column`; null over an empty window."""
    return Feature(aggregate=MIN.name, input=column)


def max_(column: str) -> Feature:
    """Yield the feature that is the largest value of `column`; null over an empty window."""
    return Feature(aggregate=MAX.name, input=column)


def _read_feature(data: Mapping[str, Any]) -> dict[str, Any]:
    names = [name for name in data if name != "over"]
    if len(names) != 1:
        raise ValueError(f"a feature has one aggregate beside 'over', found {names}")
    name = str(names[0])
    if name not in AGGREGATES:
        raise ValueError(f"unknown aggregate {name!r}{did_you_mean(name, AGGREGATES)}")
    options = data[name] or {}
    if isinstance(options, str):
        options = {"of": options}
    if not isinstance(options, Mapping) or set(options) - {"of", "by"}:
        raise ValueError(f"{name} takes 'of: column, by: {{column: [values]}}', found {options!r}")
    by, windows = _read_by(options.get("by")), _read_over(data)
    return {"aggregate": name, "input": options.get("of"), **by, "windows": windows}


def _read_by(by: Any) -> dict[str, Any]:
    if by is None:
        return {}
    if not isinstance(by, Mapping) or len(by) != 1:
        raise ValueError(f"'by' takes one column with its values, found {by!r}")
    ((column, values),) = by.items()
    if not isinstance(values, list | tuple) or not values:
        raise ValueError(f"'by: {{{column}: ...}}' takes a list of values, found {values!r}")
    return {"column": str(column), "values": tuple(str(value) for value in values)}


def _read_over(data: Mapping[str, Any]) -> tuple[Window, ...]:
    over = data.get("over")
    if not isinstance(over, list | tuple) or not over:
        raise ValueError(f"'over' takes a list of windows such as [1h, 1d], found {over!r}")
    try:
        return tuple(Window.parse(str(text)) for text in over)
    except DefinitionError as error:
        raise ValueError(str(error)) from error


class FeatureView(BaseModel):
    """Rolling-window features for each combination of `keys`, kept in one gold table.

    `schema` names the columns of an event beside its time and what type each has; every one of them
    is required in an event. A window of length w at as_of T is [T - w, T), exact at the minute.
    `when_empty` says what becomes of a key whose every feature is empty: `zero` keeps a row of
    empty values until upkeep removes it, `keep_empty` after it became empty; `delete` removes the
    row at once.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    name: Identifier
    keys: tuple[Identifier, ...] = Field(min_length=1)
    event_time: Identifier
    event_schema: dict[Identifier, ColumnType] = Field(default_factory=dict, alias="schema")
    when_empty: Literal["zero", "delete"] = "zero"
    keep_empty: Duration = "7d"
    features: tuple[Feature, ...] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _complete_schema(cls, data: Any) -> Any:
        """Take every column that keys and features name as a string where no schema is given."""
        if not isinstance(data, Mapping) or "schema" in data or "event_schema" in data:
            return data
        features = data.get("features") or ()
        named = [f.column for f in features if isinstance(f, Feature) and f.column]
        return {**data, "schema": {c: "string" for c in [*data.get("keys", ()), *named]}}

    @model_validator(mode="after")
    def _check(self) -> FeatureView:
        named = (c for f in self.features for c in (f.column, f.input) if c)
        for column in (*self.keys, *named):
            if column not in self.event_schema:
                hint = did_you_mean(column, self.event_schema)
                raise ValueError(f"unknown column {column!r} in view {self.name}{hint}")
        _refuse_reserved(self)
        _refuse_twice("key", self.keys)
        _refuse_twice("feature", [c.name for c in self.columns])
        return self

    @cached_property
    def partials(self) -> tuple[Partial, ...]:
        """The bucket table's columns, in the order of the declaration."""
        found = [p for f in self.features for p in f.partials()]
        return tuple({p.name: p for p in found}.values())

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The gold table's feature columns: longest window first, values as declared."""
        cells = [
            Column(f"{partial.name}_{window.text}", partial, window)
            for feature in self.features
            for partial in feature.partials()
            for window in feature.windows
        ]
        return tuple(sorted(cells, key=lambda cell: -cell.window.length))

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows, longest first."""
        return tuple(dict.fromkeys(column.window for column in self.columns))

    @property
    def invertible(self) -> bool:
        """Whether what leaves a window can be subtracted from every feature."""
        return all(partial.aggregate.invertible for partial in self.partials)

    def type_of(self, partial: Partial) -> str:
        """Yield the SQL type of a partial, which is also that of its features."""
        return partial.aggregate.type or self.event_schema[str(partial.input)].upper()

    @property
    def horizon(self) -> Window:
        """The longest window: what a recompute reads."""
        return self.columns[0].window

    def known_values(self) -> dict[str, tuple[str, ...]]:
        """Yield, for each column that features split by, the values an event may have."""
        known: dict[str, tuple[str, ...]] = {}
        for feature in self.features:
            if feature.column:
                before = known.get(feature.column, ())
                known[feature.column] = tuple(dict.fromkeys((*before, *feature.values)))
        return known

    @property
    def definition(self) -> str:
        """A hash of what decides the values: keys, schema, event time, bucket, features,
        when_empty."""
        told = {
            "keys": self.keys,
            "schema": self.event_schema,
            "event_time": self.event_time,
            "bucket": "1m",
            "features": [
                (c.name, c.partial.aggregate.name, c.partial.where, c.window.minutes)
                for c in self.columns
            ],
            "when_empty": self.when_empty,
        }
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def _refuse_reserved(view: FeatureView) -> None:
    for column in (*view.event_schema, view.event_time, *view.keys):
        if column.lower() in RESERVED:
            raise ValueError(
                f"column {column!r} of view {view.name} is one of Tidemill's own names"
            )
    if view.event_time in view.event_schema:
        raise ValueError(
            f"event_time {view.event_time!r} is also in the schema: leave it out there"
        )
    for feature in view.features:
        if not feature.windows:
            raise ValueError(f"a {feature.aggregate} of view {view.name} has no windows: add over")
        if feature.column and view.event_schema[feature.column] != "string":
            raise ValueError(f"'by' takes a string column, {feature.column!r} is none")
        if (AGGREGATES[feature.aggregate].type is None) != (feature.input is not None):
            takes = "no column" if feature.input else "a column: of"
            raise ValueError(f"{feature.aggregate} of view {view.name} takes {takes}")


def _refuse_twice(what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise ValueError(f"{what} {name!r} is declared twice")
        seen.add(name.lower())
