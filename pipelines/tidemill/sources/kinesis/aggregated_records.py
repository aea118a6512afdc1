"""Records that the Kinesis Producer Library put together: one Kinesis record, several of its user.

The format is the library's `aggregation-format.md`: four magic bytes, a Protobuf message, and the
MD5 of that message. Protobuf is read here, as two kinds of fields are all there is of it:

    AggregatedRecord {repeated string partition_key_table = 1;
                      repeated string explicit_hash_key_table = 2; repeated Record records = 3}
    Record           {uint64 partition_key_index = 1; uint64 explicit_hash_key_index = 2;
                      bytes data = 3; repeated Tag tags = 4}
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

MAGIC = b"\xf3\x89\x9a\xc2"
DIGEST = 16
_VARINT, _BYTES = 0, 2
_KEYS, _RECORDS = 1, 3
_KEY_INDEX, _DATA = 1, 3


def user_records(data: bytes) -> list[tuple[str, bytes]] | None:
    """Return the partition key and the data of each record that was put together, in their order;
    None for a record that was not: of other bytes, or of which the digest is another one."""
    body = data[len(MAGIC) : -DIGEST]
    if not data.startswith(MAGIC) or hashlib.md5(body).digest() != data[-DIGEST:]:
        return None
    try:
        return _records(body)
    except (ValueError, IndexError):  # the digest is right, the message is another one
        return None


def _records(message: bytes) -> list[tuple[str, bytes]]:
    keys: list[str] = []
    records: list[bytes] = []
    for number, value in _fields(message):
        if number == _KEYS and isinstance(value, bytes):
            keys.append(value.decode())
        elif number == _RECORDS and isinstance(value, bytes):
            records.append(value)
    return [_record(record, keys) for record in records]


def _record(message: bytes, keys: list[str]) -> tuple[str, bytes]:
    fields = dict(_fields(message))
    index, data = fields.get(_KEY_INDEX, 0), fields.get(_DATA, b"")
    if not isinstance(index, int) or not isinstance(data, bytes):
        raise ValueError("no record")
    return keys[index], data


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field; ValueError for bytes that are no such message."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        value, at = _varint(message, at)
        if tag & 7 == _BYTES:
            if at + value > len(message):
                raise ValueError("the message is cut off")
            yield tag >> 3, message[at : at + value]
            at += value
        elif tag & 7 == _VARINT:
            yield tag >> 3, value
        else:
            raise ValueError(f"unknown type of field: {tag & 7}")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, the lowest first, and where it ends."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
