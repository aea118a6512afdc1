"""Records that the Producer Library put together, written here by Google's Protobuf."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from kinesis import FakeKinesis
from tidemill.sources.kinesis.aggregated_records import MAGIC, user_records

TYPES = {"string": 9, "uint64": 4, "bytes": 12}


def messages() -> tuple[Any, Any]:
    """The classes of the library's messages."""
    file = descriptor_pb2.FileDescriptorProto(name="kpl.proto", package="kpl", syntax="proto2")
    record = file.message_type.add(name="Record")
    for number, (name, kind) in enumerate(
        [
            ("partition_key_index", "uint64"),
            ("explicit_hash_key_index", "uint64"),
            ("data", "bytes"),
        ]
    ):
        record.field.add(name=name, number=number + 1, type=TYPES[kind], label=1)
    whole = file.message_type.add(name="AggregatedRecord")
    whole.field.add(name="partition_key_table", number=1, type=TYPES["string"], label=3)
    whole.field.add(name="explicit_hash_key_table", number=2, type=TYPES["string"], label=3)
    whole.field.add(name="records", number=3, type=11, label=3, type_name=".kpl.Record")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return tuple(
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"kpl.{name}"))
        for name in ("AggregatedRecord", "Record")
    )


def together(records: list[tuple[str, bytes]], hashes: bool = False) -> bytes:
    aggregated, record = messages()
    keys = sorted({key for key, _ in records})
    message = aggregated(partition_key_table=keys)
    for key, data in records:
        message.records.append(record(partition_key_index=keys.index(key), data=data))
        if hashes:
            message.explicit_hash_key_table.append("7")
            message.records[-1].explicit_hash_key_index = len(message.records) - 1
    body = message.SerializeToString()
    return MAGIC + body + hashlib.md5(body).digest()


RECORDS = [("ada", b'{"n": 1}'), ("bob", b""), ("ada", b"x" * 300), ("cy", b"\xff\x00")]


@pytest.mark.parametrize("hashes", [False, True])
def test_they_are_taken_apart_in_their_order(hashes: bool) -> None:
    assert user_records(together(RECORDS, hashes)) == RECORDS


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b'{"a": 1}',
        MAGIC,
        MAGIC + b"no digest of this",
        together(RECORDS)[:-1] + b"?",
        MAGIC + b"\x1a\x7fcut" + hashlib.md5(b"\x1a\x7fcut").digest(),
        MAGIC + b"\x0dbad!" + hashlib.md5(b"\x0dbad!").digest(),
        MAGIC + b"\x1a\x02\x08\x05" + hashlib.md5(b"\x1a\x02\x08\x05").digest(),
    ],
)
def test_other_bytes_are_a_record_as_they_are(data: bytes) -> None:
    assert user_records(data) is None


def test_each_is_a_row_with_its_own_number(kinesis: FakeKinesis) -> None:
    stream = kinesis.stream("aggregated")
    stream.put([together(RECORDS), b"plain"])
    reader = stream.reader()
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    for parts in (reader.partitions(start, end), stream.reader().partitions(start, end)):
        rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
        assert [(row["partitionKey"], row["data"]) for row in rows] == [*RECORDS, ("1", b"plain")]
        assert [row["subSequenceNumber"] for row in rows] == [0, 1, 2, 3, None]
        assert len({row["sequenceNumber"] for row in rows}) == 2
