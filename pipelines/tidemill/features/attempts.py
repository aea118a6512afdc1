"""What a view computes of one event: the expressions that clean tries, by what they are called.

A record on which one fails is refused: `expression_failed:<view>.<name>`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidemill.features.expressions import row_expression
from tidemill.features.view import FeatureView


@dataclass(frozen=True)
class Attempt:
    """An expression of a view by the name of its column or feature; its inputs as `columns`."""

    name: str
    sql: str


def selected(view: FeatureView) -> Iterator[Attempt]:
    """Yield the columns that a view selects."""
    for name, one in view.select.items():
        yield Attempt(name, f"CAST({one.sql} AS {view.types[name]})")


def of_features(view: FeatureView) -> Iterator[Attempt]:
    """Yield the conditions and inputs of a view's features, over what it selects as
    `__<view>__<column>`."""
    names = {name: f"__{view.name}__{name}" for name in view.select}
    expressions: dict[str, str] = {}
    for partial in view.partials:
        for text in partial.tried:
            expressions.setdefault(row_expression.renamed(text, names), partial.feature)
    for sql, feature in expressions.items():
        yield Attempt(feature, sql)
