"""Days of streams made again from the events: what late events did to them, by cause."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import stream_lakes
from lakes import NOW, at
from stream_lakes import Event, StreamLake, drawn, expected, in_duckdb, join
from tidemill.errors import UsageError
from tidemill.lake.commits import failpoints
from tidemill.operations.recompute import day_by_day

YESTERDAY, TODAY = date(2026, 11, 20), date(2026, 11, 21)
COUNTS = {"length": "10m", "watermark": "10m", "keys": ["item"], "compute": {"events": "count"}}
STREAMS = [
    {"name": "bought", "join": join(kind="left")},
    {
        "name": "tens",
        "totals": {**COUNTS, "compute": {"events": "count", "paid": {"sum": "price"}}},
    },
    {
        "name": "hours",
        "totals": {
            **COUNTS,
            "emit": "closed",
            "then": {"length": "1h", "compute": {"average": {"mean": "events"}}},
        },
    },
    {
        "name": "pairs",
        "join": join(),
        "totals": {
            "keys": ["item"],
            "of": "buy",
            "length": "1h",
            "emit": "closed",
            "compute": {"pairs": "count"},
        },
    },
]
FIRST = drawn(1, at("20T20:00"), 6 * 60)  # over midnight, until 02:00
LATE = drawn(2, at("20T21:00"), 90)
SECOND = drawn(3, at("02:03"), 60)
THIRD = drawn(4, at("03:06"), 60)


def new(spark: SparkSession, root: Path, streams: Iterable[dict[str, Any]]) -> StreamLake:
    return StreamLake.new(spark, root, stream_lakes.declared(streams))


def recomputed(lake: StreamLake, *names: str, day: date | None = None) -> list[dict[str, Any]]:
    return day_by_day.recompute(lake.lake, names, day, NOW, {}, lambda facts: None)


def merged(lake: StreamLake, name: str, layer: str) -> list[dict[str, Any]]:
    rows = lake.lake.spark.table(f"{name}_merged").where(f"layer = '{layer}'")
    return [row.asDict() for row in rows.collect()]


def pairs(rows: Iterable[dict[str, Any]]) -> set[tuple[int | None, int | None]]:
    return {(row["ask_price"], row["buy_price"]) for row in rows}


def on(events: list[Event], found: set[tuple[int | None, int | None]], day: date) -> set[Any]:
    """Those pairs whose later event is on a day."""
    place = dict(enumerate(events, start=1))
    return {pair for pair in found if max(place[one][2] for one in pair if one).date() == day}


def totals(events: list[Event], day: date) -> dict[str, set[tuple[Any, ...]]]:
    """The windows that begin on a day, by DuckDB."""
    tens = "time_bucket(INTERVAL 10 MINUTE, events.at)"
    counted = f"SELECT item, {tens} AS start, count(*) AS events, sum(price)::BIGINT AS paid"
    texts = {
        "tens": f"{counted} FROM events GROUP BY ALL",
        "hours": "SELECT item, time_bucket(INTERVAL 1 HOUR, start) AS start, avg(events) "
        f"FROM ({counted} FROM events GROUP BY ALL) GROUP BY ALL",
        "pairs": "SELECT a.item, time_bucket(INTERVAL 1 HOUR, b.at) AS start, count(*) "
        "FROM events a JOIN events b ON a.item = b.item AND a.kind = 'ask' AND b.kind = 'buy' "
        "AND b.at BETWEEN a.at AND a.at + INTERVAL 1 HOUR GROUP BY ALL",
    }
    with in_duckdb(events) as connection:
        found = {name: connection.execute(text).fetchall() for name, text in texts.items()}
    return {
        name: {tuple(row) for row in rows if row[1].astimezone(NOW.tzinfo).date() == day}
        for name, rows in found.items()
    }


def of_totals(rows: Iterable[dict[str, Any]], *columns: str) -> set[tuple[Any, ...]]:
    return {tuple(row[name] for name in ("item", "window_start", *columns)) for row in rows}


def test_late_events_are_in_the_recomputed_day_and_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = new(spark, tmp_path, STREAMS)
    known = [*FIRST, *SECOND, *LATE]
    lake.feed(*FIRST)
    lake.run()
    lake.feed(*SECOND)
    lake.run()
    lake.feed(*LATE)
    lake.run()
    everything = expected(known, "LEFT", at("23:59"))
    live = pairs(lake.rows("bought"))
    done = {facts["name"]: facts for facts in recomputed(lake)}
    assert {facts["day"] for facts in done.values()} == {"2026-11-20"}

    batch = pairs(merged(lake, "bought", "batch"))
    assert batch == on(known, everything, YESTERDAY)
    assert pairs(merged(lake, "bought", "live")) == on(known, live, TODAY)
    off = len(batch ^ on(known, live, YESTERDAY))
    assert off > 20
    assert done["bought"]["causes"] == {"late": off}
    wanted = totals(known, YESTERDAY)
    columns = {"tens": ("events", "paid"), "hours": ("average",), "pairs": ("pairs",)}
    for name, values in columns.items():
        rows = merged(lake, name, "batch")
        assert len(rows) == done[name]["rows"] > 10
        found = of_totals(rows, *values)
        utc = {(i, s.astimezone(NOW.tzinfo).replace(tzinfo=None), *v) for i, s, *v in wanted[name]}
        assert found == utc, name
        assert set(done[name]["causes"]) == {"late"}
        before = of_totals(lake.rows(name), *values)
        assert done[name]["different"] == len(
            {row[:2] for row in found ^ {row for row in before if row[1].date() == YESTERDAY}}
        )
    assert recomputed(lake) == []


@pytest.mark.stream
def test_what_is_over_what_waits_and_what_nobody_explains(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = new(spark, tmp_path, STREAMS[:1])
    assert recomputed(lake) == []  # no event yet
    lake.feed(*FIRST)
    lake.run()
    for name, why in (("bougth", "did you mean 'bought'"), ("shop", "no view or stream 'shop'")):
        with pytest.raises(UsageError, match=why):
            recomputed(lake, name)
    with pytest.raises(
        UsageError, match="2026-11-21 is not over for bought: the newest event is of"
    ):
        recomputed(lake, "bought", day=TODAY)

    # the stream has not read the newest events, which close the day's last orders
    lake.feed(*SECOND)
    known = [*FIRST, *SECOND]
    all_of_it = on(known, expected(known, "LEFT", at("23:59")), YESTERDAY)
    (done,) = recomputed(lake, "bought")
    missing = all_of_it - pairs(lake.rows("bought"))
    assert done["causes"] == ({"waiting": len(missing)} if missing else {})
    assert done["why"] == "new"
    lake.run()

    # another has removed a row, and brought one twice under another name
    (first, *_) = sorted(lake.rows("bought"), key=lambda row: row["at"])
    spark.sql(f"DELETE FROM bought WHERE event_id = '{first['event_id']}'")
    (done,) = recomputed(lake, "bought", day=YESTERDAY)
    assert (done["why"], done["different"], done["causes"]) == ("asked", 1, {"unexplained": 1})
    assert pairs(merged(lake, "bought", "batch")) == all_of_it

    # what comes in time for the next day: nothing is due
    lake.feed(*THIRD)
    lake.run()
    assert recomputed(lake, "bought") == []
    known += THIRD

    # later events of the day: it is due again, and no other
    lake.feed(*LATE)
    lake.run()
    (done,) = recomputed(lake)[1:]
    known += LATE
    assert (done["name"], done["day"], done["why"]) == ("bought", "2026-11-20", "late events")
    assert set(done["causes"]) == {"late", "unexplained"}
    wanted = on(known, expected(known, "LEFT", at("23:59")), YESTERDAY)
    assert pairs(merged(lake, "bought", "batch")) == wanted
    assert [row["layer"] for row in merged(lake, "bought", "live") if row["at"].day == 20] == []


@pytest.mark.parametrize("point", failpoints.RECOMPUTE_POINTS)
def test_killed_at_any_point_a_day_is_whole_or_not_there(
    spark: SparkSession, tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = new(spark, tmp_path, STREAMS[:1])
    lake.feed(*FIRST, *SECOND)
    known = [*FIRST, *SECOND]
    lake.run()
    wanted = on(known, expected(known, "LEFT", at("23:59")), YESTERDAY)
    monkeypatch.setenv(failpoints.VARIABLE, point)
    failpoints._reached.clear()
    with pytest.raises(failpoints.Injected):
        recomputed(lake, "bought")
    monkeypatch.delenv(failpoints.VARIABLE)
    done = recomputed(lake, "bought")
    assert len(done) == (1 if point == "recompute.computed" else 0)
    assert pairs(merged(lake, "bought", "batch")) == wanted


def test_streams_that_cannot_be_recomputed_say_why(spark: SparkSession, tmp_path: Path) -> None:
    streams = [
        {"name": "once", "distinct": {"keys": ["item"], "watermark": "10m"}},
        {"name": "known_items", "span": {"keys": ["item"]}},
    ]
    lake = new(spark, tmp_path, streams)
    lake.feed(*SECOND)
    with pytest.raises(UsageError, match="which of equal events is the first depends on how they"):
        recomputed(lake, "once")
    with pytest.raises(UsageError, match="its rows follow late events by themselves"):
        recomputed(lake, "known_items")
