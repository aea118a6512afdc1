"""Windows: the time that a feature looks back over, from each as_of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tidemill.errors import DefinitionError
from tidemill.features.windows.lengths import duration
from tidemill.features.windows.period import Lifetime, Period, parse

LONGEST = timedelta(days=30)


@dataclass(frozen=True)
class Window:
    """A window that ends at `as_of` T, or so much earlier (`ago`), exact at bucket grain.

    A rolling one is the half-open [T - offset - length, T - offset). One of a `period` begins with
    the period that holds T - offset: [its start, T - offset); at its very start it holds nothing.
    `length` is then the longest that it can be. A lifetime holds all of time up to its end.
    """

    length: timedelta
    name: str
    ago: str = ""
    period: Period | None = None

    @property
    def text(self) -> str:
        """What ends the names of the window's columns: the length as declared (`view_count_1h`) or
        the period (`view_count_day_to_date`), with an offset also how long ago
        (`view_count_1h_1d_ago`)."""
        return f"{self.name}_{self.ago}_ago" if self.ago else self.name

    @property
    def offset(self) -> timedelta:
        """How long before as_of the window ends."""
        return duration(self.ago) if self.ago else timedelta()

    @property
    def minutes(self) -> int:
        """The length in whole minutes."""
        return self.length // timedelta(minutes=1)

    @property
    def reach(self) -> timedelta:
        """How far before as_of the window starts, at most."""
        return self.length + self.offset

    @property
    def is_lifetime(self) -> bool:
        """Whether the window holds all of time up to its end."""
        return isinstance(self.period, Lifetime)

    @property
    def apart(self) -> timedelta:
        """How far before as_of buckets are needed one by one; what is older may be added up."""
        return self.offset if self.is_lifetime else self.reach

    def start(self, as_of: datetime) -> datetime:
        """Return the start of the window at a time."""
        end = as_of - self.offset
        return self.period.start(end) if self.period else end - self.length

    @classmethod
    def parse(cls, said: str | Mapping[str, Any]) -> Window:
        """Return the window that a text names, from a second to 30 days or `lifetime`, or a
        mapping: see `period`."""
        if isinstance(said, Mapping):
            period = parse(said)
            return cls(period.length, period.label, period=period)
        text = str(said).strip()
        if text == Lifetime.label:
            return cls(Lifetime.length, text, period=Lifetime())
        length = duration(text)
        if length > LONGEST:
            raise DefinitionError(f"window {said!r} is too long", expected="at most 30d")
        return cls(length, text)

    def earlier(self, ago: str) -> Window:
        """Return the same window, so much earlier."""
        duration(ago)
        return Window(self.length, self.name, ago.strip(), self.period)

    def words(self) -> str | dict[str, str]:
        """Return the window as a file says it, without how long ago."""
        return self.period.words() if self.period else self.name

    def fits(self, bucket: timedelta) -> bool:
        """Return whether the window begins and ends with a bucket at the end of each."""
        begins = self.period.fits(bucket) if self.period else not self.length % bucket
        return begins and not self.offset % bucket

    def bounds(self) -> str:
        """Return the window in words, as a half-open interval of time."""
        end = f"as_of - {self.ago}" if self.ago else "as_of"
        return self.period.bounds(end) if self.period else f"[{end} - {self.name}, {end})"
