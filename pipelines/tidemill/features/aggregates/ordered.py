"""Aggregates by order: the first and the last events, the largest values, the times of activity."""

from __future__ import annotations

from tidemill.features.aggregates import folds
from tidemill.features.aggregates.aggregate import Aggregate, Parameter, Part

_EVENT = "struct(unix_micros({time}) AS moment, {of} AS value)"
_KNOWN = "FILTER (WHERE {where} AND {of} IS NOT NULL)"
K = Parameter(int, 1, 1000)


def _end(name: str, word: str, how: str, tie: str) -> Aggregate:
    part = Part(
        name,
        "STRUCT<moment: BIGINT, value: {of_type}>",
        f"{how}({_EVENT}) {_KNOWN}",
        f"{how}({{partial}}){{filter}}",
        fold=folds.smaller if how == "min" else folds.larger,
    )
    return Aggregate(
        name=name,
        summary=f"The {word} value of a column by event time; at the same time the {tie}.",
        parts=(part,),
        result=f"({{{name}}}).value",
        type="{of_type}",
        finish=folds.value_there,
    )


def _list(name: str, summary: str, item: str, of: str, value: str, up: bool) -> Aggregate:
    """Return an aggregate that keeps the first k of its items in an order."""
    order = "TRUE" if up else "FALSE"
    part = Part(
        name,
        f"ARRAY<{of}>",
        f"slice(sort_array(collect_list({item}) {_KNOWN}, {order}), 1, {{k}})",
        f"slice(sort_array(flatten(collect_list({{partial}}){{filter}}), {order}), 1, {{k}})",
    )
    return Aggregate(
        name=name,
        summary=summary,
        parts=(part,),
        result=value.format(part=f"{{{name}}}"),
        type="ARRAY<{of_type}>",
        empty="CAST(array() AS ARRAY<{of_type}>)",
        parameters={"k": K},
    )


def _activity(name: str, word: str, how: str) -> Aggregate:
    part = Part(
        name,
        "TIMESTAMP",
        f"{how}({{time}}) FILTER (WHERE {{where}})",
        f"{how}({{partial}}){{filter}}",
        fold=folds.smaller if how == "min" else folds.larger,
    )
    return Aggregate(
        name=name,
        summary=f"The time of the {word} event.",
        parts=(part,),
        result=f"{{{name}}}",
        type="TIMESTAMP",
        inputs={},
        nulls="takes no column",
    )


_EVENT_TYPE = "STRUCT<moment: BIGINT, value: {of_type}>"
FIRST = _end("first", "first", "min", "smallest")
LAST = _end("last", "last", "max", "largest")
FIRST_K = _list(
    "first_k",
    "The first `k` values by event time, the earliest first; at the same time the smaller first.",
    _EVENT,
    _EVENT_TYPE,
    "({part}).value",
    up=True,
)
LAST_K = _list(
    "last_k",
    "The last `k` values by event time, the newest first; at the same time the larger first.",
    _EVENT,
    _EVENT_TYPE,
    "({part}).value",
    up=False,
)
TOP_K = _list(
    "top_k",
    "The `k` largest values, the largest first, as often as they occur.",
    "{of}",
    "{of_type}",
    "{part}",
    up=False,
)
FIRST_SEEN = _activity("first_seen", "first", "min")
LAST_SEEN = _activity("last_seen", "last", "max")
ALL = (FIRST, LAST, FIRST_K, LAST_K, TOP_K, FIRST_SEEN, LAST_SEEN)
