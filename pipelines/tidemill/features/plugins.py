"""What installed packages bring by entry points: each by its name, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol, TypeVar

from tidemill.errors import DefinitionError


class Named(Protocol):
    """A kind of something, that has a name."""

    @property
    def name(self) -> str:
        """What a file calls it."""


Kind = TypeVar("Kind", bound=Named)


def installed(
    group: str, of: type[Kind], shipped: Collection[str]
) -> tuple[Mapping[str, Kind], Mapping[str, DefinitionError]]:
    """Return what the entry points of a group bring that are `of` a type, by their names, and, by
    the entry points' names, what is wrong with those that bring none or take a name that is taken,
    as the `shipped` ones are."""
    loaded: dict[str, Kind] = {}
    refused: dict[str, DefinitionError] = {}
    for point in entry_points(group=group):
        try:
            kind = _loaded(point, of, taken={*shipped, *loaded})
        except DefinitionError as error:
            refused[point.name] = error
        else:
            loaded[kind.name] = kind
    return loaded, refused


def _loaded(point: EntryPoint, of: type[Kind], taken: Collection[str]) -> Kind:
    package = point.dist.name if point.dist else "a package"
    place = f"entry point {point.value} of {package}"
    try:
        kind: Any = point.load()
    except Exception as error:  # whatever a module of somebody else's raises when it is imported
        raise DefinitionError(f"cannot be loaded: {error}", where=place) from error
    if not isinstance(kind, of):
        raise DefinitionError(f"is no {of.__name__} but {kind!r}", where=place)
    if kind.name in taken or not kind.name.isidentifier():
        message = f"is called {kind.name!r}, which is taken or no name"
        raise DefinitionError(message, where=place)
    return kind
