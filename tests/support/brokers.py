"""A real Kafka broker, started by the project's own script, and what tests do to its topics."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
PASSWORD = "s3cret-of-the-test"
Record = tuple[str | bytes | None, ...]  # value, then key


@dataclass(frozen=True)
class Broker:
    """A broker that runs, and a client of it in the session's JVM."""

    spark: SparkSession
    port: int
    sasl_port: int
    tls_port: int
    folder: Path  # with the certificate: tls.p12, trust.p12

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def _jvm(self) -> Any:
        return self.spark.sparkContext._jvm

    def _properties(self, **more: str) -> Any:
        properties = self._jvm.java.util.Properties()
        for name, value in {"bootstrap_servers": self.address, **more}.items():
            properties.put(name.replace("_", "."), value)
        return properties

    @contextmanager
    def _admin(self) -> Iterator[Any]:
        admin = self._jvm.org.apache.kafka.clients.admin.Admin.create(self._properties())
        try:
            yield admin
        finally:
            admin.close()

    def _list(self, *items: object) -> Any:
        made = self._jvm.java.util.ArrayList()
        for item in items:
            made.add(item)
        return made

    def create(self, topic: str, partitions: int = 1, **settings: str) -> str:
        """Make a topic."""
        new = self._jvm.org.apache.kafka.clients.admin.NewTopic(
            topic, self._jvm.java.util.Optional.of(partitions), self._jvm.java.util.Optional.empty()
        )
        configs = self._jvm.java.util.HashMap()
        for name, value in settings.items():
            configs.put(name.replace("_", "."), value)
        with self._admin() as admin:
            admin.createTopics(self._list(new.configs(configs))).all().get()
        return topic

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions."""
        more = self._jvm.java.util.HashMap()
        more.put(
            topic, self._jvm.org.apache.kafka.clients.admin.NewPartitions.increaseTo(partitions)
        )
        with self._admin() as admin:
            admin.createPartitions(more).all().get()

    def deny(self, topic: str, user: str) -> None:
        """Deny a user all of a topic."""
        jvm = self._jvm.org.apache.kafka.common
        acl, kinds = jvm.acl, jvm.resource
        literal = kinds.PatternType.LITERAL
        what = kinds.ResourcePattern(kinds.ResourceType.TOPIC, topic, literal)
        rule = acl.AccessControlEntry(
            f"User:{user}", "*", acl.AclOperation.ALL, acl.AclPermissionType.DENY
        )
        with self._admin() as admin:
            admin.createAcls(self._list(acl.AclBinding(what, rule))).all().get()

    def expire(self, topic: str, before: int, partition: int = 0) -> None:
        """Delete the records of a partition before an offset, as retention does."""
        which = self._jvm.org.apache.kafka.common.TopicPartition(topic, partition)
        deleted = self._jvm.java.util.HashMap()
        deleted.put(which, self._until(before))
        with self._admin() as admin:
            admin.deleteRecords(deleted).all().get()

    def _until(self, offset: int) -> Any:
        """RecordsToDelete.beforeOffset, by reflection: a getter of the same name hides it."""
        java, new_array = self._jvm.java.lang, self.spark.sparkContext._gateway.new_array
        of = java.Class.forName("org.apache.kafka.clients.admin.RecordsToDelete")
        types, values = new_array(java.Class, 1), new_array(java.Object, 1)
        types[0], values[0] = java.Long.TYPE, offset
        return of.getMethod("beforeOffset", types).invoke(None, values)

    def send(
        self,
        topic: str,
        values: Iterable[str | bytes | None],
        *,
        partition: int | None = None,
        key: str | None = None,
        headers: dict[str, bytes] | None = None,
    ) -> None:
        """Write records, waiting until the broker has them."""
        plain = "org.apache.kafka.common.serialization.ByteArraySerializer"
        clients = self._jvm.org.apache.kafka.clients.producer
        settings = {"key_serializer": plain, "value_serializer": plain}
        producer = clients.KafkaProducer(
            self._properties(**settings, max_request_size="16000000", buffer_memory="32000000")
        )
        header = self._jvm.org.apache.kafka.common.header.internals.RecordHeader
        named = [header(name, bytearray(value)) for name, value in (headers or {}).items()]
        for value in values:
            body = value.encode() if isinstance(value, str) else value
            producer.send(
                clients.ProducerRecord(
                    topic,
                    partition,
                    None,
                    None if key is None else bytearray(key.encode()),
                    None if body is None else bytearray(body),
                    self._list(*named),
                )
            )
        producer.flush()
        producer.close()


@contextmanager
def running(spark: SparkSession, folder: Path) -> Iterator[Broker]:
    """Start a broker on free ports, with `scripts/kafka.py`, and stop it in the end."""
    sys.path.insert(0, str(ROOT / "scripts"))
    from kafka import free_port

    port, sasl_port, tls_port = free_port(), free_port(), free_port()
    words = ["--port", port, "--sasl-port", sasl_port, "--tls-port", tls_port, "--folder", folder]
    process = subprocess.Popen(
        [sys.executable, ROOT / "scripts" / "kafka.py", *map(str, words)],
        stdout=subprocess.PIPE,
        env={**os.environ, "TIDEMILL_KAFKA_PASSWORD": PASSWORD},
    )
    assert process.stdout
    assert process.stdout.readline().startswith(b"ready"), (folder / "broker.log").read_text()
    try:
        yield Broker(spark, port, sasl_port, tls_port, folder)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
