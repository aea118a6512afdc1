"""A join of the events with themselves: an order and its payment, a highlight and its select."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Literal

from pydantic import Field

from tidemill.config.stream_operators.inputs import LONGEST, Input, unknown_columns
from tidemill.config.yaml_loader import Declared
from tidemill.features.checks import Misdeclared
from tidemill.features.types import Duration, Identifier
from tidemill.features.windows import duration


class Side(Input):
    """One side of a join: the events of which a pair takes one. Its columns are called
    `<name>_<column>`, its time `<name>_at`."""

    name: Identifier


class Join(Declared):
    """Pairs of a left and a right event with equal `keys`, of which the right one happened `within`
    that time after the left one, both ends included: at the same time is early enough.

    `kind` says whose events appear without a pair too, when none can come any more: `left`, `right`
    or both (`full`); `inner` has pairs alone. With two watermarks the rows go by the lesser one,
    `policy: min`, or by the greater, `max`, which drops what the other would have waited for.
    """

    kind: Literal["inner", "left", "right", "full"] = "inner"
    left: Side
    right: Side
    keys: tuple[Identifier, ...] = Field(min_length=1)
    within: Duration
    policy: Literal["min", "max"] = "min"

    @property
    def interval(self) -> timedelta:
        """How long after the left event the right one may happen."""
        return duration(self.within)

    @property
    def sides(self) -> tuple[Side, Side]:
        """The left side and the right one."""
        return self.left, self.right

    @property
    def inputs(self) -> Mapping[str, Input]:
        """The sides by their names."""
        return {side.name: side for side in self.sides}

    @property
    def kept(self) -> Mapping[str, timedelta]:
        """How long the state keeps an event of each side, counted from the newest one: a left one
        as long as its pair may come, a right one as long as a left one may be late."""
        waits = [side.lateness for side in self.sides]
        late = min(waits) if self.policy == "max" else max(waits)
        return {self.left.name: late + self.interval, self.right.name: late}

    def checked(self, types: Mapping[str, str], *path: str | int) -> Join:
        """Return the join as it was understood, by the types of the event's columns; Misdeclared,
        at the path, for what it cannot be."""
        if self.left.name.lower() == self.right.name.lower():
            raise Misdeclared(f"both sides are called {self.left.name}", *path, "right", "name")
        unknown_columns(self.keys, types, *path, "keys")
        if self.interval > LONGEST:
            raise Misdeclared(
                "within may be 366d at most: the state keeps so much", *path, "within"
            )
        for word, side in (("left", self.left), ("right", self.right)):
            for column in side.columns:
                if column in self.keys:
                    message = f"{column!r} is a key: both sides have it, and the row has it once"
                    raise Misdeclared(message, *path, word, "columns")
        understood = {
            word: side.model_copy(update=side.understood(types, *path, word))
            for word, side in (("left", self.left), ("right", self.right))
        }
        return self.model_copy(update=understood)
