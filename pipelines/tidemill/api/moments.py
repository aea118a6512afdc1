"""Times as they are passed to the API: with a zone, always."""

from __future__ import annotations

from datetime import datetime

from tidemill.config.settings import ZonelessTimeError, in_utc, parse_time
from tidemill.errors import UsageError

_EXPECTED = "a time with a zone, such as 2026-11-21T10:05:00Z"


def moment(time: datetime | str, where: str) -> datetime:
    """Return the instant in UTC; UsageError for a time without a zone, which names none."""
    try:
        return parse_time(time) if isinstance(time, str) else in_utc(time)
    except ZonelessTimeError as error:
        raise UsageError(f"{time} has no zone", where=where, expected=_EXPECTED) from error
    except (ValueError, OverflowError, AttributeError) as error:
        raise UsageError(f"{time!r} is no time", where=where, expected=_EXPECTED) from error
