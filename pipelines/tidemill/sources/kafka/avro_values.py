"""Avro's values without a name: numbers, texts, bytes and times, as they stand in Spark's JSON."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from io import BytesIO
from typing import Any

Reader = Callable[[BytesIO], Any]
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Number:
    """A number that is printed as this text: a decimal's zeros, the digits of a single float."""

    text: str


def decimal(value: bytes, scale: int) -> Number:
    """Return the number that these bytes are, big-endian, of so many digits after the point."""
    number = Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale)
    return Number(str(number))


def _time(microseconds: int) -> str:
    at = EPOCH + timedelta(microseconds=microseconds)
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}Z".rjust(27, "0")


TIMES: Mapping[str | None, Callable[[int], str]] = {
    "date": lambda days: (date(1970, 1, 1) + timedelta(days=days)).isoformat(),
    "timestamp-millis": lambda number: _time(number * 1000),
    "timestamp-micros": _time,
    "local-timestamp-millis": lambda number: _time(number * 1000),
    "local-timestamp-micros": _time,
}


def _raw(data: BytesIO, size: int) -> bytes:
    read = data.read(size) if size >= 0 else b""
    if len(read) != size:
        raise EOFError
    return read


def base64_bytes(data: BytesIO, size: int) -> str:
    """Return the next bytes in base64; EOFError where there are fewer."""
    return base64.b64encode(_raw(data, size)).decode()


def whole_number(data: BytesIO) -> int:
    """Return an int or long: a zigzag varint; ValueError beyond 64 bits."""
    number = shift = 0
    while True:
        byte = _raw(data, 1)[0]
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return (number >> 1) ^ -(number & 1)
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def index(data: BytesIO, most: int) -> int:
    """Return the place in a list of so many; IndexError beyond it."""
    at = whole_number(data)
    if not 0 <= at < most:
        raise IndexError(at)
    return at


def text(data: BytesIO) -> str:
    """Return a string; bytes that are no UTF-8 become U+FFFD, as in Java."""
    return _raw(data, whole_number(data)).decode("utf-8", "replace")


def _float(data: BytesIO) -> Any:
    packed = _raw(data, 4)
    (value,) = struct.unpack("<f", packed)
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    text = next((t for t in texts if struct.pack("<f", float(t)) == packed), None)
    return _not_a_number(value) or Number(text or repr(value))


def _double(data: BytesIO) -> Any:
    (value,) = struct.unpack("<d", _raw(data, 8))
    return _not_a_number(value) or value


def _not_a_number(value: float) -> str | None:
    """Return the text that Spark writes of what JSON has no number for."""
    if value != value:
        return "NaN"
    return {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(value)


PLAIN: Mapping[str, Reader] = {
    "null": lambda data: None,
    "boolean": lambda data: _raw(data, 1) == b"\1",
    "int": whole_number,
    "long": whole_number,
    "float": _float,
    "double": _double,
    "bytes": lambda data: base64_bytes(data, whole_number(data)),
    "string": text,
}
