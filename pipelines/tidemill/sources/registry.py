"""The kinds of sources by name: the shipped ones, and those that installed packages bring.

A package brings one by an entry point of the group `tidemill.sources` that is a `SourceKind`.
Nothing outside this package knows a kind by its name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from types import MappingProxyType

from tidemill.errors import DefinitionError, UsageError
from tidemill.features.plugins import installed
from tidemill.sources import delta_feed, files, generator, kafka, kinesis
from tidemill.sources.source_kind import SourceKind, SourceOption, SourceWords

GROUP = "tidemill.sources"
_KINDS = (files.KIND, generator.KIND, kafka.KIND, kinesis.KIND, delta_feed.KIND)
SHIPPED: Mapping[str, SourceKind] = MappingProxyType({kind.name: kind for kind in _KINDS})


@cache
def kinds() -> Mapping[str, SourceKind]:
    """Return every kind by name; one that cannot be loaded is left out (see `broken`)."""
    return MappingProxyType({**SHIPPED, **_installed()[0]})


def broken() -> Mapping[str, DefinitionError]:
    """Return what is wrong with entry points that bring no kind, by their names."""
    return _installed()[1]


def kind_of(words: SourceWords) -> SourceKind:
    """Return the kind of a source whose words were read from a pipeline's file."""
    return kinds()[words.kind]


def options() -> Mapping[str, SourceOption]:
    """Return the words of all kinds that may be typed, by word; of a word that two kinds take, the
    first one's."""
    each = [option for kind in reversed([*kinds().values()]) for option in kind.options]
    return MappingProxyType({option.word: option for option in each})


def kind_taking(words: Collection[str], first: str) -> str:
    """Return the name of the kind whose options these words are: `first` where it takes them, else
    the only one that does; UsageError for words of no kind, or of several."""
    taking = [name for name, kind in kinds().items() if _takes(kind, words)]
    if first in taking:
        return first
    if len(taking) != 1:
        flags = ", ".join(options()[word].flag for word in words)
        found = f"are options of {' and '.join(taking) or 'no one kind'}"
        raise UsageError(found, where=flags, expected=f"--source {'|'.join(taking or kinds())}")
    return taking[0]


def check_taken(kind: str, words: Collection[str]) -> None:
    """Raise UsageError for a word that the kind does not take; one of an unknown kind is told when
    it is opened."""
    if kind not in kinds() or _takes(kinds()[kind], words):
        return
    taken = {option.word for option in kinds()[kind].options}
    flags = ", ".join(options()[word].flag for word in words if word not in taken)
    has = " ".join(option.flag for option in kinds()[kind].options)
    raise UsageError(f"is no option of a {kind} source", where=flags, expected=has or "no option")


def _takes(kind: SourceKind, words: Collection[str]) -> bool:
    return set(words) <= {option.word for option in kind.options}


@cache
def _installed() -> tuple[Mapping[str, SourceKind], Mapping[str, DefinitionError]]:
    return installed(GROUP, SourceKind, SHIPPED)
