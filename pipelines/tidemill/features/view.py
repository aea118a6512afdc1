"""Feature views: what a user declares, and the columns that follow from it.

    events ──select──► rows ──bucket──► partials per (keys, bucket) ──merge over a window──► values

`partials` are the bucket table's columns, `columns` the gold table's; both are derived here,
once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import timedelta
from functools import cached_property
from typing import Any

from pydantic import model_validator

from tidemill.features import checks
from tidemill.features.columns import (
    OVERFLOWED,
    Column,
    Partial,
    columns_of,
    hidden_of,
    overflow_of,
    partials_of,
)
from tidemill.features.declaration import Declaration
from tidemill.features.expressions import row_expression
from tidemill.features.feature import Feature
from tidemill.features.windows import Window


class FeatureView(Declaration):
    """Rolling-window features for each combination of `keys`, kept in one gold table.

    `schema` names the columns of an event beside its time and what type each has; they are required
    in an event, but for those whose type ends with `?`. `select` adds columns that are computed
    from them, row by row, before anything is counted. A window of length w at as_of T is
    [T - w, T), exact at the `bucket`, which divides an hour; `history` is how long buckets are
    kept, where that is shorter than the pipeline's. `source` is the pipeline whose events the view
    reads, its own where None. `when_empty` says what becomes of a key whose every feature is empty:
    `zero` keeps a row of empty values until maintenance removes it, `keep_empty` after it became
    empty; `delete` removes the row at once. `on_overflow` says what becomes of a feature whose
    window holds more than its type or capacity: `null` makes that value null and goes on, `stop`
    ends the refresh.
    """

    @model_validator(mode="after")
    def _check(self) -> FeatureView:
        checks.check_columns(self)
        checks.check_bucket(self)
        for place, feature in enumerate(self.features):
            checks.check_feature(self, feature, place)
        object.__setattr__(self, "features", tuple(self._rewritten()))
        checks.refuse_twice("key", self.keys)
        checks.check_partials(self)
        names = [(column.name, place) for place, column in self._declared]
        checks.refuse_twice("feature", [name for name, _ in names], dict(reversed(names)))
        return self

    def _rewritten(self) -> Iterator[Feature]:
        """Yield the features, their conditions as they were understood."""
        for feature in self.features:
            yield (
                feature.where(row_expression.checked(feature.condition, self.types, condition=True))
                if feature.condition is not None
                else feature
            )

    @cached_property
    def partials(self) -> tuple[Partial, ...]:
        """The bucket table's columns, in the order of the declaration."""
        parts = [p for f in self.features for p in partials_of(f, self.types, self.event_time)]
        return tuple({p.name: p for p in parts}.values())

    @cached_property
    def _declared(self) -> tuple[tuple[int, Column], ...]:
        """Each declared gold column, with the place of its feature."""
        return tuple(
            (place, column)
            for place, feature in enumerate(self.features)
            for column in columns_of(feature, self.features, self.types, self.event_time)
        )

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The gold table's columns beside the keys: the features, the longest window first, values
        as declared; then what is kept beside them for the next refresh."""
        declared = sorted((c for _, c in self._declared), key=lambda c: -c.window.reach)
        return (*declared, *hidden_of(tuple(declared)), *overflow_of(tuple(declared)))

    @property
    def values(self) -> tuple[Column, ...]:
        """The gold table's columns beside the keys, but for the one that names overflows."""
        return tuple(column for column in self.columns if column.name != OVERFLOWED)

    @property
    def may_overflow(self) -> bool:
        """Whether a window can hold more than a feature can tell."""
        return len(self.values) < len(self.columns)

    @property
    def shown(self) -> tuple[Column, ...]:
        """The features, without what gold keeps beside them."""
        return tuple(column for column in self.columns if not column.hidden)

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows, the one that reaches back farthest first."""
        return tuple(dict.fromkeys(column.window for column in self.columns))

    @property
    def invertible(self) -> bool:
        """Whether what leaves a window can be subtracted from every feature."""
        return all(term.partial.additive for column in self.columns for term in column.terms)

    @property
    def horizon(self) -> timedelta:
        """How far back the windows reach: what a recompute reads."""
        return self.columns[0].window.reach

    @property
    def apart(self) -> timedelta:
        """How far back buckets are needed one by one; further back, where there are lifetimes, they
        may be added up."""
        return max(window.apart for window in self.windows)

    @property
    def has_lifetimes(self) -> bool:
        """Whether a window holds all of time: buckets that expire are folded, not lost."""
        return any(window.is_lifetime for window in self.windows)

    def known_values(self) -> dict[str, tuple[str, ...]]:
        """Return, for each column of the event that features split by, the values it may have."""
        values: dict[str, tuple[str, ...]] = {}
        for feature in self.features:
            if feature.column in self.event_schema:
                before = values.get(str(feature.column), ())
                values[str(feature.column)] = tuple(dict.fromkeys((*before, *feature.values)))
        return values

    def scales(self) -> dict[str, int]:
        """Return, for each double of the event that is added up, the digits kept after the
        point."""
        digits: dict[str, int] = {}
        for feature in self.features:
            scale, column = feature.parameters.get("scale"), feature.inputs.get("of", "")
            if scale is not None and self.event_schema.get(column, "").startswith("double"):
                digits[column] = max(scale, digits.get(column, 0))
        return digits

    def words(self) -> dict[str, Any]:
        """Return the view as a file says it; what has its default is left out."""
        said: dict[str, Any] = {
            "name": self.name,
            "keys": list(self.keys),
            "event_time": self.event_time,
            "schema": dict(self.event_schema),
            "select": {name: {one.type: one.sql} for name, one in self.select.items()},
            "features": [feature.words() for feature in self.features],
        }
        for word in ("bucket", "history", "source", "when_empty", "keep_empty", "on_overflow"):
            if getattr(self, word) != type(self).model_fields[word].default:
                said[word] = getattr(self, word)
        return {word: value for word, value in said.items() if value != {}}

    @property
    def definition(self) -> str:
        """A hash of what decides the values: keys, schema, event time, bucket, features,
        when_empty."""
        fields = {
            "keys": self.keys,
            "schema": self.event_schema,
            "select": {name: (one.type, one.sql) for name, one in self.select.items()},
            "event_time": self.event_time,
            "bucket": int(self.bucket_length.total_seconds()),
            "features": [
                (c.name, c.result, c.empty, _seconds(c.window), [_told(t.partial) for t in c.terms])
                for c in self.values
            ],
            "when_empty": self.when_empty,
        }
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:16]


def _told(partial: Partial) -> tuple[str, str, str]:
    return partial.name, partial.bucket, partial.merge


def _seconds(window: Window) -> tuple[Any, ...]:
    period = () if window.period is None else (window.period.words(),)
    return window.length.total_seconds(), window.offset.total_seconds(), *period
