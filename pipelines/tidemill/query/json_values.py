"""Values as JSON and text have them: one form for answers, facts, errors, CSV and stored results.

time        2026-11-21T10:05:00Z, with the fraction of its second; without a Z if it has no zone
date        2026-11-21
decimal     its digits, never as 0E-9; as text, since a number of JSON may lose some
binary      Base64, as Spark's to_json has it
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from tidemill.config.settings import exact
from tidemill.lake.visible_text import visible_json


def json_of(value: Any, indent: int | None = None) -> str:
    """Return the value as JSON, of one line without `indent`, that a terminal can be shown too."""
    text = json.dumps(value, default=text_of, ensure_ascii=False, indent=indent)
    return visible_json(text)


def plain(value: Any) -> Any:
    """Return a value of a row as JSON has it, a struct as the list of its values; a decimal stays
    one until it is printed."""
    if isinstance(value, Mapping):
        return {text_of(plain(name)): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value if isinstance(value, str | int | float | Decimal | None) else text_of(value)


def text_of(value: Any) -> str:
    """Return a single value as text."""
    if isinstance(value, datetime):
        return value.isoformat() if value.utcoffset() is None else exact(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode("ascii")
    return str(value)
