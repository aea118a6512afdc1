"""Periods of the clock and of the calendar, and when the one that holds a time began.

    {tumbling: 15m}                        :00 :15 :30 :45 of every hour
    {calendar: day, zone: Europe/Berlin}   midnight on clocks in Berlin: a day of 23, 24 or 25 hours
    lifetime                               one period, which began before any event

A period begins at one moment in UTC, which Python (`start`) and SQL (`sql`) tell alike. Where
clocks go back over midnight, and show it twice, the day begins at the first; where they skip it, at
the moment that they go on.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cache
from typing import Any, Literal, get_args

from tidemill.errors import DefinitionError
from tidemill.features.suggestions import did_you_mean
from tidemill.features.windows.lengths import FARTHEST, duration

Unit = Literal["day", "week", "month", "quarter", "year"]

# Of all that a lake can hold: Parquet's readers agree on no time before it. The bucket that begins
# here is a key's base, which maintenance folds old buckets into.
BEGINNING = datetime(1900, 1, 1, tzinfo=timezone.utc)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
BEGINNING_SECONDS = (BEGINNING - _EPOCH) // timedelta(seconds=1)
_CLOCK_CHANGE = timedelta(hours=3)  # by less than so much a period is longer than its days
_DAYS = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}
_FINEST = timedelta(minutes=15)  # what every zone of today is a multiple of
_YEARS = range(2000, 2038)  # of which a bucket's fit is tried


@dataclass(frozen=True)
class Tumbling:
    """Periods of one length, one after another since 1970-01-01T00:00Z."""

    text: str

    @property
    def length(self) -> timedelta:
        """How long a period is."""
        return duration(self.text)

    @property
    def label(self) -> str:
        """What ends the names of columns over such a period."""
        return f"tumbling_{self.text}"

    def start(self, at: datetime) -> datetime:
        """Return when the period began that holds a time."""
        return at - (at - _EPOCH) % self.length

    def sql(self, at: str) -> str:
        """Return `start` as SQL, of a TIMESTAMP."""
        seconds = self.length // timedelta(seconds=1)
        return f"timestamp_seconds(floor(unix_seconds({at}) / {seconds}) * {seconds})"

    def bounds(self, end: str) -> str:
        """Return the window in words that begins with the period and ends at `end`."""
        return f"[start of the {self.text} that hold {end}, {end})"

    def words(self) -> dict[str, str]:
        """Return the period as a file says it."""
        return {"tumbling": self.text}

    def fits(self, bucket: timedelta) -> bool:
        """Return whether each period begins with a bucket."""
        return not self.length % bucket


@dataclass(frozen=True)
class Calendar:
    """Days, weeks from Monday, months, quarters or years, as the clocks of a zone show them."""

    unit: Unit
    zone: str = "UTC"

    @property
    def length(self) -> timedelta:
        """How long a period is at most."""
        changes = timedelta() if self.zone == "UTC" else _CLOCK_CHANGE
        return timedelta(days=_DAYS[self.unit]) + changes

    @property
    def label(self) -> str:
        """What ends the names of columns over such a period."""
        return f"{self.unit}_to_date"

    def start(self, at: datetime) -> datetime:
        """Return when the period began that holds a time."""
        zone = zoneinfo.ZoneInfo(self.zone)
        day = at.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
        if self.unit == "week":
            day -= timedelta(days=day.weekday())
        elif self.unit == "quarter":
            day = day.replace(month=day.month - (day.month - 1) % 3, day=1)
        elif self.unit != "day":
            day = day.replace(month=1 if self.unit == "year" else day.month, day=1)
        return day.replace(fold=0).astimezone(timezone.utc)

    def sql(self, at: str) -> str:
        """Return `start` as SQL, of a TIMESTAMP in a session of UTC."""
        unit = self.unit.upper()
        if self.zone == "UTC":
            return f"date_trunc('{unit}', {at})"
        shown = f"date_trunc('{unit}', from_utc_timestamp({at}, '{self.zone}'))"
        return f"to_utc_timestamp({shown}, '{self.zone}')"

    def bounds(self, end: str) -> str:
        """Return the window in words that begins with the period and ends at `end`."""
        return f"[start of the {self.unit} of {end} in {self.zone}, {end})"

    def words(self) -> dict[str, str]:
        """Return the period as a file says it."""
        zone = {} if self.zone == "UTC" else {"zone": self.zone}
        return {"calendar": self.unit, **zone}

    def fits(self, bucket: timedelta) -> bool:
        """Return whether each period begins with a bucket, tried for today's rules of the zone."""
        if not _FINEST % bucket:
            return True
        return not any((midnight - _EPOCH) % bucket for midnight in _midnights(self.zone))


@dataclass(frozen=True)
class Lifetime:
    """All of time since BEGINNING."""

    length = FARTHEST
    label = "lifetime"

    def start(self, at: datetime) -> datetime:
        """Return BEGINNING."""
        return BEGINNING

    def sql(self, at: str) -> str:
        """Return `start` as SQL."""
        return f"timestamp_seconds({BEGINNING_SECONDS})"

    def bounds(self, end: str) -> str:
        """Return the window in words that ends at `end`."""
        return f"before {end}"

    def words(self) -> str:
        """Return the period as a file says it."""
        return self.label

    def fits(self, bucket: timedelta) -> bool:
        """Return whether it begins with a bucket: any hour does."""
        return True


Period = Tumbling | Calendar | Lifetime

SCHEMAS: tuple[dict[str, Any], ...] = (
    {"const": "lifetime", "description": "all of time"},
    {
        "type": "object",
        "description": "since the clock last showed a multiple of a length",
        "properties": {"tumbling": {"type": "string", "pattern": "^[0-9]{1,9}[smhd]$"}},
        "required": ["tumbling"],
        "additionalProperties": False,
    },
    {
        "type": "object",
        "description": "since the day, week, month, quarter or year began in a time zone",
        "properties": {
            "calendar": {"enum": list(get_args(Unit))},
            "zone": {"type": "string", "default": "UTC", "examples": ["Europe/Berlin"]},
        },
        "required": ["calendar"],
        "additionalProperties": False,
    },
)


def parse(words: Mapping[str, Any]) -> Period:
    """Return the period that a mapping names; DefinitionError where it names none."""
    if set(words) == {"tumbling"}:
        text = str(words["tumbling"]).strip()
        duration(text)
        return Tumbling(text)
    if "calendar" not in words or set(words) - {"calendar", "zone"}:
        raise DefinitionError(
            f"{dict(words)!r} is no window",
            expected="{tumbling: 1h}, or {calendar: day, zone: Europe/Berlin}",
        )
    unit, zone = words["calendar"], words.get("zone", "UTC")
    if unit not in get_args(Unit):
        hint = did_you_mean(str(unit), get_args(Unit))
        expected = ", ".join(get_args(Unit))
        raise DefinitionError(f"{unit!r} is no period of the calendar{hint}", expected=expected)
    if zone not in _zones():
        hint = did_you_mean(str(zone), sorted(_zones()))
        near = hint if "?" in hint else ""  # and not the names of all
        raise DefinitionError(
            f"unknown time zone {zone!r}{near}", expected="UTC, or a name such as Europe/Berlin"
        )
    return Calendar(unit, str(zone))


@cache
def _zones() -> frozenset[str]:
    """Return the zones by region, which Java knows too; a bare name such as EST is none there."""
    return frozenset({"UTC", *(name for name in zoneinfo.available_timezones() if "/" in name)})


def _midnights(zone: str) -> Iterator[datetime]:
    here = zoneinfo.ZoneInfo(zone)
    day = datetime(_YEARS.start, 1, 1, tzinfo=here)
    while day.year < _YEARS.stop:
        yield day.astimezone(timezone.utc)
        day += timedelta(days=1)
