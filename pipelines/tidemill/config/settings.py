"""Where and how Tidemill runs: the lake, the clock, the wait for the lock."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

from tidemill.errors import UsageError

MINUTE = timedelta(minutes=1)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Place:
    """Where a lake is: a folder, or a schema of a catalog (with a folder for its checkpoints)."""

    root: Path | None = None
    catalog: str | None = None
    schema: str | None = None

    @classmethod
    def resolve(
        cls, root: Path | None = None, catalog: str | None = None, schema: str | None = None
    ) -> Place:
        """Return the place that options name, else the environment, else the folder `./lake`."""
        catalog = catalog or (None if root else os.environ.get("TIDEMILL_CATALOG"))
        schema = schema or (None if root else os.environ.get("TIDEMILL_SCHEMA"))
        if catalog or schema:
            if not (catalog and schema):
                raise UsageError("a catalog lake takes both", expected="--catalog and --schema")
            return cls(root, catalog, schema)
        return cls(Path(root or os.environ.get("TIDEMILL_ROOT") or "lake").absolute())

    @property
    def folder(self) -> Path | None:
        """The folder that holds the tables; None where a catalog does."""
        return None if self.catalog else self.root

    def __str__(self) -> str:
        """Return the place as messages name it."""
        return f"{self.catalog}.{self.schema}" if self.catalog else str(self.root)


@dataclass(frozen=True)
class Clock:
    """What time it is, for `ingested_at` and the wall clock; `at` stops it, so fixed data does not
    rot."""

    at: datetime | None = None

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return self.at or datetime.now(timezone.utc)

    def minute_end(self) -> datetime:
        """Return the end of the current minute: at 10:05:00 and at 10:05:59 it is 10:06:00."""
        return self.end_of(MINUTE)

    def end_of(self, bucket: timedelta) -> datetime:
        """Return the end of the current bucket, which is never now."""
        now = self.now()
        return now - (now - EPOCH) % bucket + bucket

    @classmethod
    def from_environment(cls) -> Clock:
        """Return the system's clock, or the one that `TIDEMILL_NOW` (ISO 8601) stops."""
        text = os.environ.get("TIDEMILL_NOW")
        return cls(instant(text, where="TIDEMILL_NOW")) if text else cls()


class ZonelessTimeError(ValueError):
    """A time without a zone, which names no instant."""


def parse_time(text: str, *, zone: timezone | None = None) -> datetime:
    """Return the instant that ISO 8601 `text` names, in UTC; one without a zone is in `zone`.

    ValueError for a text that is no time, or one out of range; ZonelessTimeError for one without a
    zone where `zone` is none either.
    """
    time = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))  # Python 3.10 takes no Z
    try:
        return in_utc(time.replace(tzinfo=time.tzinfo or zone))
    except OverflowError as error:
        raise ValueError(f"{text!r} is out of range") from error


def in_utc(time: datetime) -> datetime:
    """Return the same instant in UTC; ZonelessTimeError for a time without a zone."""
    if time.utcoffset() is None:
        raise ZonelessTimeError(f"{time.isoformat()} has no zone")
    return time.astimezone(timezone.utc)


def instant(text: str, *, where: str) -> datetime:
    """Return the point in time that ISO 8601 `text` names, in UTC; without a zone it is UTC."""
    try:
        return parse_time(text, zone=timezone.utc)
    except ValueError as error:
        expected = "a time such as 2026-11-21T10:05:00Z"
        raise UsageError(f"{text!r} is no time", where=where, expected=expected) from error


def whole_minute(text: str, *, where: str) -> datetime:
    """Return the minute boundary that `text` names; a date alone names none."""
    moment = instant(text, where=where)
    if ":" not in text:
        expected = "a time such as 2026-11-21T10:05:00Z"
        raise UsageError(f"{text!r} is no time of day", where=where, expected=expected)
    if moment.second or moment.microsecond:
        raise UsageError(
            f"{text!r} is not a whole minute", where=where, expected=f"{moment:%Y-%m-%dT%H:%M}:00Z"
        )
    return moment


def whole_day(text: str, *, where: str) -> date:
    """Return the day that `text` names; UsageError for anything else."""
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        expected = "a day such as 2026-11-21"
        raise UsageError(f"{text!r} is no day", where=where, expected=expected) from error


def iso(time: datetime) -> str:
    """Return a UTC time as `2026-11-21T10:05:00Z`; ValueError for one without a zone."""
    return f"{in_utc(time):%Y-%m-%dT%H:%M:%SZ}"


def exact(time: datetime) -> str:
    """Return a UTC time as `iso` does, with the fraction of its second where it has one."""
    moment = in_utc(time)
    return moment.isoformat().replace("+00:00", "Z") if moment.microsecond else iso(moment)


def micros_of(at: datetime) -> int:
    """Return a time as microseconds since 1970."""
    return (at - EPOCH) // MICROSECOND


def time_of_micros(micros: int) -> datetime:
    """Return the UTC time of a number of microseconds since 1970."""
    return EPOCH + micros * MICROSECOND
