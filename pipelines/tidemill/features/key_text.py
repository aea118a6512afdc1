"""A key's value as a person writes it, read by the type that the view's key has."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from tidemill.errors import UsageError
from tidemill.features.types import BIGINTS

MOST_DIGITS = 400  # before or behind the point: more than a double or a decimal has
_TRUTHS = ("true", "false")


def key_text(name: str, type_: str, text: str) -> str:
    """Return a value of the key `name` as a text that SQL casts to its type, the same for each way
    to write it; UsageError where it is no value of that type."""
    try:
        if type_ == "BIGINT":
            return str(_whole(text))
        if type_ == "BOOLEAN":
            return _TRUTHS[_TRUTHS.index(text.strip().lower())]
        if type_ == "STRING":
            return text
        number = Decimal(text)
        if not number.is_finite() or abs(number.adjusted()) > MOST_DIGITS:
            raise ValueError(text)
        return str(float(number)) if type_ == "DOUBLE" else format(number, "f")
    except (ValueError, InvalidOperation) as error:
        raise UsageError(f"{text!r} is no {type_}", where=f"key {name}") from error


def _whole(text: str) -> int:
    number = int(text)
    if number not in BIGINTS:
        raise ValueError(text)
    return number
