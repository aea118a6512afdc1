"""One row as bytes: a head of 12 bytes that a store compares, then msgpack.

    epoch (4 bytes) | gold version (8 bytes) | as_of in microseconds, value, value ...

All numbers of the head are big-endian, so heads compare as bytes do. What msgpack has no type for
travels as an extension: 1 a decimal as text, 2 a time in microseconds, 3 a date in days.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import msgpack

from tidemill.config.settings import micros_of, time_of_micros

HEAD = 12
_HEAD = struct.Struct(">IQ")
_DECIMAL, _TIME, _DATE = 1, 2, 3
_DAY_ONE = date(1970, 1, 1)
_ALL_DIGITS = Context(prec=100)
_KEYS = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def head(epoch: int, version: int) -> bytes:
    """Return the bytes by which two rows of a key are compared."""
    return _HEAD.pack(epoch, version)


def versions(packed: bytes) -> tuple[int, int]:
    """Return the epoch and gold version of a packed row."""
    epoch, version = _HEAD.unpack_from(packed)
    return int(epoch), int(version)


def pack_row(row_head: bytes, as_of: int, values: Sequence[Any] | None) -> bytes:
    """Return a row as bytes; of a deleted key, whose `values` are None, the head and the time."""
    return row_head + pack([as_of] if values is None else [as_of, *values])


def unpack_row(packed: bytes) -> tuple[int, list[Any] | None]:
    """Return the as_of in microseconds and the values; None for those of a deleted key."""
    as_of, *values = unpack(packed[HEAD:])
    return as_of, values or None


def pack(content: Any) -> bytes:
    """Return any value of Spark's types, lists and mappings of them, as bytes."""
    packed: bytes = msgpack.packb(content, default=_extension, strict_types=False)
    return packed


def unpack(packed: bytes) -> Any:
    """Return what `pack` was given; tuples come back as lists."""
    return msgpack.unpackb(packed, ext_hook=_extended, strict_map_key=False)


def key_text(key: Sequence[Any]) -> str:
    """Return a key as text: the same for equal keys, different for others."""
    # Each value by itself: of a text alone the encoder returns in an eighth of a list's time.
    return f"[{','.join([_KEYS.encode(_plain(value)) for value in key])}]"


def _plain(value: Any) -> Any:
    """Return a key's value as JSON has it; a time by its UTC microseconds, so in one way only."""
    if isinstance(value, str):
        return value
    if isinstance(value, datetime):
        return {"time": micros_of(value)}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, Decimal):
        return {"decimal": format(value.normalize(_ALL_DIGITS), "f")}
    return value


def _extension(value: Any) -> msgpack.ExtType:
    if isinstance(value, Decimal | int):  # a whole number of more than 64 bits
        return msgpack.ExtType(_DECIMAL, str(value).encode())
    if isinstance(value, datetime):
        return msgpack.ExtType(_TIME, micros_of(value).to_bytes(8, "big", signed=True))
    if isinstance(value, date):
        return msgpack.ExtType(_DATE, (value - _DAY_ONE).days.to_bytes(4, "big", signed=True))
    raise TypeError(f"a store has no {type(value).__name__}")


def _extended(code: int, content: bytes) -> Any:
    if code == _DECIMAL:
        return Decimal(content.decode())
    if code == _TIME:
        return time_of_micros(int.from_bytes(content, "big", signed=True))
    if code == _DATE:
        return _DAY_ONE + timedelta(days=int.from_bytes(content, "big", signed=True))
    return msgpack.ExtType(code, content)
