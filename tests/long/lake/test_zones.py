"""Clocks go back: the same events in a machine's zone where an hour comes twice.

Europe/Berlin, 2026-10-25            America/St_Johns, 2026-11-01
UTC     00:00   01:00   02:00        03:30   04:30   05:30
local   02:00   02:00   03:00        01:00   01:00   02:00

The zone is this process's: that of Spark's JVM is the one it was started in, which `make
test-zones` sets for a whole run of the core's tests.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import pytest
from pyspark.sql import SparkSession

from command_line import call
from lakes import Event, Lakes, TestLake, payload
from tidemill.errors import SetupError
from tidemill.lake.session.temporary_conf import temporary_conf
from tidemill.pipeline import batch_log
from tidemill.query.explain import asked, explain

pytestmark = pytest.mark.zones


@dataclass(frozen=True)
class Zone:
    """A zone, and an instant in the second of its two equal hours."""

    name: str
    second: datetime


ZONES = [
    Zone("Europe/Berlin", datetime(2026, 10, 25, 1, 30, tzinfo=timezone.utc)),
    Zone("America/St_Johns", datetime(2026, 11, 1, 5, 10, tzinfo=timezone.utc)),
]
SET = os.environ.get("TZ")
HOUR = timedelta(hours=1)


@pytest.fixture(params=[zone for zone in ZONES if SET in (None, zone.name)], ids=lambda z: z.name)
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Zone]:
    """The machine's zone, for one test."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param.name)
        time.tzset()
        yield request.param
    time.tzset()


def view_of(event_id: str, at: datetime, profile: str = "p") -> Event:
    return (event_id, profile, "g", "view", at)


def counted(lake: TestLake) -> dict[str, int]:
    return {key[0]: row["view_count_1d"] for key, row in lake.gold().items()}


def told(lake: TestLake) -> list[tuple[int, int]]:
    """Accepted and duplicates of each batch of clean, oldest first."""
    return [(one["accepted"], one["duplicates"]) for one in reversed(lake.ledgers("events"))]


@pytest.mark.connect
def test_an_event_that_comes_again_is_a_duplicate(lakes: Lakes, zone: Zone) -> None:
    lake = lakes.new()
    for event_id, at in (("a", zone.second), ("b", zone.second - HOUR)):
        for _ in range(3):
            lake.step([payload(view_of(event_id, at, event_id))])
    assert counted(lake) == {"a": 1, "b": 1}
    assert told(lake) == [(1, 0), (0, 1), (0, 1)] * 2
    assert lake.different() == 0


def test_an_event_that_an_earlier_version_took_twice_stops_nothing(lakes: Lakes) -> None:
    lake, at = lakes.new(), datetime(2026, 10, 25, 1, 30, tzinfo=timezone.utc)
    lake.step([payload(view_of("a", at))])
    lake.events().selectExpr(
        "* EXCEPT (record_id, batch)", "'r9' AS record_id", "-1L AS batch"
    ).write.format("delta").mode("append").saveAsTable("engagement_events")
    lake.step([payload(view_of("a", at)), payload(view_of("b", at))])
    assert told(lake) == [(1, 0), (1, 1)]


def test_explain_tells_the_times_and_the_writer(lakes: Lakes, zone: Zone) -> None:
    lake = lakes.new()
    for hours in (1, 0):
        at = zone.second - hours * HOUR
        lake.step([payload(view_of(f"a{hours}", at, f"p{hours}"))])
        batch_log.record(lake.lake)
        found = explain(lake.lake, asked(lake.view, (f"p{hours}", "g")))
        text = f"{at:%Y-%m-%dT%H:%M:00Z}"
        assert [bucket["bucket_start"] for bucket in found["buckets"]] == [text]
        assert [event["event_timestamp"] for event in found["events"]] == [text]
        assert found["updated_at"] == f"{at + timedelta(minutes=1):%Y-%m-%dT%H:%M:00Z}"
        assert found["written_by"]["as_of"] == found["updated_at"]


@pytest.mark.connect
def test_a_query_tells_instants_in_utc_and_times_without_a_zone_as_they_are(
    lakes: Lakes, zone: Zone
) -> None:
    lake = lakes.new()
    first, second = (f"{at:%Y-%m-%dT%H:%M:00Z}" for at in (zone.second - HOUR, zone.second))
    values = {
        f"TIMESTAMP '{first}'": first,
        f"TIMESTAMP '{second}'": second,
        f"array(TIMESTAMP '{first}', NULL, TIMESTAMP '{second}')": [first, None, second],
        f"named_struct('a', 1, 'at', TIMESTAMP '{second}')": [1, second],
        f"map(TIMESTAMP '{second}', array(TIMESTAMP '{first}'))": {second: [first]},
        "CAST(NULL AS STRUCT<at: TIMESTAMP>)": None,
        "TIMESTAMP_NTZ '2026-10-25 02:30:00'": "2026-10-25T02:30:00",
        "DATE '2026-10-25'": "2026-10-25",
    }
    words = ("--root", lake.lake.place.root, "--json")
    answer = call("query", f"SELECT {', '.join(f'{one} AS x' for one in values)}", *words)
    assert answer.json["rows"] == [list(values.values())]


def test_refreshes_and_checks_at_such_a_time(lakes: Lakes, zone: Zone) -> None:
    #   2 days before   00:30   01:30    refreshed to 01:31 by itself, then to 00:31 and back
    lake = lakes.new()
    times = (zone.second - timedelta(days=2), zone.second - HOUR, zone.second)
    lake.step([payload(view_of(f"{at}", at)) for at in times])
    for end, count in ((zone.second - HOUR, 1), (zone.second, 2)):
        as_of = f"{end + timedelta(minutes=1):%Y-%m-%dT%H:%M:00Z}"
        words = ("engagement", "--as-of", as_of, "--root", lake.lake.place.root, "--json")
        assert call("refresh", *words).json["as_of"] == as_of
        assert (counted(lake), lake.different()) == ({"p": count}, 0)


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("spark.sql.session.timeZone", "Europe/London", "its time zone is 'Europe/London'"),
        ("spark.sql.session.timeZone", "+01:00", "its time zone is '+01:00'"),
        ("spark.sql.ansi.enabled", "false", "ANSI mode is off"),
        ("spark.sql.timestampType", "TIMESTAMP_NTZ", "its TIMESTAMP has no zone"),
        ("spark.sql.session.timeZone", "Etc/UTC", None),
    ],
)
def test_a_session_that_is_set_otherwise(
    spark: SparkSession, lakes: Lakes, name: str, value: str, found: str | None
) -> None:
    root = lakes.new().lake.place.root
    with temporary_conf(spark, {name: value}):
        answer = call("query", "SELECT 1", "--root", root, "--json")
        if found is None:
            assert answer.json["rows"] == [[1]]
            return
        assert (answer.code, answer.error["message"]) == (2, found)
        assert str(answer.error["expected"]).startswith(f'spark.conf.set("{name}", ')
        with pytest.raises(SetupError, match="session: "):
            lakes.new()
