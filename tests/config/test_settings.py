"""Times as text: one parser, always UTC, and what each caller says of a text that is no time."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from tidemill.api.moments import moment
from tidemill.config.settings import ZonelessTimeError, instant, parse_time
from tidemill.errors import UsageError

FIVE_PAST = datetime(2026, 11, 21, 10, 5, tzinfo=timezone.utc)
OUT_OF_RANGE = "0001-01-01T00:00:00+05:00"


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21T10:05:00Z",
        " 2026-11-21 10:05:00Z\n",
        "2026-11-21T10:05:00+00:00",
        "2026-11-21T15:35:00+05:30",
    ],
)
def test_a_time_with_a_zone_is_read_in_utc(text: str) -> None:
    for time in (parse_time(text), parse_time(text, zone=timezone(timedelta(hours=1)))):
        assert (time, time.tzinfo) == (FIVE_PAST, timezone.utc)


def test_a_time_without_a_zone_is_in_the_one_given() -> None:
    assert parse_time("2026-11-21T10:05", zone=timezone.utc) == FIVE_PAST
    assert instant("2026-11-21T10:05", where="--at") == FIVE_PAST
    with pytest.raises(ZonelessTimeError, match="2026-11-21T10:05:00 has no zone"):
        parse_time("2026-11-21T10:05")
    for time in ("2026-11-21T10:05", datetime(2026, 11, 21, 10, 5)):  # noqa: DTZ001
        with pytest.raises(UsageError, match=r"2026-11-21.10:05.* has no zone") as refused:
            moment(time, "at")
        assert refused.value.where == "at"


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01T00:00:00Z", OUT_OF_RANGE])
def test_a_text_that_is_no_time(text: str) -> None:
    with pytest.raises(ValueError):
        parse_time(text)
    for read in (lambda: instant(text, where="at"), lambda: moment(text, "at")):
        with pytest.raises(UsageError, match=r"^at: '.*' is no time"):
            read()


@pytest.mark.parametrize("time", [datetime.fromisoformat(OUT_OF_RANGE), 5, None])
def test_a_value_that_is_no_time(time: object) -> None:
    with pytest.raises(UsageError, match="is no time"):
        moment(time, "at")  # type: ignore[arg-type]
