"""Aggregates: how events become a bucket's partial, partials one partial, and a partial a value.

Each is SQL in four templates. `{input}` is the event's column, `{where}` the condition that an
event must meet, `{partial}` the bucket column, `{filter}` the window's FILTER clause, `{merged}`
the merged partial. Nothing outside this module knows an aggregate by its name.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

Fold = Callable[[Any, Any], Any]


def _smaller(one: Any, other: Any) -> Any:
    return one if _rank(one) <= _rank(other) else other


def _larger(one: Any, other: Any) -> Any:
    return one if _rank(one) >= _rank(other) else other


def _rank(value: Any) -> tuple[bool, Any]:
    """Yield what orders a value as Spark does: NaN is equal to itself and above all numbers."""
    return (True, 0) if value != value else (False, value)


@dataclass(frozen=True)
class Aggregate:
    """One mergeable aggregate.

    `type` None is that of the input column, which the aggregate then takes. `empty` is the value
    over a window without events. An `invertible` one merges by a sum, so that what left a window is
    subtracted, exactly; keys of any other are computed again when a row enters or leaves.
    `fold` is `merge` outside of SQL, of two partials that are not null, where it can be said in
    Python and `result` is the merged partial itself; `neutral` is the partial of no event.
    """

    name: str
    type: str | None
    bucket: str
    merge: str
    result: str
    empty: str
    invertible: bool
    fold: Fold | None = None
    neutral: Any = None


COUNT = Aggregate(
    name="count",
    type="BIGINT",
    bucket="count_if({where})",
    merge="sum({partial}){filter}",
    result="{merged}",
    empty="0",
    invertible=True,
    fold=operator.add,
    neutral=0,
)


def _extreme(name: str, fold: Fold) -> Aggregate:
    return Aggregate(
        name=name,
        type=None,
        bucket=f"{name}({{input}}) FILTER (WHERE {{where}})",
        merge=f"{name}({{partial}}){{filter}}",
        result="{merged}",
        empty="NULL",
        invertible=False,
        fold=fold,
    )


MIN, MAX = _extreme("min", _smaller), _extreme("max", _larger)

AGGREGATES: Mapping[str, Aggregate] = MappingProxyType({a.name: a for a in (COUNT, MIN, MAX)})
