"""Dimensions and what events take of them, as a pipeline's file declares them.

dimensions:
  - name: customer
    keys: [customer_id]
    schema: {customer_id: string, segment: "string?", country: "string?"}
    source: {kind: files, input: changes}
    format: debezium                     # or delta_feed
    order: lsn                           # or binlog, time: what says which change is newer
    history: type2                       # type1 keeps the newest row of a key alone
enrich:
  - dimension: customer
    keys: {buyer: customer_id}           # the event's column: the dimension's key
    columns: {segment: segment}          # the event's column: the dimension's attribute
    refresh: 5m
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from tidemill.config.source_words import SourceOfKind
from tidemill.config.yaml_loader import Declared
from tidemill.features.checks import Misdeclared, refuse_twice
from tidemill.features.suggestions import did_you_mean
from tidemill.features.types import RESERVED, ColumnType, Duration, Identifier
from tidemill.features.windows import HOUR, duration

if TYPE_CHECKING:
    from tidemill.features.view import FeatureView

LONGEST_READ = HOUR  # no lake cleans the log of a version that is so young
OWN = ("changed_at", "position", "deleted", "batch", "valid_from", "valid_to")


class Dimension(Declared):
    """A table of what is known of each key, kept by the changes that a source brings.

    `schema` names its columns; those that are no keys are its attributes, required in a change but
    for types that end with `?`. `format` is what a record of the source is: a Debezium envelope, or
    a row of a Delta table's change data feed. `order` says what makes one Debezium change newer
    than another: PostgreSQL's `lsn`, MySQL's `binlog`, or the `time` and place in its transaction;
    a feed's is the version of the table. `history` keeps of each key the newest row (`type1`), or
    every row with the time in which it held (`type2`).
    """

    model_config = ConfigDict(defer_build=True)  # the kinds of sources are not known yet

    name: Identifier
    keys: tuple[Identifier, ...] = Field(min_length=1)
    column_types: dict[Identifier, ColumnType] = Field(alias="schema")
    source: SourceOfKind
    format: Literal["debezium", "delta_feed"] = "debezium"
    order: Literal["lsn", "binlog", "time"] = "lsn"
    history: Literal["type1", "type2"] = "type1"

    @model_validator(mode="after")
    def _check(self) -> Dimension:
        refuse_twice("key", self.keys)
        refuse_twice("column", self.column_types)
        for column in self.column_types:
            if column.lower() in {*RESERVED, *OWN}:
                raise Misdeclared(
                    f"column {column!r} of dimension {self.name} is one of Tidemill's own names",
                    "schema",
                    column,
                )
        for key in self.keys:
            type_ = self.column_types.get(key)
            if type_ is None:
                hint = did_you_mean(key, self.column_types)
                raise Misdeclared(f"unknown column {key!r} in dimension {self.name}{hint}", "keys")
            if type_.endswith("?"):
                raise Misdeclared(
                    f"key {key!r} may not be absent: its type ends with ?", "schema", key
                )
        return self

    @property
    def attributes(self) -> list[str]:
        """The columns beside the keys."""
        return [name for name in self.column_types if name not in self.keys]

    @property
    def has_history(self) -> bool:
        """Whether every row of a key is kept, with the time in which it held."""
        return self.history == "type2"

    @property
    def follows(self) -> dict[str, Any]:
        """How the rows follow from the changes, as their table keeps it."""
        words = {"format": self.format, "order": self.order, "history": self.history}
        return {"keys": list(self.keys), **words}

    def type_of(self, column: str) -> str:
        """Return the SQL type of a column."""
        return self.column_types[column].rstrip("?").upper()


class Enrichment(Declared):
    """What events take of a dimension, in the row that holds at their time.

    `keys` names, for each key of the dimension, the event's column that holds it; `columns` the
    event's columns that take its attributes, which the view's schema declares with a type that ends
    with `?`, as an event whose key is not in the dimension keeps nulls. `refresh` is how long a
    batch may use the version of the dimension that an earlier one has read; without it each batch
    reads the newest.
    """

    dimension: Identifier
    keys: dict[Identifier, Identifier] = Field(min_length=1)
    columns: dict[Identifier, Identifier] = Field(min_length=1)
    refresh: Duration | None = None

    @property
    def taken(self) -> dict[str, Any]:
        """What each column is taken of, as the events table keeps it."""
        return {
            column: [self.dimension, attribute, dict(self.keys)]
            for column, attribute in self.columns.items()
        }

    @model_validator(mode="after")
    def _check(self) -> Enrichment:
        if self.refresh and duration(self.refresh) > LONGEST_READ:
            raise ValueError(f"refresh {self.refresh} is too long: at most 1h")
        return self


def check(
    dimensions: Sequence[Dimension],
    enrich: Sequence[Enrichment],
    pipeline: str,
    views: Sequence[FeatureView],
) -> None:
    """Refuse dimensions that cannot stand in one lake, and enrichments that cannot be made."""
    named = [dimension.name for dimension in dimensions]
    _refuse_taken(named, [pipeline, *(view.name for view in views)])
    taken = [(place, name) for place, one in enumerate(enrich) for name in one.columns]
    refuse_twice("enriched column", [name for _, name in taken])
    for place, one in enumerate(enrich):
        if one.dimension not in named:
            hint = did_you_mean(one.dimension, named)
            raise Misdeclared(f"unknown dimension {one.dimension!r}{hint}", "enrich", place)
        dimension = dimensions[named.index(one.dimension)]
        _check_keys(one, dimension, views[0], place, [name for _, name in taken])
        _check_columns(one, dimension, views[0], place)


def _refuse_taken(named: Sequence[str], taken: Iterable[str]) -> None:
    seen = {name.lower(): name for name in taken}
    for place, name in enumerate(named):
        if name in named[:place]:
            raise Misdeclared(f"dimension {name!r} is declared twice", "dimensions", place)
        if name.lower() in seen:
            raise Misdeclared(
                f"dimension {name!r} is called as the pipeline, a view or another dimension: their "
                "tables would be the same",
                "dimensions",
                place,
            )
        seen[name.lower()] = name


def _check_keys(
    one: Enrichment,
    dimension: Dimension,
    view: FeatureView,
    place: int,
    enriched: Sequence[str],
) -> None:
    if sorted(one.keys.values()) != sorted(dimension.keys):
        raise Misdeclared(
            f"takes each key of dimension {dimension.name} once ({', '.join(dimension.keys)}), "
            f"found {', '.join(one.keys.values())}",
            "enrich",
            place,
            "keys",
        )
    for column, key in one.keys.items():
        if column not in view.event_schema or column in enriched:
            hint = did_you_mean(column, view.event_schema)
            raise Misdeclared(
                f"the event has no column {column!r}{hint}", "enrich", place, "keys", column
            )
        if view.types[column] != dimension.type_of(key):
            raise Misdeclared(
                f"{column} is {view.types[column].lower()}, key {key} of dimension "
                f"{dimension.name} {dimension.type_of(key).lower()}",
                "enrich",
                place,
                "keys",
                column,
            )


def _check_columns(one: Enrichment, dimension: Dimension, view: FeatureView, place: int) -> None:
    for column, attribute in one.columns.items():
        path = ("enrich", place, "columns", column)
        if attribute not in dimension.attributes:
            hint = did_you_mean(attribute, dimension.attributes)
            message = f"dimension {dimension.name} has no attribute {attribute!r}{hint}"
            raise Misdeclared(message, *path)
        expected = f"{dimension.column_types[attribute].rstrip('?')}?"
        found = view.event_schema.get(column)
        if found != expected:
            raise Misdeclared(
                f"{column} is {found or 'not declared'} in the schema of view {view.name}, "
                f"expected {expected}: an event may have no row in the dimension",
                *path,
            )
