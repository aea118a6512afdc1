"""A key's values at a time, merged of its slices: hours where they lie inside a window, minutes at
its edges.

    window          ├──────────────────────────────────┤
    slices     ││││ ▐▌▐▌▐▌│ hour │ hour │ hour │▐▌▐▌▐▌▐▌

The same partials as in buckets are merged by the same rules as in `incremental.sql`, here in Python
(`aggregates.folds`). A view with an aggregate that only SQL merges has no slices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

from tidemill.features import FeatureView
from tidemill.features.columns import Column, Partial
from tidemill.features.windows import Window
from tidemill.online.slices.slice_records import Parts, ReadHour

HOUR = 3600
_BIGINT = 2**63


@dataclass(frozen=True)
class Merger:
    """Merges the slices of a view's keys."""

    view: FeatureView
    empty: Sequence[Any]  # of the features, as they are shown

    @cached_property
    def _places(self) -> dict[Partial, int]:
        return {partial: place for place, partial in enumerate(self.view.partials)}

    @cached_property
    def _windows(self) -> dict[Window, list[tuple[int, Column]]]:
        """The features of each window, with their places."""
        found: dict[Window, list[tuple[int, Column]]] = {}
        for place, column in enumerate(self.view.shown):
            found.setdefault(column.window, []).append((place, column))
        return found

    def hours(self, end: datetime) -> range:
        """Return the hours, as their numbers since 1970, that windows ending at a time reach."""
        seconds = int(end.timestamp())
        nearest = min(int(window.offset.total_seconds()) for window in self._windows)
        first = seconds - int(self.view.horizon.total_seconds())
        return range(first // HOUR, -(-(seconds - nearest) // HOUR))

    def values(self, hours: Mapping[int, ReadHour], end: datetime) -> list[Any] | None:
        """Return the features in their order; None of a key without an event in its windows."""
        known, values = False, list(self.empty)
        for window, columns in self._windows.items():
            last = int((end - window.offset).timestamp())
            first = int(window.start(end).timestamp())
            rows = list(_inside(hours, first, last))
            if not rows:
                continue
            known, merged = True, self.merged(rows)
            held = [_held(p, merged[place]) for p, place in self._places.items()]
            for place, column in columns:
                values[place] = self._value(column, held, self.empty[place])
        return values if known else None

    def merged(self, rows: Sequence[Parts]) -> list[Any]:
        """Return the partials of all rows, merged; a sum may be larger than its type."""
        return [_merged(p, [row[place] for row in rows]) for p, place in self._places.items()]

    def _value(self, column: Column, merged: Sequence[Any], empty: Any) -> Any:
        """Return the value; None, whatever is declared for no events, of a window that holds too
        much."""
        assert column.finish is not None
        try:
            value = column.finish([merged[self._places[term.partial]] for term in column.terms])
        except OverflowError:
            return None
        return empty if value is None else value


def _inside(hours: Mapping[int, ReadHour], first: int, last: int) -> Iterable[Parts]:
    """Yield the rows between two seconds, the second one not among them."""
    for number, hour in hours.items():
        begins = number * HOUR
        if hour.whole is not None and first <= begins and begins + HOUR <= last:
            yield hour.whole
            yield from hour.late
        elif begins < last and first < begins + HOUR:
            yield from (parts for minute, parts in hour.minutes if first <= minute < last)


def _merged(partial: Partial, values: Sequence[Any]) -> Any:
    """Return values of a partial, merged as SQL merges them."""
    part, fold = partial.part, partial.part.folded
    assert fold is not None
    if part.adds and None in values:  # one that its type could not hold: no sum has it
        return None
    found = None
    for value in values:
        if value is not None:
            found = value if found is None else fold(found, value)
    return 0 if found is None and part.additive else found


def _held(partial: Partial, total: Any) -> Any:
    """Return a merged partial; None for a sum that its type cannot hold."""
    if not partial.part.adds or total is None:
        return total
    if partial.type == "BIGINT":
        return int(total) if -_BIGINT <= total < _BIGINT else None
    digits, scale = map(int, partial.type.partition("(")[2].rstrip(")").split(","))
    return total if abs(total) < Decimal(10) ** (digits - scale) else None
