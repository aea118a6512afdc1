"""Sessions: the events of a key that follow each other without a long pause."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from pydantic import Field

from tidemill.config.stream_operators.inputs import LONGEST, OnlyInput, unknown_columns
from tidemill.config.yaml_loader import Declared
from tidemill.features.checks import Misdeclared
from tidemill.features.types import Duration, Identifier
from tidemill.features.windows import duration


class GapBy(Declared):
    """Another gap behind events with some values of a column; the others have the usual one."""

    of: Identifier
    gaps: dict[str, Duration] = Field(min_length=1)


class Sessions(OnlyInput):
    """Sessions of each `keys`: a session goes on when an event comes at most `gap` after one of its
    events, and is `closed` when the watermark has passed that time too. `page` is the column that
    says what an event was about.

    An event that comes later than the watermark is not dropped: it opens its session again, which
    it may prolong, or join with another. Events with a null among the keys are in none.
    """

    keys: tuple[Identifier, ...] = Field(min_length=1)
    gap: Duration
    gap_by: GapBy | None = None
    page: Identifier

    @property
    def kept(self) -> Mapping[str, timedelta]:
        """Nothing: sessions are made again from the events, without a state."""
        return {}

    @property
    def usual_gap(self) -> timedelta:
        """The gap behind events that have no other."""
        return duration(self.gap)

    @property
    def gaps(self) -> Mapping[str, timedelta]:
        """The gaps that are other than usual, by the value of their column."""
        said = self.gap_by.gaps if self.gap_by else {}
        return {value: duration(text) for value, text in said.items()}

    @property
    def longest_gap(self) -> timedelta:
        """The longest gap behind an event."""
        return max([self.usual_gap, *self.gaps.values()])

    @property
    def shortest_gap(self) -> timedelta:
        """The shortest gap behind an event."""
        return min([self.usual_gap, *self.gaps.values()])

    def checked(self, types: Mapping[str, str], *path: str | int) -> Sessions:
        """Return the words as they were understood, by the types of the event's columns;
        Misdeclared, at the path, for what they cannot be."""
        unknown_columns(self.keys, types, *path, "keys")
        unknown_columns([self.page], types, *path, "page")
        if types[self.page] != "STRING":
            message = f"page {self.page} is {types[self.page].lower()}, expected string"
            raise Misdeclared(message, *path, "page")
        if self.columns:
            raise Misdeclared("a session has no columns of single events", *path, "columns")
        if self.gap_by:
            unknown_columns([self.gap_by.of], types, *path, "gap_by", "of")
            if types[self.gap_by.of] != "STRING":
                raise Misdeclared("its values are texts", *path, "gap_by", "of")
        if self.longest_gap > LONGEST:
            raise Misdeclared("a gap may be 366d at most", *path, "gap")
        return self.model_copy(update=self.understood(types, *path))
