"""The first event of each key within a time, of a stream whose senders repeat themselves."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from pydantic import Field

from tidemill.config.stream_operators.inputs import EVENTS, OnlyInput, unknown_columns
from tidemill.features.checks import Misdeclared
from tidemill.features.types import Identifier


class Distinct(OnlyInput):
    """The first event of each `keys`, as far as keys are remembered: for the watermark at least,
    and until the batch after that is done. Of those that come in one batch each key has one event.

    Events with a null among the keys are equal to each other.
    """

    keys: tuple[Identifier, ...] = Field(min_length=1)

    @property
    def kept(self) -> Mapping[str, timedelta]:
        """How long the state keeps a key, counted from the newest event."""
        return {EVENTS: self.lateness}

    def checked(self, types: Mapping[str, str], *path: str | int) -> Distinct:
        """Return the words as they were understood, by the types of the event's columns;
        Misdeclared, at the path, for what they cannot be."""
        unknown_columns(self.keys, types, *path, "keys")
        for column in self.columns:
            if column in self.keys:
                raise Misdeclared(f"{column!r} is a key: the row has it", *path, "columns")
        return self.model_copy(update=self.understood(types, *path))
