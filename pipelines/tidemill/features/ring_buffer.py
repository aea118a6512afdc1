"""The ring: one key's minute buckets within its windows, and the features they make. No Spark.

    buckets   09:58  10:31  10:59        told   the values that were emitted last
              ──leaves at 10:59──►

Times are whole minutes since 1970. At as_of T a window of w minutes holds the buckets that start in
[T - w, T), as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from tidemill.features.aggregates import Aggregate, Fold, aggregates
from tidemill.features.columns import Partial
from tidemill.features.types import BIGINTS
from tidemill.features.view import FeatureView

Values = tuple[Any, ...]
LEAST, MOST = BIGINTS[0], BIGINTS[-1]


@dataclass(frozen=True)
class Shape:
    """What all rings of a view have in common, in the order of its partials and columns.

    `lengths` are the partials' longest windows; a cell is a feature: a partial's place and the
    window.
    """

    folds: tuple[Fold, ...]
    neutral: Values
    lengths: tuple[int, ...]
    cells: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, view: FeatureView) -> Shape:
        """Return the shape of a view's rings; ValueError when an aggregate is SQL's alone."""
        _refuse_what_state_lacks(view)
        places = {partial.name: place for place, partial in enumerate(view.partials)}
        cells = tuple((places[c.partial.name], c.window.minutes) for c in view.values)
        return cls(
            tuple(_fold_of(partial, view) for partial in view.partials),
            tuple(_aggregate(partial).neutral for partial in view.partials),
            tuple(max(w for p, w in cells if p == place) for place in places.values()),
            cells,
        )

    @property
    def empty(self) -> Values:
        """The features of a key without events."""
        return tuple(self.neutral[place] for place, _ in self.cells)


def _refuse_what_state_lacks(view: FeatureView) -> None:
    if view.bucket_length != timedelta(minutes=1):
        raise ValueError(f"view {view.name} has a bucket of {view.bucket}, state keeps minutes")
    for column in view.values:
        plain = column.is_term or (column.result == "{0}" and column.empty == "NULL")
        rolling = column.window.period is None and not column.window.ago
        if not rolling or not (plain or _aggregate(column.partial).fold):
            raise ValueError(
                f"{column.name} of view {view.name} cannot be kept in state; take engine: buckets"
            )


def _aggregate(partial: Partial) -> Aggregate:
    return aggregates()[partial.aggregate]


def _fold_of(partial: Partial, view: FeatureView) -> Fold:
    aggregate = _aggregate(partial)
    if aggregate.fold is None or len(aggregate.parts) > 1:
        raise ValueError(
            f"{aggregate.name} of view {view.name} cannot be kept in state; take engine: buckets"
        )
    return aggregate.fold


@dataclass
class Ring:
    """A key's buckets by the minute they start, and the values told last."""

    shape: Shape
    buckets: dict[int, Values] = field(default_factory=dict)
    told: Values = ()

    def __post_init__(self) -> None:
        """Begin as a key without events, which nobody needs to be told of."""
        self.told = self.told or self.shape.empty

    def add(self, minute: int, partials: Sequence[Any]) -> None:
        """Count a bucket row in, of any age; what is too old for its windows leaves with
        `advance`."""
        before = self.buckets.get(minute, self.shape.neutral)
        pairs = zip(self.shape.folds, before, partials, strict=True)
        self.buckets[minute] = tuple(_folded(fold, one, other) for fold, one, other in pairs)

    def advance(self, as_of: int) -> Values | None:
        """Let go what no window holds any more; return the features when they are not those told
        last, which they then are."""
        self.buckets = {m: p for m, p in self.buckets.items() if self._counts(m, p, as_of)}
        values = self._values(as_of)
        if values == self.told:
            return None
        self.told = values
        return values

    def changes_at(self, as_of: int) -> int | None:
        """Return the first as_of after this one at which a bucket enters or leaves a window."""
        times = (
            time
            for minute in self.buckets
            for time in (minute + 1, *(minute + 1 + w for w in {w for _, w in self.shape.cells}))
        )
        return min((time for time in times if time > as_of), default=None)

    def _counts(self, minute: int, partials: Values, as_of: int) -> bool:
        """Return whether the bucket is in a window, or will be, with more than nothing."""
        shape = self.shape
        return any(
            partial != neutral and minute >= as_of - length
            for partial, neutral, length in zip(partials, shape.neutral, shape.lengths, strict=True)
        )

    def _values(self, as_of: int) -> Values:
        values = list(self.shape.empty)
        for minute, partials in self.buckets.items():
            for column, (place, window) in enumerate(self.shape.cells):
                if as_of - window <= minute < as_of:
                    fold = self.shape.folds[place]
                    values[column] = _folded(fold, values[column], partials[place])
        return tuple(value if _fits(value) else None for value in values)

    def rows(self) -> list[tuple[int, Values]]:
        """Return the buckets as rows of the state; a sum that no BIGINT holds is in several."""
        return [
            (minute, part)
            for minute, partials in self.buckets.items()
            for part in _parts(partials, self.shape.neutral)
        ]


def _fits(value: Any) -> bool:
    """Return whether the type of a feature, or of a bucket's part, holds the value."""
    return type(value) is not int or LEAST <= value <= MOST


def _parts(partials: Values, neutral: Values) -> Iterator[Values]:
    """Yield partials that fit their types and fold to these."""
    while not all(map(_fits, partials)):
        part = tuple(p if _fits(p) else (MOST if p > 0 else LEAST) for p in partials)
        pairs = zip(partials, part, neutral, strict=True)
        partials = tuple(n if _fits(p) else p - one for p, one, n in pairs)
        yield part
    yield partials


def _folded(fold: Fold, one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return fold(one, other)
