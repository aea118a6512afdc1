"""Avro records as JSON, by a schema that came after the stream began; as `to_json(from_avro)` does.

`from_avro` takes its schema when a query starts. What a record names later is read here, by Avro's
specification (1.12, "Binary Encoding") and with Spark's types: a union of several types is an
object of `member0`, `member1`, ..., bytes are base64, and a field without a value is left out.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any

from tidemill.sources.kafka import avro_values
from tidemill.sources.kafka.avro_values import Number, Reader

_MEMBERS_OF_ONE = ({"int", "long"}, {"float", "double"})


def decoder(schema: str) -> Callable[[bytes], str | None]:
    """Return what makes JSON of a record's bytes, None of those that are no such record; ValueError
    for a schema that is none."""
    try:
        read = _reader(json.loads(schema), {})
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no Avro schema: {error!r}") from error

    def decode(body: bytes) -> str | None:
        try:
            text = _json(read(BytesIO(body)))
        except (EOFError, ValueError, OverflowError, IndexError, RecursionError, MemoryError):
            return None
        return None if text == "{}" else text  # what Spark makes of bytes that it cannot read

    return decode


def _json(value: Any) -> str:
    """Return a value as JSON. Written here as `json` has no number of a given text."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_json(str(key))}:{_json(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    return value.text if isinstance(value, Number) else json.dumps(value, ensure_ascii=False)


def _reader(schema: Any, named: dict[str, Reader], space: str = "") -> Reader:
    """Return what reads a value of this type; `named` are the types that have a name so far."""
    if isinstance(schema, list):
        return _union(schema, named, space)
    if isinstance(schema, str):
        return (
            avro_values.PLAIN[schema]
            if schema in avro_values.PLAIN
            else _by_name(schema, named, space)
        )
    kind = schema["type"]
    if not isinstance(kind, str):
        return _reader(kind, named, space)
    if kind in ("record", "error", "enum", "fixed"):
        return _of_name(kind, schema, named, space)
    if kind == "array":
        return _blocks(_reader(schema["items"], named, space), list)
    if kind == "map":
        item = _reader(schema["values"], named, space)
        return _blocks(lambda data: (avro_values.text(data), item(data)), dict)
    return _logical(schema, _reader(kind, named, space))


def _by_name(name: str, named: Mapping[str, Reader], space: str) -> Reader:
    full = _full_name(name, space)
    if full not in named:
        raise KeyError(name)
    return lambda data: named[full](data)  # a record may hold its own kind


def _full_name(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _of_name(kind: str, schema: Any, named: dict[str, Reader], space: str) -> Reader:
    full = _full_name(schema["name"], schema.get("namespace", space))
    if kind == "enum":
        symbols = schema["symbols"]
        named[full] = lambda data: symbols[avro_values.index(data, len(symbols))]
    elif kind == "fixed":
        size = int(schema["size"])
        named[full] = _logical(schema, lambda data: avro_values.base64_bytes(data, size))
    else:
        named[full] = lambda data: {}
        inner = full.rpartition(".")[0]
        fields = [(one["name"], _reader(one["type"], named, inner)) for one in schema["fields"]]

        def record(data: BytesIO) -> dict[str, Any]:
            read = [(name, of(data)) for name, of in fields]
            return {name: value for name, value in read if value is not None}

        named[full] = record
    return named[full]


def _union(schemas: list[Any], named: dict[str, Reader], space: str) -> Reader:
    readers = [None if one == "null" else _reader(one, named, space) for one in schemas]
    kinds = [one for one in schemas if one != "null"]
    plain = [one for one in kinds if isinstance(one, str)]
    is_one = len(kinds) <= 1 or (len(plain) == len(kinds) == 2 and set(plain) in _MEMBERS_OF_ONE)
    members = [n - schemas[:n].count("null") for n in range(len(schemas))]

    def read(data: BytesIO) -> Any:
        at = avro_values.index(data, len(readers))
        of = readers[at]
        if of is None:
            return None
        return of(data) if is_one else {f"member{members[at]}": of(data)}

    return read


def _blocks(item: Reader, whole: Callable[[list[Any]], Any]) -> Reader:
    def read(data: BytesIO) -> Any:
        items: list[Any] = []
        while count := avro_values.whole_number(data):
            if count < 0:
                count, _ = -count, avro_values.whole_number(data)
            if count > len(data.getbuffer()):
                raise ValueError("more items than bytes")
            items.extend(item(data) for _ in range(count))
        return whole(items)

    return read


def _logical(schema: Any, plain: Reader) -> Reader:
    """Return the reader of a type that says what its number or bytes mean."""
    said = schema.get("logicalType")
    if said == "decimal":
        scale = int(schema.get("scale", 0))
        return lambda data: avro_values.decimal(base64.b64decode(plain(data)), scale)
    known = avro_values.TIMES.get(said)
    return (lambda data: known(plain(data))) if known else plain
