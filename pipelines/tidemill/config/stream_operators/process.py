"""Rows that a processor makes of the events of each key, with a state of its own and timers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal

from pydantic import Field, ValidationError

from tidemill.config.stream_operators.inputs import OnlyInput, unknown_columns
from tidemill.config.stream_operators.processors import ProcessorKind, broken, processors
from tidemill.features.checks import Misdeclared
from tidemill.features.suggestions import did_you_mean
from tidemill.features.types import Identifier


class Process(OnlyInput):
    """What the processor `by` makes of the events of each `keys`: `activity_spells`, or one that
    an installed package brings. `options` are its words.

    Its timers go by the watermark, `clock: event`, or by the time at which it runs, `wall`. It is
    the last of a stream: nothing takes its rows in the same query.
    """

    by: str
    keys: tuple[Identifier, ...] = Field(min_length=1)
    clock: Literal["event", "wall"] = "event"
    options: dict[str, Any] = Field(default_factory=dict)

    @property
    def kind(self) -> ProcessorKind:
        """The kind of the processor."""
        return processors()[self.by]

    @property
    def said(self) -> Any:
        """The options, as the kind's model."""
        return self.kind.options.model_validate(self.options)

    @property
    def reads(self) -> list[str]:
        """The event's columns that the processor reads, beside the keys."""
        return [name for name in self.kind.reads(self.said) if name not in self.keys]

    @property
    def kept(self) -> Mapping[str, timedelta]:
        """Nothing is known: what the state holds is the processor's affair."""
        return {}

    def types_of(self, types: Mapping[str, str]) -> Mapping[str, str]:
        """Return the types of the columns that come out, but the keys, by those of the event."""
        return self.kind.columns(self.said, types)

    def checked(self, types: Mapping[str, str], *path: str | int) -> Process:
        """Return the words as they were understood, by the types of the event's columns;
        Misdeclared, at the path, for what they cannot be."""
        if self.by not in processors():
            why = broken().get(self.by)
            hint = f": {why}" if why else did_you_mean(self.by, processors())
            raise Misdeclared(f"unknown processor {self.by!r}{hint}", *path, "by")
        unknown_columns(self.keys, types, *path, "keys")
        if self.columns:
            raise Misdeclared("its columns are those of the processor", *path, "columns")
        try:
            reads = self.reads
        except ValidationError as error:
            first = error.errors()[0]
            said = ".".join(str(step) for step in first["loc"])
            raise Misdeclared(f"{said}: {first['msg']}", *path, "options") from error
        unknown_columns(reads, types, *path, "options")
        try:
            self.types_of(types)
        except ValueError as error:
            raise Misdeclared(str(error), *path, "options") from error
        return self.model_copy(update=self.understood(types, *path))
