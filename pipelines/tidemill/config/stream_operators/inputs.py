"""The events that a stream's operator reads: which, how late, and what it keeps of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from pydantic import Field

from tidemill.config.yaml_loader import Declared
from tidemill.features.checks import Misdeclared
from tidemill.features.expressions import row_expression
from tidemill.features.suggestions import did_you_mean
from tidemill.features.types import Duration, Identifier
from tidemill.features.windows import duration

LONGEST = timedelta(days=366)
EVENTS = "events"  # an input that has no name of its own


class Input(Declared):
    """Events of the pipeline, all or those that `where` is true for.

    `watermark` is how much older than the newest event one may be when it arrives: older ones are
    dropped, and counted. It goes by all events of the pipeline, also by those that `where` leaves
    out, so an input that is silent holds nobody up. `columns` are what the rows keep of an event
    beside what the operator goes by.
    """

    where: str | None = None
    watermark: Duration
    columns: tuple[Identifier, ...] = Field(default=())

    @property
    def lateness(self) -> timedelta:
        """The watermark as a length of time."""
        return duration(self.watermark)

    def understood(self, types: Mapping[str, str], *path: str | int) -> dict[str, object]:
        """Return the words that change when they are understood; Misdeclared, at the path, for an
        unknown column, a condition that is none, a watermark of more than a year."""
        unknown_columns(self.columns, types, *path, "columns")
        if self.lateness > LONGEST:
            raise Misdeclared("a watermark may be 366d at most", *path, "watermark")
        if self.where is None:
            return {}
        try:
            return {"where": row_expression.checked(self.where, types, condition=True)}
        except ValueError as error:
            raise Misdeclared(str(error), *path, "where") from error


class OnlyInput(Input):
    """The events of an operator that reads one input: its words stand beside the operator's."""

    @property
    def inputs(self) -> Mapping[str, Input]:
        """What the operator reads, by its name."""
        return {EVENTS: self}


def unknown_columns(names: Iterable[str], types: Mapping[str, str], *path: str | int) -> None:
    """Raise Misdeclared for a name that is no column of the event, or that stands twice."""
    seen = set()
    for name in names:
        if name not in types:
            hint = did_you_mean(name, types)
            raise Misdeclared(f"the event has no column {name!r}{hint}", *path)
        if name in seen:
            raise Misdeclared(f"{name!r} stands twice", *path)
        seen.add(name)
