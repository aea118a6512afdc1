"""Keys of a request as the store has them: their columns in the view's order, of the view's types.

Messages name a key's place and what its column takes, never its value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from tidemill.online.answers.feature_request import unprocessable
from tidemill.online.answers.limits import Limits
from tidemill.online.store import Key

Reader = Callable[[Any], Any]  # of one value; ValueError for one of another type


def read(
    given: Sequence[Any], columns: Mapping[str, str], limits: Limits, *, of_many: bool
) -> list[Key]:
    """Return the keys; with `of_many` views an object may have columns of other views too.

    RequestError (422) names the first key that is none.
    """
    readers = _readers(tuple(columns.values()), limits.text)
    names = tuple(columns)
    found = []
    for place, key in enumerate(given):
        values = _values(key, names, of_many)
        if values is None:
            raise _no_key(place, names)
        try:
            found.append(tuple([read(value) for read, value in zip(readers, values, strict=True)]))
        except ValueError as error:
            raise unprocessable("is no key of this view", f"keys[{place}]", str(error)) from None
    return found


@lru_cache(maxsize=256)
def _readers(types: tuple[str, ...], text: int) -> tuple[Reader, ...]:
    return tuple(reader(type_, text) for type_ in types)


def _values(key: Any, names: Sequence[str], of_many: bool) -> Sequence[Any] | None:
    """Return the values of a key by column; None where some are absent, or are too many."""
    if isinstance(key, dict):
        if (len(key) == len(names) or of_many) and all(name in key for name in names):
            return [key[name] for name in names]
    elif isinstance(key, list) and len(key) == len(names) and not of_many:
        return key
    return None


def _no_key(place: int, names: Sequence[str]) -> Exception:
    columns = ", ".join(f'"{name}": ...' for name in names)
    return unprocessable("is no key of this view", f"keys[{place}]", f"{{{columns}}}")


def reader(type_: str, text: int) -> Reader:
    """Return what reads a value of a column's type, texts of at most so many letters."""
    name = type_.lower().partition("(")[0]

    def a_text(value: Any) -> str:
        if type(value) is not str or len(value) > text or not _is_unicode(value):
            raise ValueError(f"a text of at most {text} letters")
        return value

    readers = {"string": a_text, "double": _number, "boolean": _boolean, "decimal": _decimal}
    return readers.get(name, _whole if name in _WHOLE else a_text)


_WHOLE = {"bigint", "int", "smallint", "tinyint"}


def _is_unicode(text: str) -> bool:
    """Return whether a text can be written: half of a surrogate pair cannot."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise ValueError("a whole number")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float):
        raise ValueError("a number")
    try:
        return float(value) + 0.0  # Spark keeps no zero below zero in a key
    except OverflowError:
        raise ValueError("a number") from None


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError("true or false")
    return value


def _decimal(value: Any) -> Decimal:
    expected = 'a decimal as text, such as "1.50"'
    if type(value) not in (str, int) or len(str(value)[:65]) > 64:
        raise ValueError(expected)
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise ValueError(expected) from None
    if not number.is_finite() or abs(number.adjusted()) > 64:  # of "1e999999999" all noughts
        raise ValueError(expected)
    return number.copy_abs() if number.is_zero() else number
