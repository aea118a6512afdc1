"""What one task of a batch reads: a part of a shard, from Kinesis or from what the plan kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition

from tidemill.errors import QueryError
from tidemill.sources.kinesis.aggregated_records import user_records
from tidemill.sources.kinesis.refusals import place_of
from tidemill.sources.kinesis.service import PAGE_RECORDS, KinesisRecord, Service
from tidemill.sources.kinesis.shard_cursor import ShardCursor
from tidemill.sources.kinesis.shard_offset import (
    TRIM_HORIZON,
    Position,
    StreamOffset,
    time_text,
)

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = (
    "partitionKey STRING, data BINARY, stream STRING, shardId STRING, sequenceNumber STRING, "
    "subSequenceNumber BIGINT, approximateArrivalTimestamp TIMESTAMP"
)
MOST_IN_TASK = 8 * 2**20
"""Bytes of kept records that travel with a task; Spark refuses one of more than 128 MB."""


@dataclass
class ShardRange(InputPartition):
    """The records of a shard after `after` (None: from `begins`) up to `last`, `records` of
    them."""

    shard: str
    begins: str | datetime
    after: str | None
    last: str
    records: int


@dataclass
class KeptRecords(InputPartition):
    """Records of a shard that the plan has read, as an Arrow stream."""

    batches: bytes

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield the records, with the columns of SCHEMA."""
        import pyarrow as pa

        with pa.ipc.open_stream(self.batches) as reader:
            yield from reader


def ranges(start: StreamOffset, end: StreamOffset) -> list[ShardRange]:
    """Return what the shards have between two offsets. Where the stream begins, says the end: a
    first batch that is planned again after a crash has another start, by the clock."""
    moved = [
        (name, start.shards.get(name, Position()), position)
        for name, position in end.shards.items()
        if position.after is not None
    ]
    return [
        ShardRange(
            name,
            TRIM_HORIZON if now.from_oldest else end.begins,
            None if now.from_oldest else before.after,
            str(now.after),
            now.records,
        )
        for name, before, now in moved
        if now.after != before.after
    ]


def kept(
    stream: str, records: Mapping[str, Sequence[KinesisRecord]], most: int = MOST_IN_TASK
) -> list[KeptRecords]:
    """Return tasks of at most so many bytes, or one record, for records that the plan has read."""
    return [
        KeptRecords(_to_bytes(arrow_batch(stream, shard, chunk)))
        for shard, whole in records.items()
        for chunk in _chunks(whole, most)
    ]


def read(service: Service, part: ShardRange, *, fails: bool) -> Iterator[pa.RecordBatch]:
    """Yield the records of a range, with the columns of SCHEMA; QueryError where some are gone,
    unless `fails` is False."""
    for page in _pages(service, part, fails):
        yield arrow_batch(service.address.stream, part.shard, page)


def arrow_batch(stream: str, shard: str, records: Sequence[KinesisRecord]) -> pa.RecordBatch:
    """Return records as an Arrow batch; those that the producer put together are taken apart."""
    import pyarrow as pa

    rows = [row for record in records for row in _rows(record)]
    keys, data, sequences, subs, times = zip(*rows, strict=True) if rows else ((),) * 5
    columns: dict[str, Any] = {
        "partitionKey": pa.array(keys, pa.string()),
        "data": pa.array(data, pa.binary()),
        "stream": pa.repeat(pa.scalar(stream, pa.string()), len(rows)),
        "shardId": pa.repeat(pa.scalar(shard, pa.string()), len(rows)),
        "sequenceNumber": pa.array(sequences, pa.string()),
        "subSequenceNumber": pa.array(subs, pa.int64()),
        "approximateArrivalTimestamp": pa.array(times, pa.timestamp("us", "UTC")),
    }
    return pa.RecordBatch.from_pydict(columns)


def _rows(record: KinesisRecord) -> list[tuple[str, bytes, str, int | None, datetime]]:
    apart = user_records(record.data)
    if apart is None:
        return [(record.key, record.data, record.sequence, None, record.arrived)]
    return [
        (key, data, record.sequence, number, record.arrived)
        for number, (key, data) in enumerate(apart)
    ]


def _pages(service: Service, part: ShardRange, fails: bool) -> Iterator[Sequence[KinesisRecord]]:
    """Yield the range's records as they were planned; fewer of them are an error, as some are gone
    since."""
    cursor = ShardCursor(service, part.shard, part.begins, part.after)
    last, left = int(part.last), part.records
    while not cursor.ended:
        page = cursor.read(PAGE_RECORDS)
        records = [one for one in page.records if int(one.sequence) <= last]
        left -= len(records)
        if records:
            yield records
        if len(records) < len(page.records) or (records and records[-1].sequence == part.last):
            break
        if not page.records and not page.behind:
            break
    if left and fails:
        raise QueryError(
            f"{left} of the {part.records} records of {part.shard} up to {part.last} that this "
            f"batch was planned with are gone, {_since(part)}",
            where=place_of(service.address),
            expected="fail_on_data_loss: false to go on with the records that are left",
        )


def _since(part: ShardRange) -> str:
    if part.after:
        return f"after {part.after}"
    begins = part.begins
    return f"from {begins if isinstance(begins, str) else time_text(begins)}"


def _chunks(records: Sequence[KinesisRecord], most: int) -> Iterator[Sequence[KinesisRecord]]:
    begin = size = 0
    for index, record in enumerate(records):
        if size and size + len(record.data) > most:
            yield records[begin:index]
            begin, size = index, 0
        size += len(record.data)
    if records:
        yield records[begin:]


def _to_bytes(batch: pa.RecordBatch) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(
        sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())
