"""Time zones: DuckDB answers of those alone of which it has Spark's rules."""

from __future__ import annotations

import zoneinfo
from datetime import datetime, timedelta, timezone

import duckdb
import pyarrow as pa
import pytest

from tidemill.query.engines.expression_rules.rule import UntranslatableError
from tidemill.query.engines.expression_rules.time_zones import OTHER_RULES
from tidemill.query.engines.translation import translate

FIRST, YEARS = datetime(1990, 1, 1, tzinfo=timezone.utc), 47
TABLES = {"moments": {"moment": "timestamp", "zone": "string"}}


def differing() -> set[str]:
    """The zones of which DuckDB's clocks are not those of this machine's database, which Spark's
    were compared with (decision 0094)."""
    times = [FIRST + timedelta(hours=11 * n) for n in range(YEARS * 365 * 24 // 11)]
    asked = duckdb.connect()
    asked.sql("SET timezone = 'UTC'")
    asked.register("times", pa.table({"moment": pa.array(times, pa.timestamp("us", "UTC"))}))
    found = set()
    for name in zoneinfo.available_timezones():
        if "/" in name:
            zone = zoneinfo.ZoneInfo(name)
            shown = asked.sql(f"SELECT timezone('{name}', moment) FROM times").fetchall()
            ours = (time.astimezone(zone).replace(tzinfo=None) for time in times)
            if any(one != other for (one,), other in zip(shown, ours, strict=True)):
                found.add(name)
    return found


def test_every_other_zone_shows_the_same_clocks() -> None:
    assert differing() <= set(OTHER_RULES)


def test_a_zone_with_other_rules_is_spark_s() -> None:
    text = "SELECT from_utc_timestamp(moment, '{}') AS shown FROM moments"
    with pytest.raises(UntranslatableError, match="the rules of America/Vancouver"):
        translate(text.format("America/Vancouver"), TABLES.get)
    assert "Europe/Berlin" in translate(text.format("Europe/Berlin"), TABLES.get).sql


@pytest.mark.parametrize(
    ("zone", "hour"), [("Europe/Berlin", 11), ("America/Vancouver", None), (None, None)]
)
def test_of_a_column_a_row_of_such_a_zone_is_an_error(zone: str | None, hour: int | None) -> None:
    """Of which each is a reason to ask Spark; null is null."""
    text = "SELECT from_utc_timestamp(moment, zone) AS shown FROM moments"
    asked = duckdb.connect()
    asked.sql("SET timezone = 'UTC'")
    moment = datetime(2026, 11, 21, 10, tzinfo=timezone.utc)
    columns = {
        "moment": pa.array([moment], pa.timestamp("us", "UTC")),
        "zone": pa.array([zone], pa.string()),
    }
    asked.register("moments", pa.table(columns))
    answer = asked.sql(translate(text, TABLES.get).sql)
    if zone == "America/Vancouver":
        with pytest.raises(duckdb.Error, match="other rules of a time zone: America/Vancouver"):
            answer.fetchall()
        return
    ((shown,),) = answer.fetchall()
    assert (shown and shown.hour) == hour
