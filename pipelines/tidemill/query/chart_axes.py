"""Which column of an answer stands on which axis of a chart: chosen where it is not said.

    columns, rows ──what their values are──► kind, x, y, color

Needs nothing to draw with; `plotting` draws.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any, Literal

from tidemill.errors import UsageError
from tidemill.features.suggestions import did_you_mean
from tidemill.lake.visible_text import visible

KINDS = ("line", "area", "bar", "point", "heat")
Type = Literal["temporal", "quantitative", "nominal"]
Rows = Sequence[Sequence[Any]]
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?")


@dataclass(frozen=True)
class Axes:
    """What is drawn: the kind, what the columns hold, which of them stand where, and how they are
    called."""

    kind: str
    types: Mapping[str, Type]
    records: Sequence[Mapping[str, Any]]
    x: str
    ys: tuple[str, ...]
    color: str | None

    named: Mapping[str, str]

    @property
    def several(self) -> bool:
        """Whether several columns stand on y, each with a color."""
        return len(self.ys) > 1

    def points(self) -> list[dict[str, Any]]:
        """Return a point per record and y, by axis: Vega takes some column names for a path."""
        points = []
        for record in self.records:
            for y in self.ys:
                point = {"x": record[self.x], "y": record[y]}
                if self.several or self.color:
                    point["color"] = self.named[y] if self.several else record[self.color or ""]
                points.append(point)
        return points


def axes_of(
    columns: Sequence[str],
    rows: Rows,
    kind: str | None,
    x: str | None,
    ys: Sequence[str] | None,
    color: str | None,
    named: Mapping[str, str],
) -> Axes:
    """Return what is drawn of the rows, chosen where it is not said."""
    check_kind(kind)
    for name in (x, *(ys or ()), color):
        if name is not None and name not in columns:
            message = f"there is no column {name!r}{did_you_mean(name, columns)}"
            raise UsageError(message, where="plot", expected=", ".join(columns))
    if not rows:
        raise UsageError("there is no row to draw", where="plot", expected="one row or more")
    types = {name: _type([row[i] for row in rows]) for i, name in enumerate(columns)}
    records = [dict(zip(columns, map(_value, row), strict=True)) for row in rows]
    x = x or columns[0]
    if kind == "heat":
        return Axes(kind, types, records, x, *_heat_axes(types, x, ys, color), named)
    ys = _numbers(types, x, ys, color)
    if color is None and len(ys) == 1 and len({record[x] for record in records}) < len(records):
        color = next((n for n in columns if n != x and types[n] == "nominal"), None)
    kind = kind or ("bar" if types[x] == "nominal" else "line")
    return Axes(kind, types, records, x, tuple(ys), color, named)


def check_kind(kind: str | None) -> None:
    """Raise UsageError for a kind that is none of KINDS."""
    if kind is not None and kind not in KINDS:
        message = f"unknown kind {kind!r}{did_you_mean(kind, KINDS)}"
        raise UsageError(message, where="plot", expected=", ".join(KINDS))


def _numbers(
    types: Mapping[str, Type], x: str, ys: Sequence[str] | None, color: str | None
) -> Sequence[str]:
    """Return the numeric columns that stand on y."""
    others = [name for name in types if name not in {x, color}]
    numeric = [name for name in others if types[name] == "quantitative"]
    for name in ys or ():
        if types[name] != "quantitative":
            raise UsageError(
                f"column {name!r} holds no numbers", where="plot", expected=_said(numeric)
            )
    if not (ys or numeric):
        message = f"no numeric column beside {x!r}"
        raise UsageError(message, where="plot", expected="a column to draw on y")
    if ys and len(ys) > 1 and color:
        message = "several columns on y have colors already"
        raise UsageError(message, where="plot", expected=f"one of {_said(ys)}")
    return ys or (numeric[:1] if color else numeric)


def _heat_axes(
    types: Mapping[str, Type], x: str, ys: Sequence[str] | None, color: str | None
) -> tuple[tuple[str, ...], str]:
    """Return a heat map's y and color: the next column, and the number after it."""
    y = ys[0] if ys else next((name for name in types if name not in {x, color}), x)
    numeric = [n for n, type_ in types.items() if n not in {x, y} and type_ == "quantitative"]
    color = color or next(iter(numeric), None)
    if color is None or types[color] != "quantitative":
        expected = f"numbers to color by: {_said(numeric)}"
        raise UsageError("a heat map has no column of numbers", where="plot", expected=expected)
    return (y,), color


def _said(names: Sequence[str]) -> str:
    return ", ".join(names) or "a numeric column"


def _type(values: Sequence[Any]) -> Type:
    """Return what a column holds: times, numbers, or names."""
    known = [value for value in values if value is not None]
    if known and all(_is_time(value) for value in known):
        return "temporal"
    if known and all(_is_number(value) for value in known):
        return "quantitative"
    return "nominal"


def _is_time(value: Any) -> bool:
    return isinstance(value, date) or (isinstance(value, str) and bool(_TIME.fullmatch(value)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _value(value: Any) -> Any:
    """Return a value as a chart's JSON has it; a time without a zone is this machine's, as Spark
    collects it."""
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat()
    if isinstance(value, Decimal | float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, int | None):
        return value
    return visible(value)  # the renderer ends the process at a control character
