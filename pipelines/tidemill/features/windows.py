"""Lengths of time as people write them: `1h`, `12h`, `400d`, `30s`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from tidemill.errors import DefinitionError

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
BUCKET = timedelta(minutes=1)
LONGEST = timedelta(days=30)


def duration(text: str) -> timedelta:
    """Yield the length that `text` names: a whole number above 0 and one of s, m, h, d."""
    found = re.fullmatch(r"([0-9]{1,9})([smhd])", str(text).strip())
    if not found or int(found[1]) == 0:
        raise DefinitionError(
            f"{text!r} is no length of time",
            expected="a number and s, m, h or d, such as 60s or 12h",
        )
    try:
        return timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError as error:
        raise DefinitionError(f"{text!r} is too long", expected="at most 999999d") from error


@dataclass(frozen=True, order=True)
class Window:
    """A rolling window: at `as_of` T it is the half-open [T - length, T), exact at bucket grain.

    `text` is the length as declared; it ends the names of the window's columns (`view_count_1h`).
    """

    length: timedelta
    text: str

    @property
    def minutes(self) -> int:
        """The length in whole minutes."""
        return self.length // timedelta(minutes=1)

    @classmethod
    def parse(cls, text: str) -> Window:
        """Yield the window that `text` names: whole buckets, at most 30 days."""
        length = duration(text)
        if length % BUCKET:
            raise DefinitionError(f"window {text!r} is not a multiple of the bucket of 1m")
        if length > LONGEST:
            raise DefinitionError(f"window {text!r} is too long", expected="at most 30d")
        return cls(length, str(text).strip())
