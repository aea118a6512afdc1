"""The kind `kafka`: the records of topics, read by Spark's own Kafka source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.errors import InputError
from tidemill.sources.kafka.faults import explained
from tidemill.sources.kafka.words import KafkaSource
from tidemill.sources.source_kind import SourceContext, SourceKind, SourceOption

if TYPE_CHECKING:
    from tidemill.sources.kafka.source import Kafka

# With exact versions: the token provider of 4.2.0 is not in every repository, and 4.0.0 does.
JARS = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.spark:spark-avro_2.13:4.2.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)


def _open(words: KafkaSource, context: SourceContext) -> Kafka:
    from tidemill.sources.kafka.source import Kafka

    if not words.bootstrap_servers:
        expected = "--bootstrap-servers HOST:PORT, or bootstrap_servers: HOST:PORT"
        raise InputError("a kafka source has no brokers", where="source", expected=expected)
    if not (words.topics or words.pattern):
        expected = "--topics NAME, or topics: [NAME]"
        raise InputError("a kafka source has no topic", where="source", expected=expected)
    return Kafka(words, context.max_records)


KIND = SourceKind(
    "kafka",
    "records of Kafka topics: JSON, Avro, Protobuf",
    KafkaSource,
    _open,
    options=(
        SourceOption("bootstrap_servers", "The brokers of a kafka source: HOST:PORT,HOST:PORT."),
        SourceOption("topics", "The topics of a kafka source: a,b,c."),
        SourceOption("starting_offsets", "Where a new kafka lake begins: earliest or latest."),
    ),
    clock="wall",
    jars=JARS,
    explain=explained,
)
