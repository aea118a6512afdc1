from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from tidemill.errors import InputError
from tidemill.sources.generator.mix import Mix
from tidemill.sources.generator.source import Generator, GeneratorReader

START = datetime(2026, 11, 20, 8, tzinfo=timezone.utc)
SMALL = Generator(start=START, rate=20, minutes=10, minutes_per_batch=4)


def test_identity_is_what_makes_the_stream():
    assert SMALL.identity() == {
        "kind": "generator",
        "seed": 7,
        "start": "2026-11-20T08:00:00Z",
        "rate": 20,
    }


def test_another_kind_of_events_is_another_stream():
    assert replace(SMALL, events="cards").identity() == {**SMALL.identity(), "events": "cards"}
    assert replace(SMALL, events="cards").records(0) != SMALL.records(0)


@pytest.mark.parametrize(
    "start", [START.replace(tzinfo=None), START.astimezone(timezone(timedelta(hours=2)))]
)
def test_the_start_is_utc(start: datetime):
    assert Generator(start=start).identity() == Generator(start=START).identity()


def test_without_a_start_the_demo_ends_at_the_current_hour():
    now = datetime(2026, 11, 21, 10, 42, 17, tzinfo=timezone.utc)
    assert Generator(now=now).first == datetime(2026, 11, 20, 8, tzinfo=timezone.utc)
    assert Generator(now=now, minutes=None).first == now.replace(minute=0, second=0)


def test_endless_yields_the_minutes_that_the_clock_completed():
    endless = Generator(start=START, minutes=None, now=START + timedelta(minutes=3, seconds=59))
    assert endless.available() == 3
    assert replace(endless, now=START - timedelta(hours=1)).available() == 0


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"start": START.replace(second=1)}, "start"),
        ({"rate": 0}, "rate"),
        ({"minutes": 0}, "minutes"),
        ({"minutes_per_batch": 0}, "batch"),
    ],
)
def test_check_names_what_is_wrong(wrong: dict[str, Any], where: str):
    with pytest.raises(InputError) as error:
        replace(SMALL, **wrong).check(once=True)
    assert error.value.where == where


def test_a_generator_survives_its_option():
    generator = replace(SMALL, mix=Mix(profiles=3), now=START)
    generator.check(once=True)
    assert generator.ready()
    assert Generator.from_json(generator.to_json()) == generator


def test_batches_are_whole_minutes_up_to_the_end():
    reader = GeneratorReader(SMALL)
    limit = reader.getDefaultReadLimit()
    ends, at = [], reader.initialOffset()
    while (end := reader.latestOffset(at, limit)) != at:
        ends.append(end["minute"])
        at = end
    assert ends == [4, 8, 10]
    assert reader.latestOffset({"minute": 0}, ReadAllAvailable()) == {"minute": 10}
    assert reader.latestOffset({"minute": 0}, ReadMaxRows(1)) == {"minute": 1}
    assert reader.latestOffset({"minute": 12}, limit) == {"minute": 12}


@pytest.mark.parametrize(("most", "ends"), [(1, [1, 2, 3]), (60, [3, 4]), (100, [4])])
def test_a_batch_has_at_most_so_many_records_in_whole_minutes(most: int, ends: list[int]):
    #   minute    0   1   2   3
    #   records  18  18  18  18
    capped = replace(SMALL, minutes=4, most_records=most)
    reader, at, found = GeneratorReader(capped), {"minute": 0}, []
    while (end := reader.latestOffset(at, reader.getDefaultReadLimit())) != at:
        found.append(end["minute"])
        at = end
    assert found[: len(ends)] == ends


@pytest.mark.parametrize(("start", "end"), [(0, 4), (3, 4), (4, 4), (0, 7)])
def test_tasks_share_a_batch(start: int, end: int):
    parts = GeneratorReader(SMALL).partitions({"minute": start}, {"minute": end})
    assert [m for part in parts for m in range(part.first, part.end)] == list(range(start, end))


def drain(frame: DataFrame, checkpoint: Path) -> list[list[Row]]:
    """Return the batches of an availableNow run."""
    batches: list[list[Row]] = []
    query = (
        frame.writeStream.option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .foreachBatch(lambda batch, _: batches.append(batch.collect()))
        .start()
    )
    query.awaitTermination()
    return batches


@pytest.mark.stream
def test_available_now_reads_all_minutes_in_batches(spark: SparkSession, tmp_path: Path):
    batches = drain(SMALL.stream(spark), tmp_path)
    assert [len({row.source_ts for row in batch}) for batch in batches] == [4, 4, 2]
    rows = sorted((row for batch in batches for row in batch), key=lambda row: row.offset)
    assert [row.raw_payload for row in rows] == [
        line for minute in range(10) for line in SMALL.records(minute)
    ]
    assert [row.offset for row in rows] == list(range(len(rows)))
    assert rows[3].record_id == "generator:0:3"
    assert {(row.topic, row.partition) for row in rows} == {("generator", 0)}


@pytest.mark.stream
def test_endless_goes_on_where_the_checkpoint_stands(spark: SparkSession, tmp_path: Path):
    #   08:00      08:03            08:07
    #   |- first run -|- second run -|   the third, at the same time, finds nothing
    endless = replace(SMALL, minutes=None, minutes_per_batch=100)
    counts = []
    for minute in (3, 7, 7):
        now = START + timedelta(minutes=minute)
        batches = drain(replace(endless, now=now).stream(spark), tmp_path)
        counts.append([len({row.source_ts for row in batch}) for batch in batches])
    assert counts == [[3], [4], []]
