"""Extremes, and the value of another column there; the truth of all or any."""

from __future__ import annotations

import operator
from typing import Literal

from tidemill.features.aggregates import folds
from tidemill.features.aggregates.aggregate import Aggregate, Part
from tidemill.features.aggregates.folds import Fold

Nested = Literal["grows", "shrinks"]


def _extreme(name: str, word: str, fold: Fold, nested: Nested) -> Aggregate:
    return Aggregate(
        name=name,
        summary=f"The {word} value of a column.",
        parts=(
            Part(
                name,
                "{of_type}",
                f"{name}({{of}}) FILTER (WHERE {{where}})",
                f"{name}({{partial}}){{filter}}",
                fold=fold,
            ),
        ),
        result=f"{{{name}}}",
        type="{of_type}",
        nulls="null inputs are left out; NaN is above every number",
        fold=fold,
        nested=nested,
    )


def _at_extreme(name: str, word: str, how: str, moment: str, tie: str) -> Aggregate:
    """Return an aggregate that orders by (the extreme, the event time, the value)."""
    ordered = f"struct({{at}} AS extreme, {moment} AS moment, {{of}} AS value)"
    known = "{where} AND {at} IS NOT NULL AND {of} IS NOT NULL"
    part = Part(
        name,
        "STRUCT<extreme: {at_type}, moment: BIGINT, value: {of_type}>",
        f"{how}({ordered}) FILTER (WHERE {known})",
        f"{how}({{partial}}){{filter}}",
        fold=folds.smaller if how == "min" else folds.larger,
    )
    return Aggregate(
        name=name,
        summary=f"The value of a column in the event where another, `at`, is {word}; of several "
        f"the earliest event's, at the same time the {tie} value.",
        parts=(part,),
        result=f"({{{name}}}).value",
        type="{of_type}",
        inputs={"of": "any", "at": "any"},
        nulls="events where either column is null are left out",
        finish=folds.value_there,
    )


def _truth(name: str, words: str, empty: str, fold: Fold, nested: Nested) -> Aggregate:
    return Aggregate(
        name=name,
        summary=f"Whether a condition holds in {words} event; {empty} over an empty window.",
        parts=(
            Part(
                name,
                "BOOLEAN",
                f"{name}({{of}}) FILTER (WHERE {{where}})",
                f"{name}({{partial}}){{filter}}",
                fold=fold,
            ),
        ),
        result=f"{{{name}}}",
        type="BOOLEAN",
        empty=empty.upper(),
        inputs={"of": "boolean"},
        fold=fold,
        nested=nested,
    )


MIN = _extreme("min", "smallest", folds.smaller, "shrinks")
MAX = _extreme("max", "largest", folds.larger, "grows")
ARGMIN = _at_extreme("argmin", "smallest", "min", "unix_micros({time})", "smallest")
ARGMAX = _at_extreme("argmax", "largest", "max", "-unix_micros({time})", "largest")
BOOL_AND = _truth("bool_and", "every", "true", operator.and_, "shrinks")
BOOL_OR = _truth("bool_or", "any", "false", operator.or_, "grows")
ALL = (MIN, MAX, ARGMIN, ARGMAX, BOOL_AND, BOOL_OR)
