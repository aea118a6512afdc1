"""Avro and Protobuf on the wire, with and without a registry; what cannot be read is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from pyspark.sql import Row, SparkSession

import oracle
import runs
import schema_registry
from brokers import Broker
from command_line import call
from lakes import Event, at
from schema_registry import Registry
from tidemill.errors import InputError, SourceError
from tidemill.sources.kafka import payload, protobuf
from tidemill.sources.kafka.words import KafkaSource
from topics import declare, of_topic, source_of

TEXTS = ("event_id", "profile_id", "gti", "event_type")
FIRST: list[dict[str, Any]] = [
    *({"name": name, "type": "string"} for name in TEXTS),
    {"name": "event_timestamp", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]
LATER = [*FIRST, {"name": "device", "type": ["null", "string"], "default": None}]


def avro_schema(fields: list[dict[str, Any]]) -> str:
    return json.dumps({"type": "record", "name": "Play", "fields": fields})


def zigzag(number: int) -> bytes:
    number, out = (number << 1) ^ (number >> 63), bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def avro(event: Event, device: str | None = "") -> bytes:
    """An event by FIRST; by LATER with a device, or None. By hand: the oracle of from_avro."""
    *texts, time = event
    said = b"".join(zigzag(len(str(text))) + str(text).encode() for text in texts)
    said += zigzag(round(time.timestamp() * 1000))
    if device == "":
        return said
    return said + (b"\0" if device is None else b"\2" + zigzag(len(device)) + device.encode())


def headed(number: int, body: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + body


@pytest.fixture
def registry() -> Iterator[Registry]:
    with schema_registry.serving() as serving:
        yield serving


@pytest.mark.kafka
@pytest.mark.stream
def test_avro_by_the_schemas_of_a_registry(
    spark: SparkSession, broker: Broker, registry: Registry, tmp_path: Path
) -> None:
    """Two versions of a schema in one topic; a record of a third, which the registry gets late, is
    kept and refused, and a replay counts it, once."""
    topic, root = broker.create("avro"), tmp_path / "lake"
    events: list[Event] = [(f"e{n}", "p", "g", "view", at(f"10:0{n}")) for n in range(4)]
    registry.subjects["avro-value"] = [(7, avro_schema(FIRST)), (9, avro_schema(LATER))]
    broker.send(
        topic,
        [
            headed(7, avro(events[0])),
            headed(9, avro(events[1], "tv")),
            headed(9, avro(events[2], None)),
            headed(11, avro(events[3])),
            headed(7, b"\x08"),
            b"{}",
        ],
    )
    words = {"payload": "avro", "schema": {"registry": registry.url}}
    file = declare(tmp_path, source_of(broker, topic, **words))
    run = ("run", file, "--once", "--root", root, "--json")
    first = call(*run)
    assert first.code == 0, first
    assert (first.json["accepted"], first.json["quarantined"]) == (3, 3)
    lake = runs.reading(spark, root)
    rows = lake.table("bronze").orderBy("offset").collect()
    assert json.loads(rows[1].raw_payload)["device"] == "tv"
    assert rows[3].raw_payload.startswith("base64:AAAAAAs")
    assert rows[5].raw_payload == "base64:e30="
    refused = lake.table("quarantine").orderBy("offset").collect()
    assert [(row.offset, row.reasons) for row in refused] == [(n, ["malformed"]) for n in (3, 4, 5)]

    registry.subjects["avro-value"].append((11, avro_schema(FIRST)))
    replay = (
        "replay",
        file,
        "--topic",
        topic,
        "--from",
        "0",
        "--to",
        "6",
        "--root",
        root,
        "--json",
    )
    counts = [call(*replay).json for _ in range(2)]
    assert [one["repaired"] for one in counts] == [1, 0]
    assert call(*run).json["accepted"] == 1
    assert runs.reading(spark, root).gold() == oracle.features(events, oracle.as_of(events))


def words_of(registry: Registry, **more: Any) -> KafkaSource:
    schema = {"registry": registry.url, **more}
    return KafkaSource(
        kind="kafka", bootstrap_servers="h:1", topics=["avro"], payload="avro", schema=schema
    )


def test_a_registry_that_answers_500(registry: Registry) -> None:
    registry.broken = True
    with pytest.raises(SourceError) as failed:
        payload.check(words_of(registry))
    assert (failed.value.exit_code, failed.value.message) == (3, "the schema registry answers 500")
    assert str(failed.value.where).startswith(registry.url)


def test_a_subject_that_the_registry_does_not_know(registry: Registry) -> None:
    with pytest.raises(InputError, match="no such subject"):
        payload.check(words_of(registry, subject="nobody"))


def test_no_registry_there() -> None:
    with pytest.raises(SourceError, match="does not answer"):
        payload.check(words_of(Registry("http://127.0.0.1:1")))


def descriptors() -> bytes:
    """What `protoc --descriptor_set_out` writes of a message Play with the shipped fields."""
    file = descriptor_pb2.FileDescriptorProto(name="play.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Play")
    types = descriptor_pb2.FieldDescriptorProto
    fields = [*((name, types.TYPE_STRING) for name in TEXTS), ("event_timestamp", types.TYPE_INT64)]
    for number, (name, type_) in enumerate(fields, 1):
        message.field.add(name=name, number=number, type=type_, label=types.LABEL_OPTIONAL)
    return descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()


def protobuf_of(event: Event) -> bytes:
    *texts, time = event
    message = protobuf.message_class(descriptors(), "shop.Play")()
    for name, text in zip(TEXTS, texts, strict=True):
        setattr(message, name, text)
    message.event_timestamp = round(time.timestamp() * 1000)
    said: bytes = message.SerializeToString()
    return said


@pytest.mark.kafka
@pytest.mark.stream
def test_protobuf_by_a_file(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    topic, root = broker.create("proto"), tmp_path / "lake"
    events: list[Event] = [(f"e{n}", "p", "g", "view", at(f"10:0{n}")) for n in range(2)]
    good = [headed(3, b"\0" + protobuf_of(event)) for event in events]
    broker.send(topic, [*good, headed(3, b"\0\xff"), b"\1"], key="k")
    path = tmp_path / "play.pb"
    path.write_bytes(descriptors())
    schema = {"file": str(path), "message": "shop.Play", "wire": "confluent"}
    runs.run_once(root, of_topic(broker, topic, payload="protobuf", schema=schema, key_as="key"))
    lake = runs.reading(spark, root)
    assert lake.gold() == oracle.features(events, oracle.as_of(events))
    rows: list[Row] = lake.table("bronze").orderBy("offset").collect()
    assert json.loads(rows[0].raw_payload)["key"] == "k"
    assert [row.raw_payload[:7] for row in rows[2:]] == ["base64:", "base64:"]


def test_protobuf_values_become_json() -> None:
    decode = protobuf.decoder(descriptors(), "shop.Play", confluent=True)
    body = protobuf_of(("e", "p", "", "view", datetime.fromtimestamp(1, at("1:00").tzinfo)))
    read = json.loads(decode(headed(3, b"\x02\x00" + body)) or "")
    assert (read["gti"], read["event_timestamp"]) == ("", 1000)
    assert decode(None) is None
    assert decode(headed(3, b"\0\xff")) is None
    assert decode(body) is None


@pytest.mark.parametrize(("made", "name"), [(b"\xff", "shop.Play"), (None, "shop.Pley")])
def test_descriptors_without_the_message(made: bytes | None, name: str) -> None:
    with pytest.raises(InputError, match="has no message"):
        protobuf.message_class(descriptors() if made is None else made, name)
