"""Schemas that the registry gets while a stream goes on: asked for when a record names one."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

import schema_registry
from schema_registry import Registry
from tidemill.errors import SourceError
from tidemill.pipeline import failures
from tidemill.sources.kafka import avro, late_schemas, payload
from tidemill.sources.kafka import schema_registry as asking
from tidemill.sources.kafka.words import KafkaSource

FIELDS: list[tuple[str, Any, bytes]] = [
    ("yes", "boolean", b"\1"),
    ("number", "int", b"\x03"),  # -2
    ("long", "long", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1"),  # 2 ** 63 - 1
    ("single", "float", struct.pack("<f", 0.1)),
    ("double", "double", struct.pack("<d", 1e300)),
    ("infinite", "double", struct.pack("<d", float("inf"))),
    ("raw", "bytes", b"\4\0\xff"),
    ("text", "string", b'\x0aa\xc3\xa9"\\'),
    ("broken", "string", b"\4\xffx"),
    ("side", {"type": "enum", "name": "Side", "symbols": ["left", "right"]}, b"\2"),
    ("again", "Side", b"\0"),
    ("hash", {"type": "fixed", "name": "Hash", "size": 2}, b"ab"),
    ("list", {"type": "array", "items": ["null", "long"]}, b"\4\0\2\2\0"),
    ("sized", {"type": "array", "items": "long"}, b"\1\2\2\0"),
    ("map", {"type": "map", "values": ["null", "string"]}, b"\4\2k\0\2l\2\2v\0"),
    ("absent", ["null", "string"], b"\0"),
    ("wide", ["int", "long"], b"\2\x0a"),
    ("mixed", ["null", "string", "long"], b"\4\x0a"),
    ("day", {"type": "int", "logicalType": "date"}, b"\x02"),
    ("at", {"type": "long", "logicalType": "timestamp-millis"}, b"\xd0\x0f"),
    ("micros", {"type": "long", "logicalType": "timestamp-micros"}, b"\x01"),
    ("local", {"type": "long", "logicalType": "local-timestamp-micros"}, b"\x02"),
    (
        "price",
        {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2},
        b"\4\xff\x38",
    ),
    (
        "inner",
        {"type": "record", "name": "In", "fields": [{"name": "x", "type": ["null", "int"]}]},
        b"\0",
    ),
]
BODY = b"".join(data for _, _, data in FIELDS)
SAID = {
    "yes": True,
    "number": -2,
    "long": 2**63 - 1,
    "single": 0.1,
    "double": 1e300,
    "infinite": "Infinity",
    "raw": "AP8=",
    "text": 'aé"\\',
    "broken": "\ufffdx",
    "side": "right",
    "again": "left",
    "hash": "YWI=",
    "list": [None, 1],
    "sized": [1],
    "map": {"k": None, "l": "v"},
    "wide": 5,
    "mixed": {"member1": 5},
    "day": "1970-01-02",
    "at": "1970-01-01T00:00:01.000000Z",
    "micros": "1969-12-31T23:59:59.999999Z",
    "local": "1970-01-01T00:00:00.000001Z",
    "price": -2.0,
    "inner": {},
}


def schema_of(fields: Sequence[tuple[str, Any, bytes]] = FIELDS) -> str:
    declared = [{"name": name, "type": type_} for name, type_, _ in fields]
    return json.dumps({"type": "record", "name": "All", "namespace": "shop", "fields": declared})


def headed(number: int, body: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + body


@pytest.fixture
def registry() -> Iterator[Registry]:
    with schema_registry.serving() as serving:
        serving.subjects["all-value"] = [(7, schema_of())]
        yield serving


def words_of(registry: Registry) -> KafkaSource:
    schema = {"registry": registry.url}
    return KafkaSource(
        kind="kafka",
        bootstrap_servers="h:1",
        topics=["all"],
        payload="avro",
        schema=schema,
        timeout="2s",
    )


def test_a_record_is_decoded_as_from_avro_decodes_it() -> None:
    read = avro.decoder(schema_of())(BODY)
    assert json.loads(read or "") == SAID
    assert '"price":-2.00' in (read or "")
    assert '"single":0.1' in (read or "")


@pytest.mark.parametrize("body", [b"", BODY[:-1], b"\1" * 8, b"\xff" * 40])
def test_bytes_that_are_no_such_record(body: bytes) -> None:
    assert avro.decoder(schema_of())(body) is None


def test_a_list_that_claims_more_items_than_there_are_bytes() -> None:
    fields = [("list", {"type": "array", "items": "null"}, b"")]
    assert avro.decoder(schema_of(fields))(b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f") is None


@pytest.mark.parametrize("text", ["[]x", '{"type": "record"}', '"Nowhere"', "7"])
def test_a_text_that_is_no_schema(text: str) -> None:
    with pytest.raises(ValueError):
        avro.decoder(text)


@pytest.mark.kafka
def test_a_schema_that_comes_while_the_stream_goes_on(
    spark: SparkSession, registry: Registry
) -> None:
    """The frame is made when the registry has one schema; its batches see what comes later, each
    record the same by `from_avro` (7) and by the late schema (9)."""
    records = [headed(n, BODY) for n in (7, 9, 11)] + [headed(9, b"\1"), b"\0\0", b"{}"]
    records.append(headed(12, BODY))
    values = spark.createDataFrame(
        [(n, one) for n, one in enumerate(records)], "n int, value binary"
    )
    rows = values.where("n < 6").select("n", payload.of(words_of(registry)).alias("read"))
    unknown = values.where("n = 6").select(payload.of(words_of(registry)).alias("read"))
    registry.subjects["all-value"].append((9, schema_of()))
    known, late, *rest = (row.read for row in rows.orderBy("n").collect())
    assert json.loads(known) == json.loads(late) == SAID
    assert all(text.startswith("base64:") for text in rest)

    registry.broken = True
    with pytest.raises(Exception) as failed:
        unknown.collect()
    error = failures.explained(failed.value, "land")
    assert isinstance(error, SourceError)
    assert error.message == "the schema registry answers 500"


def test_a_registry_is_asked_once_for_an_id_that_it_has(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode = late_schemas.decoder(asking.Registry(registry.url, {}, 2.0))
    assert [decode(headed(8, BODY)) for _ in range(3)] == [None] * 3
    registry.subjects["all-value"].append((8, schema_of()))
    assert decode(headed(8, BODY)) is None
    monkeypatch.setattr(late_schemas, "ASK_AGAIN", 0.0)
    assert all(decode(headed(8, BODY)) for _ in range(3))
    assert registry.asked == ["/schemas/ids/8"] * 2
    assert decode(None) is None
