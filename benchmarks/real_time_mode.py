"""Spark's real-time mode between a topic and a Python process: a try at slices within a second (see
docs/decisions/0082).

    one event every half second ──Kafka──► real-time mode: from_json ──foreach──► a time: t - sent

It is the mode's whole way to the point where a store would be written. The mode reads Kafka alone,
keeps a core for each partition of the source, and has no operator that groups rows. Rows come to
Python when a batch ends; five seconds is the shortest batch that Spark takes.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import sources
from freshness import EVERY, by_kafka, event
from measuring import say, temporary
from pyspark.sql import Row, SparkSession
from sources import TOPIC

from tidemill.lake.session.session import local_session

COLD, EVENTS = 10, 60
PARTITIONS = 1  # with as many as cores, nothing else would run


class Seen:
    """Writes when a record came into a file of its own."""

    def __init__(self, folder: Path):
        self.folder = folder

    def open(self, partition: int, epoch: int) -> bool:
        return True

    def process(self, row: Row) -> None:
        (self.folder / str(row.profile_id)).write_text(str(time.time()))

    def close(self, error: Exception | None) -> None:
        if error:
            raise error


def started(spark: SparkSession, address: str, folder: Path) -> Any:
    """Start the query."""
    records = spark.readStream.format("kafka").option("kafka.bootstrap.servers", address)
    records = records.option("subscribe", TOPIC).option("startingOffsets", "earliest").load()
    schema = "event_id STRING, profile_id STRING, event_timestamp TIMESTAMP"
    rows = records.selectExpr(f"from_json(CAST(value AS STRING), '{schema}') AS e").select("e.*")
    writer = rows.writeStream.foreach(Seen(folder / "seen")).outputMode("update")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(realTime="5 seconds").start()


def main() -> None:
    sources.PARTITIONS = PARTITIONS
    with temporary("real-time") as folder, by_kafka(folder) as (words, send):
        (folder / "seen").mkdir()
        address = words[words.index("--bootstrap-servers") + 1]
        query = started(local_session(driver_memory="1g"), address, folder)
        sent = {}
        for number in range(COLD + EVENTS):
            sent[f"p{number}"] = time.time()
            send(number, event(number))
            time.sleep(EVERY)
        time.sleep(10)
        if query.exception():
            say(str(query.exception())[:500])
        query.stop()
        seen = {path.name: float(path.read_text()) for path in (folder / "seen").iterdir()}
    found = [seen[key] - at for key, at in list(sent.items())[COLD:] if key in seen]
    say(f"{len(found)} of {EVENTS} events came, {PARTITIONS} partitions")
    if found:
        cuts = statistics.quantiles(found, n=100)
        say(", ".join(f"p{at} {cuts[at - 1]:.3f} s" for at in (50, 95, 99)))


if __name__ == "__main__":
    main()
