"""Kafka topics as a source. A record's id is its position: `<topic>/<partition>/<offset>`."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.errors import SourceError
from tidemill.sources.kafka import payload, reader_options
from tidemill.sources.kafka.words import KafkaSink, KafkaSource

A_LONG_TIME = 10**9  # seconds: no record is that far ahead
Range = tuple[int, int]
"""Offsets of a partition: from the first one to before the second."""


@dataclass(frozen=True)
class Kafka:
    """The records of the topics that the words name, `max_records` in a batch at most."""

    words: KafkaSource
    max_records: int | None = None

    def identity(self) -> dict[str, str | int]:
        """Return kind and topics: the brokers may move, another topic is another source."""
        if self.words.pattern:
            return {"kind": "kafka", "pattern": self.words.pattern}
        return {"kind": "kafka", "topics": ",".join(sorted(self.words.topics))}

    def check(self, *, once: bool) -> None:
        """Raise UsageError for a secret that is not set, InputError for a schema that cannot be
        read, SourceError where no broker or registry answers."""
        reader_options.connecting(self.words)
        payload.check(self.words)
        check_reachable(self.words, "source")

    def check_new(self, since: datetime) -> None:
        """Accept: the stream itself fails for what is wrong."""

    def ready(self) -> bool:
        """Return True: an empty topic is read too."""
        return True

    def stream(self, spark: SparkSession) -> DataFrame:
        """Return the topics' records as a stream."""
        options = reader_options.streaming(self.words, self.max_records)
        return self._records(spark.readStream.format("kafka").options(**options).load())

    def between(self, spark: SparkSession, topic: str, ranges: Mapping[int, Range]) -> DataFrame:
        """Return the records of a topic in these ranges of offsets, by partition."""
        start, end = (
            json.dumps({topic: {str(part): pair[at] for part, pair in ranges.items()}})
            for at in (0, 1)
        )
        rows = spark.read.format("kafka").options(
            **reader_options.connecting(self.words),
            assign=json.dumps({topic: sorted(ranges)}),
            startingOffsets=start,
            endingOffsets=end,
        )
        return self._records(rows.load())

    def read_to(self, offset: str) -> dict[str, dict[int, int]]:
        """Return, by topic and partition, the offset before which a checkpoint's text says that
        everything is read."""
        said: Mapping[str, Mapping[str, int]] = json.loads(offset)
        return {topic: {int(p): n for p, n in parts.items()} for topic, parts in said.items()}

    def probe(self, spark: SparkSession) -> str:
        """Read nothing, from the end of the topics, for which they have to exist and the login has
        to allow it; return what was asked. Spark's errors pass."""
        options = reader_options.streaming(self.words, None) | {
            "startingTimestamp": str(int((time.time() + A_LONG_TIME) * 1000)),
            "startingOffsetsByTimestampStrategy": "latest",
        }
        del options["startingOffsets"]
        spark.read.format("kafka").options(**options).load().count()
        return self.words.pattern or ", ".join(self.words.topics)

    def _records(self, rows: DataFrame) -> DataFrame:
        position = F.concat_ws("/", "topic", F.col("partition"), F.col("offset"))
        return rows.select(
            position.alias("record_id"),
            payload.of(self.words).alias("raw_payload"),
            "topic",
            "partition",
            "offset",
            F.col("timestamp").alias("source_ts"),
        )


def check_reachable(words: KafkaSource | KafkaSink, where: str) -> None:
    """Raise SourceError unless one of the brokers takes a connection in time."""
    servers = [one.strip() for one in (words.bootstrap_servers or "").split(",")]
    limit = reader_options.milliseconds(words) / 1000 / len(servers)
    whys = []
    for server in servers:
        try:
            with socket.create_connection(_address(server), timeout=limit):
                return
        except (OSError, ValueError) as error:
            whys.append(f"{server} ({error})")
    raise SourceError(
        f"no broker takes a connection: {', '.join(whys)}",
        where=f"{where}.bootstrap_servers",
        expected="HOST:PORT of a broker that runs: `make kafka` starts one here",
    )


def _address(server: str) -> tuple[str, int]:
    host, _, port = server.rpartition(":")
    return host.strip("[]"), int(port)
