"""The kinds of sources by name: the shipped ones, and those that installed packages bring.

A package brings one by an entry point of the group `tidemill.sources` that is a `SourceKind`.
Nothing outside this package knows a kind by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

from tidemill.errors import DefinitionError
from tidemill.sources import delta_feed, files, generator
from tidemill.sources.source_kind import SourceKind, SourceWords

GROUP = "tidemill.sources"
SHIPPED: Mapping[str, SourceKind] = MappingProxyType(
    {kind.name: kind for kind in (files.KIND, delta_feed.KIND, generator.KIND)}
)
FOLDER = files.KIND.name  # whose folder `--input` names


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


@cache
def _installed() -> tuple[Mapping[str, SourceKind], Mapping[str, DefinitionError]]:
    loaded: dict[str, SourceKind] = {}
    refused: dict[str, DefinitionError] = {}
    for point in entry_points(group=GROUP):
        try:
            kind = _loaded(point, taken={*SHIPPED, *loaded})
        except DefinitionError as error:
            refused[point.name] = error
        else:
            loaded[kind.name] = kind
    return loaded, refused


def _loaded(point: EntryPoint, taken: set[str]) -> SourceKind:
    package = point.dist.name if point.dist else "a package"
    place = f"entry point {point.value} of {package}"
    try:
        kind = point.load()
    except Exception as error:  # whatever a module of somebody else's raises when it is imported
        raise DefinitionError(f"cannot be loaded: {error}", where=place) from error
    if not isinstance(kind, SourceKind):
        raise DefinitionError(f"is no SourceKind but {kind!r}", where=place)
    if kind.name in taken or not kind.name.isidentifier():
        raise DefinitionError(f"is called {kind.name!r}, which is taken or no name", where=place)
    return kind
