"""Batches of a stream: every record in one batch, the same ones whenever a batch is read."""

from __future__ import annotations

import dataclasses
import json
import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.datasource_internal import ReadLimitRegistry
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

from kinesis import FakeKinesis, FakeStream, name_of
from tidemill.sources.kinesis import batch_plan
from tidemill.sources.kinesis.data_source import KinesisDataSource, KinesisStreamReader
from tidemill.sources.kinesis.shard_range import SCHEMA, KeptRecords, ShardRange

TYPES = {
    "string": "STRING",
    "binary": "BINARY",
    "int64": "BIGINT",
    "timestamp[us, tz=UTC]": "TIMESTAMP",
}
Offset = dict[str, Any]
Row = dict[str, Any]


def rows_of(reader: KinesisStreamReader, start: Offset, end: Offset) -> list[Row]:
    parts = reader.partitions(start, end)
    return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


def batches(reader: KinesisStreamReader, at: Offset | None = None) -> Iterator[tuple]:
    """Yield start, end and rows of each batch, until there is nothing new."""
    at = reader.initialOffset() if at is None else at
    while (end := reader.latestOffset(at, reader.getDefaultReadLimit())) != at:
        yield at, end, rows_of(reader, at, end)
        at = end


def texts(rows: list[Row]) -> list[str]:
    return [row["data"].decode() for row in rows]


def numbers(first: int, end: int) -> list[str]:
    return [f"record {number}" for number in range(first, end)]


def test_a_record_says_where_it_came_from(kinesis: FakeKinesis) -> None:
    stream = kinesis.stream("places", 2)
    stream.put(numbers(0, 3))
    ((_, end, rows),) = batches(stream.reader())
    assert sorted(texts(rows)) == numbers(0, 3)
    assert {row["stream"] for row in rows} == {"places"}
    assert {row["shardId"] for row in rows} <= {name_of(0), name_of(1)}
    assert len({row["sequenceNumber"] for row in rows}) == 3
    assert json.loads(json.dumps(end)) == end  # Spark keeps it as text


@pytest.mark.parametrize("max_records", [1, 7, 40, 1000])
def test_any_limit_gives_each_record_once(kinesis: FakeKinesis, max_records: int) -> None:
    stream = kinesis.stream(f"limit-{max_records}", 3)
    stream.put(numbers(0, 60))
    found = [texts(rows) for *_, rows in batches(stream.reader(max_records=max_records))]
    assert sorted(chain(*found)) == sorted(numbers(0, 60))
    assert max(map(len, found)) <= max_records


def test_a_batch_has_at_most_so_many_bytes_but_a_record(kinesis: FakeKinesis) -> None:
    stream = kinesis.stream("bytes")
    stream.put(["a" * 40, "b" * 50, "c" * 500, "d" * 10])
    found = [texts(rows) for *_, rows in batches(stream.reader(max_bytes=100))]
    assert [[text[0] for text in batch] for batch in found] == [["a", "b"], ["c"], ["d"]]


def test_read_all_available_knows_no_limit(kinesis: FakeKinesis) -> None:
    stream = kinesis.stream("all")
    stream.put(numbers(0, 50))
    reader = stream.reader(max_records=5)
    start = reader.initialOffset()
    assert len(rows_of(reader, start, reader.latestOffset(start, ReadAllAvailable()))) == 50
    assert len(rows_of(reader, start, reader.latestOffset(start, ReadMaxRows(6)))) == 6


def resharded(stream: FakeStream) -> list[Callable[[], None]]:
    """What happens between batches: records, a split, more of them, a merge, more again."""
    return [
        lambda: stream.put(numbers(0, 40)),
        lambda: stream.split(0),
        lambda: stream.put(numbers(40, 80)),
        lambda: stream.merge(2, 3),
        lambda: stream.put(numbers(80, 120)),
    ]


@pytest.mark.parametrize("max_records", [9, 1000])
def test_shards_split_and_merge_in_mid_run(kinesis: FakeKinesis, max_records: int) -> None:
    #   shard 0 ──┬── 2 ──┬── 4        a child is read when its parents are read to their end,
    #             └── 3 ──┘            in a later batch
    #   shard 1 ───────────────
    stream = kinesis.stream(f"resharded-{max_records}", 2)
    reader = stream.reader(max_records=max_records)
    at, found = reader.initialOffset(), []
    for event in resharded(stream):
        event()
        for _ in range(2):  # not all that is there: the stream goes on in the midst of it
            end = reader.latestOffset(at, reader.getDefaultReadLimit())
            found.append(rows_of(reader, at, end))
            at = end
    found += [rows for *_, rows in batches(reader, at)]
    everything = [*chain(*found)]
    assert Counter(texts(everything)) == Counter(numbers(0, 120))
    first, last = _first_and_last(found)
    parents = {0: (), 1: (), 2: (0,), 3: (0,), 4: (2, 3)}
    for child, of in parents.items():
        for parent in of:
            assert last[name_of(parent)] < first[name_of(child)]


def _first_and_last(found: list[list[Row]]) -> tuple[dict[str, int], dict[str, int]]:
    seen = [(row["shardId"], n) for n, rows in enumerate(found) for row in rows]
    return dict(reversed(seen)), dict(seen)


def test_a_batch_read_again_by_another_process_is_the_same(kinesis: FakeKinesis) -> None:
    """After a crash Spark asks for the batch that it had planned: nothing of the plan is left, and
    the stream has gone on."""
    stream = kinesis.stream("again", 2)
    reader, planned, at = stream.reader(max_records=17), [], None
    for event in resharded(stream):
        event()
        for start, end, rows in batches(reader, at):
            planned.append((start, end, rows))
            at = end
    for start, end, rows in planned:
        again = rows_of(stream.reader(), start, end)
        assert sorted(again, key=str) == sorted(rows, key=str)


def test_the_first_batch_of_latest_begins_where_it_was_planned(kinesis: FakeKinesis) -> None:
    """The checkpoint keeps no start of a first batch: its end says where it began."""
    stream = kinesis.stream("latest")
    reader = stream.reader(starting_position="LATEST")
    start = reader.initialOffset()
    pinned = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert pinned != start  # a first, empty batch: a restart goes on from here
    stream.put(numbers(0, 5))
    end = reader.latestOffset(pinned, reader.getDefaultReadLimit())
    later = {**start, "start": "2099-01-01T00:00:00.000Z"}
    assert texts(rows_of(stream.reader(), later, end)) == numbers(0, 5)


def test_a_time_is_where_a_new_query_begins(kinesis: FakeKinesis) -> None:
    stream = kinesis.stream("since")
    stream.put(numbers(0, 3))
    ((_, _, rows),) = batches(stream.reader())
    begin = rows[2]["approximateArrivalTimestamp"].isoformat()
    found = [texts(rows) for *_, rows in batches(stream.reader(starting_position=begin))]
    assert numbers(2, 3)[0] in found[0]
    none = stream.reader(starting_position="2026-11-20T00:00:00+00:00")
    assert [texts(rows) for *_, rows in batches(none)] == [numbers(0, 3)]


def test_available_now_ends_on_a_stream_that_goes_on(kinesis: FakeKinesis) -> None:
    stream = kinesis.stream("now", 2)
    stream.put(numbers(0, 30))
    reader, found, at = stream.reader(max_records=10), [], None
    reader.prepareForTriggerAvailableNow()
    assert reader.until is not None
    for _, end, rows in batches(reader):
        found += texts(rows)
        stream.put(["more"] * 10)
        at = end
        assert len(found) < 2000, "it goes on for as long as records come"
    assert set(numbers(0, 30)) <= set(found)
    assert at is not None
    rest = [text for *_, rows in batches(stream.reader(), at) for text in texts(rows)]
    assert set(rest) <= {"more"}


def test_how_far_behind_is_told_to_spark(kinesis: FakeKinesis) -> None:
    stream = kinesis.stream("behind")
    stream.put(numbers(0, 20))
    reader = stream.reader(max_records=5)
    assert reader.reportLatestOffset() is None
    start = reader.initialOffset()
    middle = reader.latestOffset(start, reader.getDefaultReadLimit())
    report = reader.reportLatestOffset()
    assert report and report["millisBehindLatest"] == report["shards"][name_of(0)] > 0
    reader.latestOffset(middle, ReadAllAvailable())
    assert reader.reportLatestOffset() == {"millisBehindLatest": 0, "shards": {name_of(0): 0}}


def test_it_goes_through_sparks_own_calls(kinesis: FakeKinesis) -> None:
    """The source, its limit, reader and tasks as Spark's planner and workers get them."""
    stream = kinesis.stream("pickled", 2)
    stream.put(numbers(0, 50))
    options = CaseInsensitiveDict(stream.options(max_records=20).to_spark())
    source = pickle.loads(cloudpickle.dumps(KinesisDataSource(options)))
    reader = source.streamReader(StructType())
    limit = reader.getDefaultReadLimit()
    told = {**dataclasses.asdict(limit), "_type": type(limit).__name__}
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadLimitRegistry().get(told))
    for parts in (reader.partitions(start, end), reader.partitions(start, end)):
        worker, tasks = pickle.loads(cloudpickle.dumps((reader, parts)))
        found = [batch for task in tasks for batch in worker.read(task)]
        assert sum(batch.num_rows for batch in found) == 20
        assert [f"{one.name} {TYPES[str(one.type)]}" for one in found[0].schema] == SCHEMA.split(
            ", "
        )


def test_few_records_travel_with_the_tasks_of_many_only_places(
    kinesis: FakeKinesis, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = kinesis.stream("kept", 2)
    stream.put(numbers(0, 50))
    reader = stream.reader()
    start = reader.initialOffset()
    for most, kind in ((10**6, KeptRecords), (100, ShardRange)):
        monkeypatch.setattr(batch_plan, "MOST_KEPT", most)
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        parts = reader.partitions(start, end)
        assert {type(part) for part in parts} == {kind}
        rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
        assert sorted(texts(rows)) == sorted(numbers(0, 50))


def test_a_hundred_thousand_records_in_bounded_batches(kinesis: FakeKinesis) -> None:
    stream = kinesis.stream("many", 4)
    stream.put(str(number) for number in range(100_000))
    sizes, seen = [], bytearray(100_000)
    for _, _, rows in batches(stream.reader(max_records=30_000)):
        sizes.append(len(rows))
        for row in rows:
            seen[int(row["data"])] += 1
    assert set(seen) == {1}
    assert sum(sizes) == 100_000 and max(sizes) <= 30_000


def test_bytes_that_are_no_text_stay(kinesis: FakeKinesis) -> None:
    stream = kinesis.stream("binary")
    stream.put([b"\xff\x00\xfe"])
    ((_, _, rows),) = batches(stream.reader())
    assert rows[0]["data"] == b"\xff\x00\xfe"


def test_the_shard_that_is_furthest_behind_is_read_first(kinesis: FakeKinesis) -> None:
    stream = kinesis.stream("fair", 2)
    stream.put(numbers(0, 30))
    shards = [rows[0]["shardId"] for *_, rows in batches(stream.reader(max_records=1))]
    assert set(shards[:4]) == {name_of(0), name_of(1)}
