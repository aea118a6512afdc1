"""A Kafka record's bytes as bronze keeps them: JSON text, or in base64 what cannot be read as such.

    value ──json──────► text, where it is UTF-8
          ──avro──────► from_avro, by the schema that the record names or the file's ──► to_json
                        of an id that came since the start: late_schemas
          ──protobuf──► the message that the file describes ──► JSON
    what none of them reads ──► base64:<the bytes>, which clean refuses as malformed

No record stops the others, and no byte is lost. A tombstone's payload is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidemill.errors import InputError
from tidemill.sources import UNDECODED
from tidemill.sources.kafka import late_schemas, protobuf, schema_registry
from tidemill.sources.kafka.words import KafkaSource, PayloadSchema

HEADER = 5  # bytes of Confluent's wire format: a zero, and the schema's id
_TIMES = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'",
}


def of(words: KafkaSource) -> Column:
    """Return the payload of a row of Spark's Kafka source; asks a registry for its schemas."""
    value = F.col("value")
    read = _with_fields(words, _READ[words.payload](words))
    return F.coalesce(read, F.concat(F.lit(UNDECODED), F.base64(value)))


def check(words: KafkaSource) -> None:
    """Raise InputError or SourceError where the schema of the payload cannot be had."""
    if words.payload == "avro":
        avro_schemas(words)
    elif words.payload == "protobuf":
        schema = _schema(words)
        protobuf.message_class(_bytes(schema), schema.message or "")


def _schema(words: KafkaSource) -> PayloadSchema:
    assert words.payload_schema is not None  # of any payload but JSON
    return words.payload_schema


def _bytes(schema: PayloadSchema) -> bytes:
    path = Path(schema.file or "")
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"the schema cannot be read: {error.strerror}", where=str(path), expected="its file"
        ) from error


def avro_schemas(words: KafkaSource) -> Mapping[int | None, str]:
    """Return the Avro schemas by the id that records name; by None the one of every record."""
    schema = _schema(words)
    if schema.file:
        return {None: _bytes(schema).decode("utf-8")}
    registry = schema_registry.of(schema, words.timeout)
    return dict(schema_registry.of_subjects(registry, schema, words.topics))


def _avro(words: KafkaSource) -> Column:
    from pyspark.sql.avro.functions import from_avro

    confluent = _schema(words).is_confluent
    value = F.col("value")
    body = F.substring(value, HEADER + 1, 2**31 - 1) if confluent else value
    named = F.conv(F.hex(F.substring(value, 2, 4)), 16, 10).cast("bigint")
    headed = (F.substring(value, 1, 1) == F.lit(b"\x00")) & (F.length(value) >= HEADER)

    def decoded(schema: str) -> Column:
        # Of bytes that it cannot read from_avro makes a row of nulls, which is {} as JSON.
        text = F.to_json(from_avro(body, schema, {"mode": "PERMISSIVE"}), _TIMES)
        return F.nullif(text, F.lit("{}"))

    schemas = avro_schemas(words)
    cases = [
        F.when(F.lit(True) if number is None else named == number, decoded(schema))
        for number, schema in schemas.items()
    ]
    if _schema(words).registry:
        decode = late_schemas.decoder(schema_registry.of(_schema(words), words.timeout))
        late = F.when(headed & ~named.isin(*schemas), value)  # null of any other
        cases.append(F.udf(decode, "string")(late))
    read = F.coalesce(*cases)
    return F.when(headed, read) if confluent else read


def _protobuf(words: KafkaSource) -> Column:
    schema = _schema(words)
    decode = protobuf.decoder(_bytes(schema), schema.message or "", confluent=schema.is_confluent)
    return F.udf(decode, "string")(F.col("value"))


def _json(words: KafkaSource) -> Column:
    return F.try_validate_utf8(F.col("value").cast("string"))


_READ: Mapping[str, Callable[[KafkaSource], Column]] = {
    "json": _json,
    "avro": _avro,
    "protobuf": _protobuf,
}


def _with_fields(words: KafkaSource, read: Column) -> Column:
    """Return an object with the record's key and headers as its first fields, where they are
    asked for."""
    named = [
        *([_text(F.col("key")).alias(words.key_as)] if words.key_as else []),
        *([_headers().alias(words.headers_as)] if words.headers_as else []),
    ]
    if not named:
        return read
    fields, rest = F.to_json(F.struct(*named)), F.ltrim(read)
    inner = F.substring(rest, F.lit(2), F.length(rest))
    comma = F.when(F.ltrim(inner).startswith("}"), F.lit("")).otherwise(F.lit(","))
    joined = F.concat(F.rtrim(fields, F.lit("}")), comma, inner)
    return F.when(rest.startswith("{") & (fields != "{}"), joined).otherwise(read)


def _headers() -> Column:
    return F.transform(
        "headers",
        lambda one: F.struct(one["key"].alias("key"), _text(one["value"]).alias("value")),
    )


def _text(value: Column) -> Column:
    text = F.try_validate_utf8(value.cast("string"))
    return F.coalesce(text, F.concat(F.lit(UNDECODED), F.base64(value)))
