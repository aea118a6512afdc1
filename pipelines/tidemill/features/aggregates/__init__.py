"""The aggregates by name: the shipped ones, and those that installed packages bring.

A package brings one by an entry point of the group `tidemill.aggregates` that is an `Aggregate`.
Nothing outside this package knows an aggregate by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from tidemill.features.aggregates import arithmetic, extremes, membership, ordered, sketches
from tidemill.features.aggregates.aggregate import Aggregate, Parameter, Part
from tidemill.features.aggregates.folds import Fold
from tidemill.features.aggregates.membership import contains
from tidemill.features.plugins import installed

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
    loaded, refused = installed(GROUP, Aggregate, {*SHIPPED, *WORDS})
    for error in refused.values():
        raise error
    return MappingProxyType({**SHIPPED, **loaded})
