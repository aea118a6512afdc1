"""Sessions made again from the events: in any order, late ones, merged ones, open and closed."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from deltalog import by_driver
from lakes import at
from stream_lakes import Event, StreamLake, declared
from tidemill.lake import times
from tidemill.pipeline.steps import stream_step
from tidemill.pipeline.streams import session_engines

WORDS: dict[str, Any] = {
    "keys": ["item"],
    "where": "kind != 'robot'",
    "gap": "30m",
    "gap_by": {"of": "kind", "gaps": {"brief": "10m"}},
    "watermark": "10m",
    "page": "kind",
}
VISITS = declared([{"name": "visits", "sessions": WORDS}])
HALF, TEN = timedelta(minutes=30), timedelta(minutes=10)


def oracle(events: list[Event]) -> dict[tuple[str, datetime], tuple[Any, ...]]:
    """The sessions by key and start: end, closes_at, closed, events, pages, first, last, path."""
    watermark = max(time for _, _, time in events) - TEN
    sessions: dict[tuple[str, datetime], list[tuple[datetime, int, str]]] = {}
    closes: dict[tuple[str, datetime], datetime] = {}
    open_: dict[str, tuple[str, datetime]] = {}
    numbered = [(time, number, item, kind) for number, (kind, item, time) in enumerate(events, 1)]
    for time, number, item, kind in sorted(numbered):
        if kind == "robot":
            continue
        key = open_.get(item)
        if key is None or time > closes[key]:
            key = open_[item] = (item, time)
            closes[key] = time
        sessions.setdefault(key, []).append((time, number, kind))
        closes[key] = max(closes[key], time + (TEN if kind == "brief" else HALF))
    return {
        key: (
            mine[-1][0],
            closes[key],
            closes[key] < watermark,
            len(mine),
            len({kind for *_, kind in mine}),
            mine[0][2],
            mine[-1][2],
            [kind for *_, kind in mine],
        )
        for key, mine in sessions.items()
    }


def found(lake: StreamLake) -> dict[tuple[str, datetime], tuple[Any, ...]]:
    rows = times.collect(lake.lake.spark.table("visits"))
    names = (
        "session_end closes_at closed page_views pages_visited first_page last_page path".split()
    )
    sessions = {(row["item"], row["session_start"]): tuple(row[n] for n in names) for row in rows}
    assert len(sessions) == len(rows), "a session stands twice"
    for row in rows:
        length = (row["session_end"] - row["session_start"]).total_seconds()
        assert (row["length"], row["bounce"]) == (length, row["page_views"] == 1)
        assert row["session_day"] == row["session_start"].date()
    return sessions


def step(lake: StreamLake, *events: Event) -> None:
    """One batch of clean, and one of the stream over it."""
    lake.feed(*events)
    new = lake.lake.spark.table("shop_events").where(F.col("batch") == lake.batch)
    stream_step.stateless_batch(new, lake.batch, lake=lake.lake, name="visits")


@pytest.fixture(params=["driver", "spark"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who answers what a batch has to do with the sessions that are there, and nobody else."""
    other = {"driver": "in_spark", "spark": "in_driver"}[request.param]

    def refused(*_: Any) -> Any:
        if request.param == "driver":
            raise AssertionError("Spark was asked")
        raise session_engines.NotInDriver("the test is of Spark")

    monkeypatch.setattr(session_engines, other, refused)
    return str(request.param)


@pytest.mark.usefixtures("engine")
def test_sessions_are_what_brute_force_says_after_every_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Events of a day in any order: each batch joins, prolongs and begins sessions before and
    behind those that are there."""
    choose, lake = random.Random(3), StreamLake.new(spark, tmp_path / "lake", VISITS)
    events: list[Event] = []
    for _ in range(6):
        new = [
            (
                choose.choice(["home", "cart", "brief", "robot"]),
                choose.choice("ab"),
                at("20T00:00") + timedelta(minutes=choose.randrange(24 * 60)),
            )
            for _ in range(9)
        ]
        events += new
        step(lake, *new)
        assert found(lake) == oracle(events)
    closed = {session[2] for session in found(lake).values()}
    assert closed == {True, False}


def test_a_pause_of_exactly_the_gap_is_none(spark: SparkSession, tmp_path: Path) -> None:
    lake = StreamLake.new(spark, tmp_path / "lake", VISITS)
    events: list[Event] = [
        ("home", "a", at("09:00")),
        ("cart", "a", at("09:30")),  # the last moment
        ("home", "b", at("09:00")),
        ("cart", "b", at("09:30:00.000001")),
    ]
    step(lake, *events)
    assert found(lake) == oracle(events)
    assert [(key, session[3]) for key, session in sorted(found(lake).items())] == [
        (("a", at("09:00")), 2),
        (("b", at("09:00")), 1),
        (("b", at("09:30:00.000001")), 1),
    ]


def test_a_late_event_joins_two_closed_sessions(spark: SparkSession, tmp_path: Path) -> None:
    lake = StreamLake.new(spark, tmp_path / "lake", VISITS)
    events: list[Event] = [("home", "a", at("09:00")), ("cart", "a", at("10:00"))]
    step(lake, *events)
    step(lake, later := ("home", "z", at("12:00")))
    assert found(lake) == oracle([*events, later])
    assert all(closed for (key, _), (_, _, closed, *_) in found(lake).items() if key == "a")
    step(lake, late := ("help", "a", at("09:30")))
    assert found(lake) == oracle([*events, later, late])
    assert found(lake)["a", at("09:00")][3:] == (3, 3, "home", "cart", ["home", "help", "cart"])

    (newest,) = lake.lake.commits("visits", 1)
    assert newest.operation == "MERGE" and newest.metric("numTargetRowsDeleted") == 1


@pytest.mark.usefixtures("engine")
def test_a_batch_without_events_of_sessions_closes_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = StreamLake.new(spark, tmp_path / "lake", VISITS)
    events: list[Event] = [("home", "a", at("09:00")), ("home", "b", at("09:50"))]
    step(lake, *events)
    for time in ("10:30", "11:30"):
        events.append(("robot", "z", at(time)))
        step(lake, events[-1])
        assert found(lake) == oracle(events)
    assert [closed for _, _, closed, *_ in found(lake).values()] == [True, True]


def days_of_sessions(spark: SparkSession, tmp_path: Path) -> tuple[StreamLake, list[Event]]:
    """A lake with a file of sessions for each of six days, of which the last begins at 08:10."""
    lake = StreamLake.new(spark, tmp_path / "lake", VISITS)
    days = [at("08:10") - timedelta(days=5 - n) for n in range(6)]
    events: list[Event] = [("home", "abcdef"[n], day) for n, day in enumerate(days)]
    for event in events:
        step(lake, event)
    assert len(spark.table("visits").inputFiles()) == 6
    return lake, events


NEAR: list[Event] = [("cart", "f", at("08:20")), ("cart", "f", at("08:45"))]


def test_spark_reads_the_sessions_near_a_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch reads what it touches, and what may be open."""
    lake, events = days_of_sessions(spark, tmp_path)
    read: dict[str, list[int]] = {"known": [], "due": []}

    def watched(name: str) -> None:
        real = getattr(session_engines.InSpark, name)

        def watch(*words: Any) -> Any:
            frame = real(*words)
            read[name].append(len(frame.inputFiles()))
            return frame

        monkeypatch.setattr(session_engines.InSpark, name, watch)

    watched("known")
    watched("due")
    monkeypatch.setattr(session_engines, "MOST_EVENTS", 0)
    for place, event in enumerate(NEAR):
        events.append(event)
        step(lake, event)
        assert found(lake) == oracle(events)
        assert all(counts[-1] <= 2 for counts in read.values()), (place, read)


@pytest.mark.parametrize("engine", ["driver"], indirect=True)
def test_the_driver_reads_the_sessions_near_a_batch(
    spark: SparkSession, tmp_path: Path, engine: str
) -> None:
    """It does not miss the files of other days, neither for what is near nor for the MERGE."""
    lake, events = days_of_sessions(spark, tmp_path)
    assert lake.lake.place.folder
    folder = lake.lake.place.folder / "visits"
    last = f"session_day={at('08:10').date()}"
    others = sorted(day for day in folder.glob("session_day=*") if day.name < last)[:-1]
    for event in NEAR:
        events.append(event)
        for day in others:
            day.rename(folder / f"_away-{day.name}")
        step(lake, event)
        assert by_driver(folder)
        for day in others:
            (folder / f"_away-{day.name}").rename(day)
        assert found(lake) == oracle(events)


@pytest.mark.parametrize("limit", ["MOST_EVENTS", "MOST_SESSIONS"])
def test_what_is_much_for_the_driver_is_sparks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    lake = StreamLake.new(spark, tmp_path / "lake", VISITS)
    asked: list[str] = []
    real = session_engines.in_spark
    monkeypatch.setattr(
        session_engines, "in_spark", lambda *words: asked.append("spark") or real(*words)
    )
    events: list[Event] = [("home", "a", at("09:00")), ("home", "b", at("09:00"))]
    step(lake, *events)
    assert not asked
    monkeypatch.setattr(session_engines, limit, 1)
    step(lake, *(more := [("home", "a", at("09:10")), ("cart", "b", at("09:50"))]))
    assert asked and found(lake) == oracle([*events, *more])


@pytest.mark.parametrize("engine", ["driver"], indirect=True)
def test_many_events_in_the_spans_are_sparks_to_find(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    """The driver answers the rest."""
    lake, found_by_spark = StreamLake.new(spark, tmp_path / "lake", VISITS), []
    real = session_engines._events_of
    monkeypatch.setattr(
        session_engines, "_events_of", lambda *words: found_by_spark.append(1) or real(*words)
    )
    events: list[Event] = [("home", "a", at("09:00"))]
    step(lake, *events)
    assert not found_by_spark
    monkeypatch.setattr(session_engines, "MOST_INSIDE", 1)
    step(lake, more := ("cart", "a", at("09:10")))
    assert found_by_spark and found(lake) == oracle([*events, more])


@pytest.mark.usefixtures("engine")
def test_events_of_later_batches_are_not_yet_there(spark: SparkSession, tmp_path: Path) -> None:
    """Clean may be ahead of the stream."""
    lake = StreamLake.new(spark, tmp_path / "lake", VISITS)
    first, second = ("home", "a", at("09:00")), ("cart", "a", at("09:10"))
    lake.feed(first)
    lake.feed(second)
    events = spark.table("shop_events")
    for batch, known in enumerate(([first], [first, second])):
        new = events.where(F.col("batch") == batch)
        stream_step.stateless_batch(new, batch, lake=lake.lake, name="visits")
        assert found(lake) == oracle(known)


CONDITIONS = {
    "of another column": "price > 0 AND kind != 'robot'",
    "that fails": "kind != 'robot' AND 1 DIV (price - 1) >= 0",
}


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("where", CONDITIONS.values(), ids=CONDITIONS)
def test_conditions_of_any_kind(spark: SparkSession, tmp_path: Path, where: str) -> None:
    definition = declared([{"name": "visits", "sessions": {**WORDS, "where": where}}])
    lake = StreamLake.new(spark, tmp_path / "lake", definition)
    events: list[Event] = [("brief", "a", at("09:00")), ("home", "a", at("09:05"))]
    events += [("robot", "a", at("09:10")), ("cart", "b", at("09:10"))]
    later: list[Event] = [("cart", "a", at("09:20"))]
    for new in (events, later):
        step(lake, *new)
    taken = events[1:] if "price - 1" in where else events
    assert found(lake) == oracle([*taken, *later])


def test_a_batch_again_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    lake = StreamLake.new(spark, tmp_path / "lake", VISITS)
    step(lake, ("home", "a", at("09:00")), ("robot", "a", at("09:05")), ("robot", "b", at("09:05")))
    before = lake.lake.commits("visits", 1)[0].version
    new = spark.table("shop_events")
    stream_step.stateless_batch(new, 0, lake=lake.lake, name="visits")
    assert lake.lake.commits("visits", 1)[0].version == before
    stream_step.stateless_batch(new, 1, lake=lake.lake, name="visits")  # nothing of it is new
    assert lake.lake.commits("visits", 1)[0].version == before


@pytest.mark.stream
def test_a_run_brings_sessions_and_tells_of_them(spark: SparkSession, tmp_path: Path) -> None:
    lake = StreamLake.new(spark, tmp_path / "lake", VISITS)
    events: list[Event] = [("home", "a", at("09:00")), ("cart", "a", at("09:10"))]
    lake.feed(*events)
    lake.run()
    lake.feed(last := ("home", "b", at("10:00")))
    lake.run()
    assert found(lake) == oracle([*events, last])
    told = spark.table("tidemill_batches").where("query = 'stream'").orderBy("batch").collect()
    assert [(row["view"], row["accepted"], row["merged"]["inserted"]) for row in told] == [
        ("visits", 1, 1),
        ("visits", 2, 1),  # one is closed
    ]
