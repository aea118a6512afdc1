"""Spells of an activity: in Spark's own harness, and as a stream against brute force."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.tws_tester import TwsTester

import deltalog
import door_counter
from children import Children
from lakes import at
from runs import write_file
from stream_lakes import WORDS, Event, StreamLake, declared, records
from tidemill.config.stream_operators.processors import SPELLS
from tidemill.errors import DefinitionError
from tidemill.lake import times

SAID = {"of": "kind", "timeout": "30m"}
SPELL: dict[str, Any] = {
    "by": "activity_spells",
    "keys": ["item"],
    "watermark": "10m",
    "options": SAID,
}
MINUTE = 60_000
FIRST = 1_000 * MINUTE


def harness(clock: str) -> TwsTester:
    options = SPELLS.options.model_validate(SAID)
    mode = {"event": "eventTime", "wall": "processingTime"}[clock]
    return TwsTester(
        SPELLS.made(options, ("item",), clock),
        timeMode=mode,
        eventTimeExtractor=lambda row: row["at"] // 1000,
    )


def rows(*events: tuple[int, str]) -> list[Row]:
    """Events by their minute and kind."""
    return [Row(at=after(minute) * 1000, kind=kind) for minute, kind in events]


def after(minute: int) -> int:
    """A minute's milliseconds since 1970."""
    return FIRST + minute * MINUTE


def spells(found: Iterable[Row]) -> list[tuple[Any, ...]]:
    def minute(micros: int) -> int:
        return (micros // 1000 - FIRST) // MINUTE

    return [
        (
            row["kind"],
            minute(row["start_at"]),
            minute(row["end_at"]),
            row["events"],
            row["ended_by"],
        )
        for row in found
    ]


def test_by_event_time_events_wait_for_the_watermark() -> None:
    spark = harness("event")
    assert spark.test("a", rows((9, "write"), (0, "read"), (5, "read"))) == []
    assert spells(spark.setWatermark(after(8))) == []
    assert spells(spark.setWatermark(after(9))) == [("read", 0, 9, 2, "change")]
    assert spark.test("a", rows((38, "write"))) == []
    assert spells(spark.setWatermark(after(39))) == []
    assert spells(spark.setWatermark(after(68))) == [("write", 9, 38, 2, "timeout")]


def test_the_timeout_is_looked_at_before_the_change() -> None:
    """Half an hour to the minute is too long, also for the same activity."""
    spark = harness("event")
    spark.test("a", rows((0, "read"), (30, "read"), (59, "read"), (60, "write")))
    assert spells(spark.setWatermark(after(60))) == [
        ("read", 0, 0, 1, "timeout"),
        ("read", 30, 60, 2, "change"),
    ]


def test_by_processing_time_events_are_taken_as_they_come() -> None:
    spark = harness("wall")
    spark.setProcessingTime(after(100))
    assert spells(spark.test("a", rows((0, "read"), (5, "write")))) == [("read", 0, 5, 1, "change")]
    assert spells(spark.setProcessingTime(after(129))) == []
    assert spells(spark.test("a", rows((3, "write")))) == []  # an earlier one prolongs it too
    assert spells(spark.setProcessingTime(after(158))) == []
    assert spells(spark.setProcessingTime(after(159))) == [("write", 3, 5, 2, "timeout")]


def oracle(events: list[Event], passed: datetime) -> set[tuple[Any, ...]]:
    """The spells that are over when the watermark has passed a time, of events up to it."""
    found: set[tuple[Any, ...]] = set()
    timeout = timedelta(minutes=30)
    for item in {item for _, item, _ in events}:
        mine = sorted((time, kind) for kind, of, time in events if of == item and time <= passed)
        spell: list[Any] = []
        for time, kind in [*mine, (None, None)]:
            if spell:
                activity, first, last, number = spell
                if time is None:
                    if passed - last >= timeout:
                        found.add((item, activity, first, last, number, "timeout"))
                    continue
                if time - last < timeout and kind == activity:
                    spell = [activity, first, time, number + 1]
                    continue
                is_over = time - last >= timeout
                end, by = (last, "timeout") if is_over else (time, "change")
                found.add((item, activity, first, end, number, by))
            spell = [kind, time, time, 1]
    return found


@pytest.mark.stream
def test_spells_are_what_brute_force_says(spark: SparkSession, tmp_path: Path) -> None:
    """Out of order by less than the watermark, in batches that cut through it."""
    streams = [{"name": "spells", "process": SPELL}]
    lake = StreamLake.new(spark, tmp_path / "lake", declared(streams))
    choose = random.Random(4)
    events: list[Event] = [
        (
            choose.choice(["read", "write", "look"]),
            choose.choice("ab"),
            at("06:00") + timedelta(minutes=minute, seconds=choose.randrange(500)),
        )
        for minute in range(0, 240, 7)
    ]
    for first in range(0, len(events), 12):
        lake.feed(*events[first : first + 12])
        lake.run()
    passed = max(time for _, _, time in events) - timedelta(minutes=10)
    names = ("item", "kind", "start_at", "end_at", "events", "ended_by")
    found = [tuple(row[n] for n in names) for row in times.collect(spark.table("spells"))]
    assert len(found) == len(set(found))
    assert set(found) == oracle(events, passed)
    assert {row[-1] for row in found} == {"change", "timeout"}


@pytest.mark.stream
def test_a_processor_of_an_installed_package(children: Children, tmp_path: Path) -> None:
    """Found by its entry point, imported by Spark's workers, its state kept from run to run."""
    site = tmp_path / "site"
    about = site / "doors-1.0.dist-info"
    about.mkdir(parents=True)
    shutil.copy(door_counter.__file__, site)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: doors\nVersion: 1.0\n")
    point = "door_counter = door_counter:KIND"
    (about / "entry_points.txt").write_text(f"[tidemill.processors]\n{point}\n")
    process = {"by": "door_counter", "keys": ["item"], "watermark": "10m", "options": {"first": 10}}
    words = {
        **WORDS,
        "source": {"kind": "files", "input": str(tmp_path / "events")},
        "streams": [{"name": "doors", "process": process}],
    }
    (tmp_path / "shop.yaml").write_text(json.dumps(words))
    events: list[Event] = [
        ("in", "a", at("09:00")),
        ("in", "b", at("09:00")),
        ("in", "a", at("09:01")),
        ("in", "a", at("09:02")),
    ]
    for number, some in enumerate((records(events)[:3], records(events)[3:])):
        write_file(tmp_path / "events", f"{number}.jsonl", some)
        command = ("run", tmp_path / "shop.yaml", "--once", "--root", tmp_path / "lake")
        child = children.tidemill(*command, PYTHONPATH=str(site))
        assert child.ended() == 0, child.err.read_text()
    found = [(row["item"], row["nth"]) for row in deltalog.rows(tmp_path / "lake" / "doors")]
    assert sorted(found) == [("a", 11), ("a", 12), ("a", 13), ("b", 11)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"by": "activity_spell"}, "unknown processor 'activity_spell'.*activity_spells"),
        ({"options": {"of": "kind"}}, "timeout: Field required"),
        ({"options": {"of": "knd", "timeout": "1m"}}, "the event has no column 'knd'"),
        ({"columns": ["price"]}, "its columns are those of the processor"),
        ({"keys": ["kind"]}, "two columns of stream s would be called kind"),
    ],
)
def test_what_is_refused(words: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, DefinitionError), match=message):
        declared([{"name": "s", "process": {**SPELL, **words}}], **{"pipeline": WORDS["pipeline"]})
