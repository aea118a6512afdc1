"""A declared value as SQL of a column's type."""

from __future__ import annotations

import math
from decimal import Decimal

from tidemill.features.feature import Scalar


def literal(value: Scalar | None, type_: str) -> str | None:
    """Return a value of a type as SQL; ValueError where the type cannot hold it, to the digit."""
    if value is None:
        return None
    if not _fits(value, type_):
        raise ValueError(f"'empty' takes a {type_} that can be written, found {value!r}")
    if isinstance(value, str):
        return "'" + value.replace("'", "\\'") + "'"
    return str(value).upper() if isinstance(value, bool) else f"CAST('{value!r}' AS {type_})"


def _fits(value: Scalar, type_: str) -> bool:
    if isinstance(value, bool) or type_ == "BOOLEAN":
        return isinstance(value, bool) and type_ == "BOOLEAN"
    if isinstance(value, str):
        return type_ == "STRING" and value.isprintable() and not {"\\", "$"} & {*value}
    if type_ == "DOUBLE":
        return abs(value) <= 2**53 if isinstance(value, int) else math.isfinite(value)
    if type_ == "BIGINT":
        return isinstance(value, int) and abs(value) < 2**63
    if not type_.startswith("DECIMAL") or not math.isfinite(value):
        return False
    digits, scale = map(int, type_.removeprefix("DECIMAL(").rstrip(")").split(","))
    exact = Decimal(repr(value))
    return abs(exact) < 10 ** (digits - scale) and round(exact, scale) == exact
