"""Aggregates: how events become a bucket's partial, partials one partial, and a partial a value.

Each is SQL in four templates. `{where}` is the condition that an event must meet, `{partial}` the
bucket column, `{filter}` the window's FILTER clause, `{merged}` the merged partial. Nothing outside
this module knows an aggregate by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Aggregate:
    """One mergeable aggregate.

    `empty` is the value over a window without events. With `invertible`, a partial that left the
    window can be subtracted, exactly.
    """

    name: str
    type: str
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

AGGREGATES: Mapping[str, Aggregate] = MappingProxyType({a.name: a for a in (COUNT,)})
