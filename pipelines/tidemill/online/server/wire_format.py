"""Answers as bytes: JSON for everybody, msgpack for who reads it (`Accept: application/msgpack`).

time        2026-11-21T10:05:00Z, with the fraction of its second
decimal     its digits as text, since a number of JSON may lose some
binary      Base64; msgpack has bytes
NaN         null; msgpack has it
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import msgpack
import orjson

from tidemill.config.settings import exact

JSON, MSGPACK = "application/json", "application/msgpack"
_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME


def as_json(answer: Any) -> bytes:
    """Return an answer as JSON."""
    return orjson.dumps(answer, default=_text, option=_OPTIONS)


def as_msgpack(answer: Any) -> bytes:
    """Return an answer as msgpack: the same document, with bytes as they are."""
    packed: bytes = msgpack.packb(answer, default=_plain)
    return packed


def from_msgpack(body: bytes) -> Any:
    """Return the document in a msgpack body."""
    return msgpack.unpackb(body, strict_map_key=False)


def _text(value: Any) -> Any:
    return b64encode(value).decode() if isinstance(value, bytes | bytearray) else _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return exact(value) if value.tzinfo else value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a value of {type(value).__name__} has no form here")
