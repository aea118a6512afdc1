"""The kinds of processors by name: the shipped one, and those that installed packages bring.

A processor is a `StatefulProcessor` of Spark's `transformWithState`: any Python over the rows of a
key, with a state and timers. A package brings a kind by an entry point of the group
`tidemill.processors` that is a `ProcessorKind`; `docs/own-processor.md` shows one with its test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from tidemill.config.yaml_loader import Declared
from tidemill.errors import DefinitionError
from tidemill.features.plugins import installed
from tidemill.features.types import Duration, Identifier

GROUP = "tidemill.processors"


class ProcessorOptions(Declared):
    """The words of a processor in a pipeline's file: a subclass has a field for each."""


@dataclass(frozen=True)
class ProcessorKind:
    """A kind of processor.

    `name` is what a file calls it, `what` says what it gives. `options` is the model of its words;
    `reads` returns the event's columns that it reads, and `columns` what its rows hold beside the
    keys: names and SQL types, from the options and the types of the event's columns, ValueError
    where these do not go together. `processor` is `module:function`: called with the options,
    the names of the keys and the clock (`event` or `wall`) it returns the StatefulProcessor, whose
    module Spark's workers import too.

    The processor's rows have what it `reads`, the keys, and `at`, the event's time in microseconds
    since 1970; those that it yields have the keys, `columns`, and `at`, their own time. A TIMESTAMP
    among the columns is yielded in microseconds too.
    """

    name: str
    what: str
    options: type[ProcessorOptions]
    reads: Callable[[Any], Sequence[str]]
    columns: Callable[[Any, Mapping[str, str]], Mapping[str, str]]
    processor: str

    def made(self, options: Any, keys: Sequence[str], clock: str) -> Any:
        """Return the StatefulProcessor for these options, keys and clock."""
        module, _, name = self.processor.partition(":")
        return getattr(import_module(module), name)(options, tuple(keys), clock)


class SpellOptions(ProcessorOptions):
    """The words of `activity_spells`: `of` is the column of the activity, and a spell without an
    event for `timeout` is over."""

    of: Identifier
    timeout: Duration


def _spell_columns(options: SpellOptions, types: Mapping[str, str]) -> Mapping[str, str]:
    return {
        options.of: types[options.of],
        "start_at": "TIMESTAMP",
        "end_at": "TIMESTAMP",
        "events": "BIGINT",
        "ended_by": "STRING",
    }


SPELLS = ProcessorKind(
    "activity_spells",
    "how long somebody did one thing: from its first event until another, or a timeout",
    SpellOptions,
    lambda options: (options.of,),
    _spell_columns,
    "tidemill.pipeline.streams.operators.activity_spells:Spells",
)
SHIPPED: Mapping[str, ProcessorKind] = MappingProxyType({SPELLS.name: SPELLS})


def processors() -> Mapping[str, ProcessorKind]:
    """Return every kind by name; one that cannot be loaded is left out (see `broken`)."""
    return MappingProxyType({**SHIPPED, **_installed()[0]})


def broken() -> Mapping[str, DefinitionError]:
    """Return what is wrong with entry points that bring no kind, by their names."""
    return _installed()[1]


@cache
def _installed() -> tuple[Mapping[str, ProcessorKind], Mapping[str, DefinitionError]]:
    return installed(GROUP, ProcessorKind, SHIPPED)
