"""The options of Spark's Kafka reader, from the words of a source, and writer, from a sink's."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from tidemill.features.windows import duration
from tidemill.sources.kafka.secrets import resolved
from tidemill.sources.kafka.words import KafkaSecurity, KafkaSink, KafkaSource

_LOGIN = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def connecting(words: KafkaSource) -> dict[str, str]:
    """Return what a reader needs to reach the brokers in time; UsageError for a secret that is not
    set."""
    limit = milliseconds(words)
    return {
        "kafka.bootstrap.servers": words.bootstrap_servers or "",
        # One answer gets half of the time, so that a whole call can fail within it.
        "kafka.request.timeout.ms": str(limit // 2),
        "kafka.default.api.timeout.ms": str(limit),
        "kafkaConsumer.pollTimeoutMs": str(limit),
        "fetchOffset.numRetries": "1",
        "failOnDataLoss": str(words.fail_on_data_loss).lower(),
        "includeHeaders": str(words.headers_as is not None).lower(),
        **_security(words.security),
    }


def writing(words: KafkaSink, topic: str) -> dict[str, str]:
    """Return what a batch is written to a topic with; UsageError for a secret that is not set.

    Every replica has a record before it counts as written, and a record that is sent again by the
    client is there once.
    """
    limit = milliseconds(words)
    return {
        "kafka.bootstrap.servers": words.bootstrap_servers,
        "topic": topic,
        "kafka.acks": "all",
        "kafka.enable.idempotence": "true",
        "kafka.max.block.ms": str(limit),
        "kafka.request.timeout.ms": str(limit // 2),
        "kafka.delivery.timeout.ms": str(limit),
        **_security(words.security),
    }


def milliseconds(words: KafkaSource | KafkaSink) -> int:
    """Return how long the brokers may take to answer."""
    return int(duration(words.timeout).total_seconds() * 1000)


def streaming(words: KafkaSource, max_records: int | None) -> dict[str, str]:
    """Return what a stream of the topics is read with."""
    start = words.starting_offsets
    subscribed = {"subscribePattern": words.pattern} if words.pattern else _topics(words)
    limits = {"maxOffsetsPerTrigger": max_records, "minPartitions": words.min_partitions}
    return {
        **connecting(words),
        **subscribed,
        "startingOffsets": start if isinstance(start, str) else json.dumps(plain(start)),
        **{name: str(limit) for name, limit in limits.items() if limit},
    }


def plain(offsets: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Return offsets by topic and partition as JSON takes them."""
    return {topic: dict(partitions) for topic, partitions in offsets.items()}


def _topics(words: KafkaSource) -> dict[str, str]:
    return {"subscribe": ",".join(words.topics)}


def _security(security: KafkaSecurity) -> dict[str, str]:
    said = {
        "security.protocol": security.protocol,
        "ssl.truststore.location": security.truststore,
        "ssl.keystore.location": security.keystore,
    }
    stores = ("truststore_password", "keystore_password")
    for word in stores:
        if secret := getattr(security, word):
            said[f"ssl.{word.replace('_', '.')}"] = resolved(secret, f"security.{word}")
    if security.protocol.startswith("SASL"):
        said |= {"sasl.mechanism": security.mechanism, "sasl.jaas.config": _login(security)}
    return {f"kafka.{name}": text for name, text in said.items() if text}


def _login(security: KafkaSecurity) -> str:
    module = _LOGIN[security.mechanism]
    if "DATABRICKS_RUNTIME_VERSION" in os.environ:
        module = f"kafkashaded.{module}"
    password = resolved(security.password or "", "security.password")
    return (
        f"{module} required username={_quoted(security.username or '')} "
        f"password={_quoted(password)};"
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
