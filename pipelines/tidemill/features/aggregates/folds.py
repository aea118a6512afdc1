"""Merging outside of SQL: of two partials one, of merged parts a value, as the SQL beside it says.

A part that is null is of no event, but for a sum, where it is one that its type cannot hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any

Fold = Callable[[Any, Any], Any]
Finish = Callable[[Sequence[Any], Mapping[str, Any]], Any]  # of merged parts, and the parameters
_EXACT = Context(prec=100)
_MOST = 10**38  # of a DECIMAL(38, 0)


def add(one: Any, other: Any) -> Any:
    """Return the exact sum of two numbers."""
    return _EXACT.add(one, other) if Decimal in (type(one), type(other)) else one + other


def smaller(one: Any, other: Any) -> Any:
    """Return the smaller of two values."""
    return one if rank(one) <= rank(other) else other


def larger(one: Any, other: Any) -> Any:
    """Return the larger of two values."""
    return one if rank(one) >= rank(other) else other


def united(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    """Return the different values of two lists."""
    return list(dict.fromkeys([*one, *other]))


def rank(value: Any) -> Any:
    """Return what orders a value as Spark does: a struct by its fields, NaN, which is equal to
    itself, above all numbers."""
    if isinstance(value, Mapping):
        return tuple(map(rank, value.values()))
    return (True, 0) if value != value else (False, value)


def only(parts: Sequence[Any], _: Mapping[str, Any]) -> Any:
    """Return the one part there is."""
    return parts[0]


def summed(parts: Sequence[Any], _: Mapping[str, Any]) -> Any:
    """Return a sum; OverflowError where its type cannot hold it."""
    return _held(parts[0])


def mean(parts: Sequence[Any], _: Mapping[str, Any]) -> float | None:
    """Return the sum by the number of those added up; None of none."""
    total, count = _held(parts[0]), parts[1]
    return float(total) / count if count else None


def variance(parts: Sequence[Any], places: Mapping[str, Any]) -> float | None:
    """Return the sample variance of a sum, a number and a sum of squares; None below two."""
    total, count, squares = parts
    if count < 2:
        return None
    unit = int(places["unit"])
    units = _whole(int(_EXACT.multiply(Decimal(_held(total)), unit)))
    products = _whole(int(_held(squares)) * count), _whole(units * units)
    spread = float(_whole(products[0] - products[1]))
    of: float = spread / (float(count) * (count - 1)) / (float(unit) * float(unit))
    return of


def deviation(parts: Sequence[Any], places: Mapping[str, Any]) -> float | None:
    """Return the root of the sample variance."""
    of = variance(parts, places)
    return None if of is None else math.sqrt(of)


def value_there(parts: Sequence[Any], _: Mapping[str, Any]) -> Any:
    """Return the value in a struct of what it is ordered by and the value."""
    return parts[0] and parts[0]["value"]


def size(parts: Sequence[Any], places: Mapping[str, Any]) -> int:
    """Return the number of values of a list; OverflowError beyond `limit`."""
    count = len(parts[0] or ())
    if count > places["limit"]:
        raise OverflowError
    return count


def _held(total: Any) -> Any:
    if total is None:
        raise OverflowError
    return total


def _whole(number: int) -> int:
    if abs(number) >= _MOST:
        raise OverflowError
    return number
