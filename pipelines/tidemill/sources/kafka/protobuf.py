"""Protobuf messages as JSON, by the descriptors that `protoc --descriptor_set_out` writes.

Python's own protobuf reads them: Spark's `from_protobuf` is in a jar of its own, which is not in
every repository. Names are those of the file, enums their names, bytes base64, and whole numbers
stay numbers; a field without a value is left out where the message can tell.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tidemill.errors import InputError, SetupError

_HEADER = 5
_AS_TEXT = ("google.protobuf.Timestamp", "google.protobuf.Duration")


@lru_cache(maxsize=8)
def message_class(descriptors: bytes, name: str) -> Any:
    """Return the class of a message; InputError where the descriptors do not have it."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
        from google.protobuf.message import DecodeError
    except ImportError as error:
        message = "the package protobuf is missing: `pip install 'tidemill[kafka]'`"
        raise SetupError(message, where="source.payload") from error
    expected = "a descriptor set (`protoc --include_imports --descriptor_set_out`), and its message"
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            pool.Add(file)
        found = pool.FindMessageTypeByName(name)
    except (DecodeError, KeyError, TypeError) as error:
        raise InputError(
            f"has no message {name!r}: {error}", where="source.schema", expected=expected
        ) from error
    return message_factory.GetMessageClass(found)


def decoder(
    descriptors: bytes, name: str, *, confluent: bool
) -> Callable[[bytes | None], str | None]:
    """Return what makes JSON of a record's bytes, None of those that are no such message."""

    def decode(value: bytes | None) -> str | None:
        from google.protobuf.message import DecodeError

        if value is None:
            return None
        try:
            body = _body(bytes(value)) if confluent else bytes(value)
            message = message_class(descriptors, name).FromString(body)
        except (DecodeError, IndexError, ValueError):
            return None
        return json.dumps(_fields(message), ensure_ascii=False)

    return decode


def _body(value: bytes) -> bytes:
    """Return what follows Confluent's header: a zero, the schema's id, and the list of indexes that
    name a message in its file, zigzag varints of which a single zero is short for the first."""
    if value[0] != 0 or len(value) <= _HEADER:
        raise ValueError("no header")
    count, at = _varint(value, _HEADER)
    for _ in range(count):
        _, at = _varint(value, at)
    return value[at:]


def _varint(value: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = value[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return (number >> 1) ^ -(number & 1), at


def _fields(message: Any) -> dict[str, Any]:
    fields = message.DESCRIPTOR.fields
    there = [f for f in fields if not f.has_presence or message.HasField(f.name)]
    return {f.name: _value(f, getattr(message, f.name)) for f in there}


def _value(field: Any, value: Any) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        inner = field.message_type.fields_by_name["value"]
        return {str(key): _single(inner, value[key]) for key in value}
    if field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED:
        return [_single(field, one) for one in value]
    return _single(field, value)


def _single(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        if field.message_type.full_name in _AS_TEXT:
            return value.ToJsonString()
        return _fields(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else value
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
