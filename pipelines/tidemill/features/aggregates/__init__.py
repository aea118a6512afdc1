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
from tidemill.features.aggregates import adding, extremes, filters, ordered, sketches
from tidemill.features.aggregates.aggregate import Aggregate, Fold, Parameter, Part
from tidemill.features.aggregates.filters import contains

GROUP = "tidemill.aggregates"
SHIPPED: Mapping[str, Aggregate] = MappingProxyType(
    {
        aggregate.name: aggregate
        for module in (adding, extremes, ordered, sketches, filters)
        for aggregate in module.ALL
    }
)

__all__ = ["GROUP", "SHIPPED", "Aggregate", "Fold", "Parameter", "Part", "aggregates", "contains"]


@cache
def aggregates() -> Mapping[str, Aggregate]:
    """Yield every aggregate by name; DefinitionError when an installed one is none, or takes a
    shipped one's name."""
    return MappingProxyType({**SHIPPED, **dict(_installed())})


def _installed() -> Iterator[tuple[str, Aggregate]]:
    for point in entry_points(group=GROUP):
        found = point.load()
        if not isinstance(found, Aggregate):
            raise DefinitionError(f"is no Aggregate but {found!r}", where=_place(point))
        if found.name in SHIPPED:
            raise DefinitionError(f"takes the shipped name {found.name!r}", where=_place(point))
        yield found.name, found


def _place(point: EntryPoint) -> str:
    package = point.dist.name if point.dist else "a package"
    return f"entry point {point.value} of {package}"
