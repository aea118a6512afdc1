"""Lengths of time as people write them: `1h`, `12h`, `400d`, `30s`."""

from __future__ import annotations

import re
from datetime import timedelta

from tidemill.errors import DefinitionError

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
HOUR = timedelta(hours=1)
FARTHEST = timedelta(days=99_999)


def duration(text: str) -> timedelta:
    """Return the length that `text` names: a whole number above 0 and one of s, m, h, d."""
    match = re.fullmatch(r"([0-9]{1,9})([smhd])", str(text).strip())
    if not match or int(match[1]) == 0:
        raise DefinitionError(
            f"{text!r} is no length of time",
            expected="a number and s, m, h or d, such as 60s or 12h",
        )
    length = timedelta(seconds=_SECONDS[match[2]] * int(match[1]))
    if length > FARTHEST:
        raise DefinitionError(f"{text!r} is too long", expected="at most 99999d")
    return length
