"""The words of a Kafka source, and of a Kafka sink, in a pipeline's file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from tidemill.features.types import Duration, Identifier
from tidemill.sources.kafka.secrets import Secret
from tidemill.sources.source_kind import SourceWords, Words


def _listed(said: Any) -> Any:
    """Return the topics of `a, b` as a list: so the command line has them."""
    return (
        [one.strip() for one in said.split(",") if one.strip()] if isinstance(said, str) else said
    )


def _offsets(said: Any) -> Any:
    """Return the offsets of a JSON text as a mapping."""
    return json.loads(said) if isinstance(said, str) and said.startswith("{") else said


Offsets = Mapping[str, Mapping[str, int]]


class KafkaSecurity(Words):
    """How to log in to the brokers. Passwords are named, `${env:NAME}`, and never printed."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    username: str | None = None
    password: Secret | None = None
    truststore: str | None = None
    truststore_password: Secret | None = None
    keystore: str | None = None
    keystore_password: Secret | None = None

    @model_validator(mode="after")
    def _check(self) -> KafkaSecurity:
        if self.protocol.startswith("SASL") and not (self.username and self.password):
            raise ValueError(f"{self.protocol} takes a username and a password")
        return self


class PayloadSchema(Words):
    """What the bytes of a record mean: a file, or a subject of a schema registry.

    `wire: confluent` says that five bytes, which name the schema, stand before a record's own; by
    default so it is with a registry.
    """

    file: str | None = None
    message: str | None = None
    registry: str | None = None
    subject: str | None = None
    username: str | None = None
    password: Secret | None = None
    wire: Literal["confluent", "plain"] | None = None

    @model_validator(mode="after")
    def _check(self) -> PayloadSchema:
        if (self.file is None) == (self.registry is None):
            raise ValueError("a schema is a file or a registry's: one of the two")
        return self

    @property
    def is_confluent(self) -> bool:
        """Whether a record names its schema in its first five bytes."""
        return (self.wire or ("confluent" if self.registry else "plain")) == "confluent"


class KafkaSource(SourceWords):
    """The records of Kafka topics: JSON, or Avro and Protobuf, which become JSON.

    `key_as` and `headers_as` name the fields in which a record's key and headers come to its event.
    Without `fail_on_data_loss` records that the brokers no longer have are passed over.
    """

    kind: Literal["kafka"]
    bootstrap_servers: str | None = None
    topics: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    pattern: str | None = None
    starting_offsets: Annotated[
        Literal["earliest", "latest"] | Offsets, BeforeValidator(_offsets)
    ] = "earliest"
    payload: Literal["json", "avro", "protobuf"] = "json"
    payload_schema: PayloadSchema | None = Field(default=None, alias="schema")
    key_as: Identifier | None = None
    headers_as: Identifier | None = None
    security: KafkaSecurity = KafkaSecurity()
    min_partitions: int | None = Field(default=None, ge=1)
    fail_on_data_loss: bool = True
    timeout: Duration = "30s"

    @model_validator(mode="after")
    def _check(self) -> KafkaSource:
        if self.topics and self.pattern:
            raise ValueError("topics and a pattern are two things: one of them")
        schema = self.payload_schema
        if (self.payload == "json") != (schema is None):
            raise ValueError(f"payload {self.payload} takes {'no' if schema else 'a'} schema")
        if schema and self.payload == "protobuf" and not (schema.file and schema.message):
            raise ValueError("protobuf takes the file of a descriptor set, and its message")
        if schema and schema.registry and self.pattern and not schema.subject:
            raise ValueError("a pattern of topics takes the registry's subject")
        return self


class KafkaSink(Words):
    """A topic that gets what changes in gold; with several views it has `{view}` in its name.

    The brokers and how to log in are named as those of a source are.
    """

    bootstrap_servers: str
    topic: str
    security: KafkaSecurity = KafkaSecurity()
    timeout: Duration = "30s"

    def topic_of(self, view: str) -> str:
        """Return the topic of a view."""
        return self.topic.replace("{view}", view)
