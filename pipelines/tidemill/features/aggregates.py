"""Aggregates: how events become a bucket's partial, partials one partial, and a partial a value.

Each is SQL in four templates. `{input}` is the event's column, `{where}` the condition that an
event must meet, `{partial}` the bucket column, `{filter}` the window's FILTER clause, `{merged}`
the merged partial. Nothing outside this module knows an aggregate by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Aggregate:
    """One mergeable aggregate.

    `type` None is that of the input column, which the aggregate then takes. `empty` is the value
    over a window without events. An `invertible` one merges by a sum, so that what left a window is
    subtracted, exactly; keys of any other are computed again when a row enters or leaves.
    """

    name: str
    type: str | None
    bucket: str
    merge: str
    result: str
    empty: str
    invertible: bool


COUNT = Aggregate(
    name="count",
    type="BIGINT",
    bucket="count_if({where})",
    merge="sum({partial}){filter}",
    result="{merged}",
    empty="0",
    invertible=True,
)


def _extreme(name: str) -> Aggregate:
    return Aggregate(
        name=name,
        type=None,
        bucket=f"{name}({{input}}) FILTER (WHERE {{where}})",
        merge=f"{name}({{partial}}){{filter}}",
        result="{merged}",
        empty="NULL",
        invertible=False,
    )


MIN, MAX = _extreme("min"), _extreme("max")

AGGREGATES: Mapping[str, Aggregate] = MappingProxyType({a.name: a for a in (COUNT, MIN, MAX)})
