"""When somebody did something first, and when last."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from pydantic import Field

from tidemill.config.stream_operators.inputs import OnlyInput, unknown_columns
from tidemill.features.checks import Misdeclared
from tidemill.features.types import Duration, Identifier


class Span(OnlyInput):
    """The first and the last event of each `keys`: their times, and of `columns` what they say.
    There is no watermark: whatever comes late takes its place.

    Of events at the same time the one with the lesser record id is the first, and with the greater
    one the last.
    """

    watermark: Duration = Field(default="1s", exclude=True)
    keys: tuple[Identifier, ...] = Field(min_length=1)

    @property
    def kept(self) -> Mapping[str, timedelta]:
        """Nothing: the table itself is all that is remembered."""
        return {}

    @property
    def result_columns(self) -> list[str]:
        """The names of the columns that come out, behind the keys."""
        names = ("at", "record_id", *self.columns)
        return [f"{end}_{name}" for name in names for end in ENDS]

    def checked(self, types: Mapping[str, str], *path: str | int) -> Span:
        """Return the words as they were understood, by the types of the event's columns;
        Misdeclared, at the path, for what they cannot be."""
        if "watermark" in self.model_fields_set:
            raise Misdeclared("nothing is too late for first and last", *path, "watermark")
        unknown_columns(self.keys, types, *path, "keys")
        return self.model_copy(update=self.understood(types, *path))


ENDS = ("first", "last")
