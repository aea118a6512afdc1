"""What landing takes: the same records from files and from Kafka into bronze, beside Spark alone.

    files, Kafka ──land───────────────────────► <pipeline>_bronze     positions, ingested_at, ids
                 ──readStream, writeStream────► a Delta table         the columns as they are read

Both ways take turns in one session, on new checkpoints and empty tables each time, which are made
before the clock starts, in batches of the same limit; the first round is cold and not counted.
Before any time counts both tables hold the same payloads at the same positions. The broker is the
project's own, on this machine, and takes its share of the cores. With `--files N` a folder of N
files of one event is landed too: seconds of listing, and memory.
`--write` puts the tables into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuring import machine, metered, say, spread, temporary, wish, write
from pyspark.sql import DataFrame, SparkSession

from tidemill.config.pipeline_file import PipelineDefinition, load
from tidemill.config.settings import Clock, Place
from tidemill.lake.session import ivy
from tidemill.lake.session.session import local_session
from tidemill.pipeline.connection import Opening, checked_source, held_pipeline
from tidemill.pipeline.queries import ONCE
from tidemill.sources import kafka

ROOT = Path(__file__).parents[1]
TARGET = 1.3
TOPIC, PARTITIONS, FILES = "plays", 4, 8
EVENT = (
    "to_json(named_struct('event_id', CAST(id AS STRING), 'profile_id', concat('p', id % 5000), "
    "'gti', concat('g', id % 300), 'event_type', 'view', 'event_timestamp', "
    "CAST(1795500000000 + id AS BIGINT)))"
)


@dataclass(frozen=True)
class Landed:
    """One landing: seconds, and for each batch those that its source took to say what is new."""

    seconds: float
    listing: tuple[float, ...]


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """Yield the address of the project's own broker, stopped in the end."""
    sys.path.insert(0, str(ROOT / "scripts"))
    from kafka import free_port

    port = free_port()
    words = [sys.executable, ROOT / "scripts" / "kafka.py", "--port", str(port), "--folder", folder]
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise SystemExit("the broker did not start")
        yield f"127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def make_topic(spark: SparkSession, address: str) -> None:
    """Make the topic by the client in the session's JVM."""
    context: Any = spark.sparkContext
    jvm = context._jvm
    settings = jvm.java.util.Properties()
    settings.put("bootstrap.servers", address)
    admin = jvm.org.apache.kafka.clients.admin.Admin.create(settings)
    topics, none = jvm.java.util.ArrayList(), jvm.java.util.Optional.empty()
    count = jvm.java.util.Optional.of(PARTITIONS)
    topics.add(jvm.org.apache.kafka.clients.admin.NewTopic(TOPIC, count, none))
    admin.createTopics(topics).all().get()
    admin.close()


def fill(spark: SparkSession, folder: Path, address: str, events: int) -> None:
    """Write the same events into files and into the topic."""
    rows = spark.range(0, events, 1, FILES).selectExpr(f"{EVENT} AS value")
    rows.write.mode("overwrite").text(str(folder))
    for number, path in enumerate(sorted(folder.glob("part-*"))):
        path.rename(folder / f"{number}.jsonl")
    make_topic(spark, address)
    options = {"kafka.bootstrap.servers": address, "topic": TOPIC}
    rows.write.format("kafka").options(**options).save()


def sources(files: Path, address: str) -> Mapping[str, Mapping[str, object]]:
    """Return the words of each source."""
    brokers = {"bootstrap_servers": address, "topics": [TOPIC]}
    return {
        "files": {"kind": "files", "input": str(files)},
        "kafka": {"kind": "kafka", **brokers},
    }


def definition(words: Mapping[str, object], limit: int, most_files: int) -> PipelineDefinition:
    """Return the shipped pipeline over a source, with its limits of a batch."""
    limits = {"max_offsets_per_trigger": limit, "max_files_per_trigger": most_files}
    return load("engagement").overridden({"source": words, "clock": "event", **limits})


def land(spark: SparkSession, root: Path, declared: PipelineDefinition) -> Landed:
    """Land everything that is there; the tables are made before the clock starts."""
    opening = Opening(Place(root), Clock())
    source = checked_source(opening, declared, once=True)
    pipeline = held_pipeline(spark, opening, declared, source)
    pipeline.claim()
    started = time.perf_counter()
    query = pipeline.start("land", ONCE)
    query.awaitTermination()
    seconds = time.perf_counter() - started
    listing = [each.durationMs.get("latestOffset", 0) / 1000 for each in query.recentProgress]
    return Landed(seconds, tuple(listing))


def copy(spark: SparkSession, root: Path, words: Mapping[str, Any], limit: int) -> Landed:
    """Copy the same into a Delta table by Spark alone, the columns as its reader has them."""
    rows = bare_rows(spark, words, limit)
    columns = ", ".join(f"{name} {type_}" for name, type_ in rows.dtypes)
    spark.sql(f"CREATE TABLE delta.`{root / 'bare'}` ({columns}) USING delta")
    started = time.perf_counter()
    writer = rows.writeStream.format("delta")
    writer = writer.option("checkpointLocation", str(root / "checkpoint")).trigger(**ONCE)
    writer.start(str(root / "bare")).awaitTermination()
    return Landed(time.perf_counter() - started, ())


def bare_rows(spark: SparkSession, words: Mapping[str, Any], limit: int) -> DataFrame:
    """Read a source as Spark does: payload, place and time of each record."""
    if words["kind"] == "files":
        rows = spark.readStream.format("text").option("maxFilesPerTrigger", 1000)
        columns = ["value", "_metadata.file_path", "_metadata.file_modification_time"]
        return rows.load(words["input"]).selectExpr(*columns)
    rows = spark.readStream.format("kafka").options(
        subscribe=TOPIC, startingOffsets="earliest", maxOffsetsPerTrigger=limit
    )
    loaded = rows.option("kafka.bootstrap.servers", words["bootstrap_servers"]).load()
    return loaded.selectExpr(
        "CAST(value AS STRING) AS value", "topic", "partition", "offset", "timestamp"
    )


def check_equal(spark: SparkSession, root: Path, kind: str, events: int) -> None:
    """End the program unless both tables hold the same records."""
    position = ", partition, offset" if kind == "kafka" else ""
    digests = []
    for table, payload in (("lake/engagement_bronze", "raw_payload"), ("bare", "value")):
        rows = spark.read.format("delta").load(str(root / table))
        digest = f"bit_xor(xxhash64({payload}{position})) AS digest"
        digests.append(tuple(rows.selectExpr("count(*) AS records", digest).first() or ()))
    if digests[0] != digests[1] or digests[0][0] != events:
        raise SystemExit(f"{kind}: bronze holds {digests[0]}, the copy {digests[1]}")


def measure(
    spark: SparkSession, folder: Path, events: int, rounds: int, limit: int, address: str
) -> dict[str, list[tuple[float, float]]]:
    """Return, by kind, the seconds of land and of the copy, in each warm round."""
    files = folder / "files"
    fill(spark, files, address, events)
    found: dict[str, list[tuple[float, float]]] = {}
    for round_ in range(rounds + 1):
        for kind, words in sources(files, address).items():
            root = folder / f"{kind}{round_}"
            ways = [
                lambda r=root, w=words: land(spark, r / "lake", definition(w, limit, 1000)),
                lambda r=root, w=words: copy(spark, r, w, limit),
            ]
            seconds = [0.0, 0.0]
            for way in (0, 1) if round_ % 2 else (1, 0):
                seconds[way] = ways[way]().seconds
            check_equal(spark, root, kind, events)
            say(f"{kind}: land {seconds[0]:.1f} s, copy {seconds[1]:.1f} s")
            if round_:
                found.setdefault(kind, []).append((seconds[0], seconds[1]))
    return found


def report(found: Mapping[str, list[tuple[float, float]]], events: int) -> str:
    """Return the table of both kinds."""
    cores = os.cpu_count() or 1
    lines = [
        f"{events:,} records of about 140 bytes; {len(next(iter(found.values())))} warm rounds.\n",
        f"{machine()}\n",
        "| into bronze, median (least to most) | land | Spark's bare copy | land / copy | "
        "records/s/core |",
        "|---|---:|---:|---:|---:|",
    ]
    for kind, pairs in found.items():
        ours, bare = zip(*pairs, strict=True)
        ratio = statistics.median(one / other for one, other in pairs)
        speed = events / statistics.median(ours) / cores
        lines.append(
            f"| {kind} | {spread(ours, '{:.1f} s')} | {spread(bare, '{:.1f} s')} | "
            f"{wish(ratio, TARGET)} | {speed:,.0f} |"
        )
    return "\n".join(lines) + "\n"


def small_files(spark: SparkSession, folder: Path, count: int) -> str:
    """Land a folder of files of one event; return what it took."""
    files = folder / "small"
    files.mkdir()
    for number in range(count):
        text = f'{{"event_id": "{number}"}}\n'
        (files / f"{number}.jsonl").write_text(text, encoding="utf-8")
    declared = definition({"kind": "files", "input": str(files)}, 1, 10_000)
    with metered() as check:
        started = time.perf_counter()
        checked_source(Opening(Place(folder / "lake"), Clock()), declared, once=True)
        walked = time.perf_counter() - started
    with metered() as used:
        landed = land(spark, folder / "lake", declared)
    lines = [
        f"{count:,} files of one event, in batches of 10,000.\n",
        "| | |",
        "|---|---:|",
        f"| the check at the start: every file's name, time and access | {walked:.1f} s |",
        f"| - peak memory of Python and JVM | {check.memory:,.0f} MiB |",
        f"| land, {len(landed.listing)} batches | {landed.seconds:.0f} s |",
        f"| - of it listing the folder, by batch | {spread(landed.listing, '{:.1f} s')} |",
        f"| - peak memory of Python and JVM | {used.memory:,.0f} MiB |",
        f"| - of the JVM | {used.jvm:,.0f} MiB |",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--events", type=int, default=1_000_000)
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--limit", type=int, default=250_000, help="records in a batch from Kafka")
    words.add_argument("--files", type=int, default=0, help="small files, too")
    words.add_argument("--write", action="store_true")
    said = words.parse_args()
    jars = ":".join(str(path) for path in ivy.class_path(kafka.JARS))
    spark = local_session(driver_memory="2g", extra={"spark.driver.extraClassPath": jars})
    tables = {}
    with temporary("sources") as folder, broker(folder / "broker") as address:
        found = measure(spark, folder, said.events, said.rounds, said.limit, address)
        tables["sources"] = report(found, said.events)
        if said.files:
            tables["small files"] = small_files(spark, folder, said.files)
    for name, table in tables.items():
        print(table)
        if said.write:
            write(table, name)
    spark.stop()


if __name__ == "__main__":
    main()
