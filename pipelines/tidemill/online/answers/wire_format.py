"""Answers as bytes: JSON for everybody, msgpack for who reads it (`Accept: application/msgpack`).

         JSON                                       msgpack
time     2026-11-21T10:05:00Z, with its fraction    an extension of `packing`
decimal  its digits as text: numbers may lose some  an extension of `packing`
binary   Base64                                     bytes
NaN      null                                       NaN
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import orjson

from tidemill.config.settings import exact
from tidemill.online import packing

JSON, MSGPACK = "application/json", "application/msgpack"
_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME


def as_json(answer: Any) -> bytes:
    """Return an answer as JSON."""
    return orjson.dumps(answer, default=_text, option=_OPTIONS)


def as_msgpack(answer: Any) -> bytes:
    """Return an answer as msgpack: the same document, its values as the store has them."""
    return packing.pack(answer)


def from_msgpack(body: bytes) -> Any:
    """Return the document in a msgpack body."""
    return packing.unpack(body)


def _text(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    if isinstance(value, datetime):
        return exact(value) if value.tzinfo else value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a value of {type(value).__name__} has no form in JSON")
