"""Lengths of time as people write them: `1h`, `12h`, `400d`, `30s`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from tidemill.errors import DefinitionError

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
HOUR = timedelta(hours=1)
LONGEST = timedelta(days=30)
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


@dataclass(frozen=True, order=True)
class Window:
    """A rolling window: at `as_of` T it is the half-open [T - offset - length, T - offset), exact
    at bucket grain.

    `text` ends the names of the window's columns: the length as declared (`view_count_1h`), with an
    offset also how long ago (`view_count_1h_1d_ago`).
    """

    length: timedelta
    text: str
    offset: timedelta = timedelta(0)

    @property
    def minutes(self) -> int:
        """The length in whole minutes."""
        return self.length // timedelta(minutes=1)

    @property
    def reach(self) -> timedelta:
        """How far before as_of the window starts."""
        return self.length + self.offset

    @classmethod
    def parse(cls, text: str) -> Window:
        """Return the window that `text` names: from a second to 30 days."""
        length = duration(text)
        if length > LONGEST:
            raise DefinitionError(f"window {text!r} is too long", expected="at most 30d")
        return cls(length, str(text).strip())

    def ago(self, offset: str) -> Window:
        """Return the same window, so much earlier."""
        return Window(self.length, f"{self.text}_{offset.strip()}_ago", duration(offset))

    def bounds(self) -> str:
        """Return the window in words, as a half-open interval of time."""
        length = self.text.split("_")[0]
        ago = f" - {self.text.split('_')[1]}" if self.offset else ""
        return f"[as_of{ago} - {length}, as_of{ago})"
