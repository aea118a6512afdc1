"""The aggregates by name: the shipped ones, and those that installed packages bring.

A package brings one by an entry point of the group `tidemill.aggregates` that is an `Aggregate`.
Nothing outside this package knows an aggregate by its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

from tidemill.errors import DefinitionError
from tidemill.features.aggregates import arithmetic, extremes, membership, ordered, sketches
from tidemill.features.aggregates.aggregate import Aggregate, Parameter, Part
from tidemill.features.aggregates.folds import Fold
from tidemill.features.aggregates.membership import contains

GROUP = "tidemill.aggregates"
WORDS = ("ratio", "where", "over", "offset", "name", "empty")  # that stand where an aggregate does
SHIPPED: Mapping[str, Aggregate] = MappingProxyType(
    {
        aggregate.name: aggregate
        for module in (arithmetic, extremes, ordered, sketches, membership)
        for aggregate in module.ALL
    }
)

__all__ = ["GROUP", "SHIPPED", "Aggregate", "Fold", "Parameter", "Part", "aggregates", "contains"]


@cache
def aggregates() -> Mapping[str, Aggregate]:
    """Return every aggregate by name; DefinitionError when an installed one cannot be loaded, is
    none, or takes a name that is taken."""
    return MappingProxyType({**SHIPPED, **dict(_installed())})


def _installed() -> Iterator[tuple[str, Aggregate]]:
    taken = {*SHIPPED, *WORDS}
    for point in entry_points(group=GROUP):
        plugin = _loaded(point)
        if plugin.name in taken or not plugin.name.isidentifier():
            raise DefinitionError(
                f"is called {plugin.name!r}, which is taken or no name", where=_place(point)
            )
        taken.add(plugin.name)
        yield plugin.name, plugin


def _loaded(point: EntryPoint) -> Aggregate:
    try:
        plugin = point.load()
    except (ImportError, AttributeError) as error:
        raise DefinitionError(f"cannot be loaded: {error}", where=_place(point)) from error
    if not isinstance(plugin, Aggregate):
        raise DefinitionError(f"is no Aggregate but {plugin!r}", where=_place(point))
    return plugin


def _place(point: EntryPoint) -> str:
    package = point.dist.name if point.dist else "a package"
    return f"entry point {point.value} of {package}"
