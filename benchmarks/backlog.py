"""What a backlog takes: days of events in files, brought into gold in bounded batches.

    files, Kafka ──tidemill run --once──► bronze ─► events ─► buckets ─► gold   batches of 128 MB
                 ──Spark alone──────────► Delta ──► Delta ──► Delta ──► Delta   each table at once

The events lie in files in their order, a few of them up to three hours late, as JSON lines or as
Parquet, or (`--kafka`) in a topic of four partitions, of which a batch lands a quarter. Both ways
run in a process of their own with the same session; bare means the plain read, parse, aggregation
and first gold, without rules, duplicates, ledgers or bounds. Before any time counts, gold is
compared with DuckDB's count of the files. Seconds by query are those of its batches
(`run --profile`). `--write` puts the tables into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import duckdb
from deltalake import DeltaTable
from measuring import cpu_seconds, machine, resident, say, temporary, tree, write
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sources import PARTITIONS, TOPIC, broker, make_topic

from tidemill.lake.session import ivy
from tidemill.lake.session.session import local_session
from tidemill.sources import kafka

FIRST = datetime(2026, 11, 18, 0, 0, tzinfo=timezone.utc)
DAYS, PER_FILE, LATE = 3, 250_000, 0.03
FORMS = ("json", "parquet")
KAFKA = "kafka"  # the JSON lines, in a topic
PIPELINE = """
pipeline: engagement
source: {{kind: kafka, bootstrap_servers: "{address}", topics: [{topic}]}}
clock: event
max_offsets_per_trigger: {limit}
views:
  - name: engagement
    keys: [profile_id, gti]
    event_time: event_timestamp
    schema: {{profile_id: string, gti: string, event_type: string}}
    features:
      - count: {{by: {{event_type: [select, highlight, view]}}}}
        over: [1h, 12h, 1d]
"""
QUERIES = ("land", "clean", "feature")
KINDS = ("select", "highlight", "view")
WINDOWS = {"1h": 60, "12h": 720, "1d": 1440}
TEXTS = "event_id STRING, profile_id STRING, gti STRING, event_type STRING"


@dataclass
class Run:
    """One way through the backlog: its whole seconds, those of each part, batches, seconds of CPU,
    and the most memory in each third of the time, in MiB."""

    whole: float
    parts: Mapping[str, float]
    batches: Mapping[str, int] = field(default_factory=dict)
    cpu: float = 0.0
    thirds: tuple[float, ...] = ()


# -- events --------------------------------------------------------------------------------------


def write_files(folder: Path, form: str, events: int, keys: int) -> None:
    """Write the events, so many to a file, each with an id of its own."""
    folder.mkdir(parents=True)
    seconds = DAYS * 86_400
    for number, first in enumerate(range(0, events, PER_FILE)):
        count = min(PER_FILE, events - first)
        draws = ", ".join(f"hash(i * 5 + {n}) / 2**64 AS u{n}" for n in range(4))
        at = (
            f"make_timestamp(({int(FIRST.timestamp())} + i * {seconds} / {events} "
            f"- (u3 < {LATE})::INT * u2 * 10800)::BIGINT * 1000000)"
        )
        name = f"{folder}/{number:05}.{form}"
        duckdb.sql(
            f"""
            COPY (
              WITH draws AS (
                SELECT i, {draws} FROM range({first}, {first + count}) AS numbers(i)
              ),
              events AS (SELECT *, floor({keys} * u1)::BIGINT AS key FROM draws)
              SELECT
                'e' || i AS event_id,
                'profile-' || key // 50 AS profile_id,
                'title-' || key % 50 AS gti,
                CASE WHEN u0 < 0.25 THEN 'select' WHEN u0 < 0.9 THEN 'highlight' ELSE 'view' END
                  AS event_type,
                strftime({at}, '%Y-%m-%dT%H:%M:%SZ') AS event_timestamp
              FROM events
            ) TO '{name}' (FORMAT {form})
            """
        )


def wanted(files: str, form: str) -> str:
    """Return DuckDB's SQL for every feature, straight from the files."""
    reader = "read_parquet" if form == "parquet" else "read_json"
    columns = ", columns = {profile_id: 'VARCHAR', gti: 'VARCHAR', event_type: 'VARCHAR', \
event_timestamp: 'VARCHAR'}, format = 'newline_delimited'"
    counts = ", ".join(
        f"count(*) FILTER (event_type = '{kind}' AND happened >= as_of - INTERVAL {minutes} "
        f"MINUTE) AS {kind}_count_{window}"
        for window, minutes in WINDOWS.items()
        for kind in KINDS
    )
    return f"""
        WITH events AS (
          SELECT *, strptime(event_timestamp, '%Y-%m-%dT%H:%M:%SZ') AS happened
          FROM {reader}('{files}'{"" if form == "parquet" else columns})
        ),
        clock AS (
          SELECT date_trunc('minute', max(happened)) + INTERVAL 1 MINUTE AS as_of FROM events
        )
        SELECT profile_id, gti, {counts} FROM events, clock GROUP BY profile_id, gti
    """


def wrong_keys(gold: Path, files: Path, form: str) -> int:
    """Count the keys whose features are not what DuckDB counts; gold has no deletion vectors."""
    rows = [unquote(urlparse(name).path) for name in DeltaTable(str(gold)).file_uris()]
    names = [f"{kind}_count_{window}" for window in WINDOWS for kind in KINDS]
    different = " OR ".join(f"coalesce(f.{c}, 0) <> coalesce(w.{c}, 0)" for c in names)
    (row,) = duckdb.sql(
        f"""
        SELECT count(*) FROM read_parquet({rows}) AS f
        FULL JOIN ({wanted(f"{files}/*", form)}) AS w USING (profile_id, gti)
        WHERE {different}
        """
    ).fetchall()
    return int(row[0])


def fill(folder: Path, address: str) -> None:
    """Write the lines of the files into the topic."""
    spark = kafka_session()
    make_topic(spark, address)
    options = {"kafka.bootstrap.servers": address, "topic": TOPIC}
    spark.read.text(str(folder / KAFKA)).write.format("kafka").options(**options).save()


def kafka_session() -> SparkSession:
    """Return a session that has Kafka's client."""
    jars = ":".join(str(path) for path in ivy.class_path(kafka.JARS))
    return local_session(extra={"spark.driver.extraClassPath": jars})


# -- the two ways --------------------------------------------------------------------------------


def through_tidemill(folder: Path, form: str, address: str = "", events: int = 0) -> Run:
    """Bring the events into gold by `tidemill run --once`, and check it."""
    pipeline = ["engagement", "--source", "files", "--input", str(folder / form)]
    if form == KAFKA:
        file = folder / "engagement.yaml"
        limit = events // PARTITIONS + 1
        file.write_text(PIPELINE.format(address=address, topic=TOPIC, limit=limit))
        pipeline = [str(file)]
    words = ["run", *pipeline, "--once", "--root", str(folder / f"lake-{form}")]
    with sampled() as used:
        whole, said = ran([sys.executable, "-m", "tidemill.cli", *words, "--profile", "--json"])
    if wrong := wrong_keys(folder / f"lake-{form}" / "engagement_features", folder / form, form):
        sys.exit(f"{form}: {wrong} keys of gold are not what DuckDB counts; no times")
    batches = [each for each in said["profile"] if each["batch"] is not None]
    parts = {q: sum(b["seconds"] for b in batches if b["query"] == q) for q in QUERIES}
    counts = {q: sum(b["query"] == q for b in batches) for q in QUERIES}
    return Run(whole, parts, counts, used.cpu, thirds(used.memory))


def through_spark(folder: Path, form: str, address: str = "") -> Run:
    """Bring the events into the same four tables by Spark alone, and check them."""
    words = ["--bare", form, "--folder", str(folder), "--address", address]
    with sampled() as used:
        whole, said = ran([sys.executable, __file__, *words])
    if wrong := wrong_keys(folder / f"bare-{form}" / "gold", folder / form, form):
        sys.exit(f"bare {form}: {wrong} keys are not what DuckDB counts; no times")
    return Run(whole, said, {}, used.cpu, thirds(used.memory))


def ran(command: list[str]) -> tuple[float, Any]:
    started = time.monotonic()
    answer = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return time.monotonic() - started, json.loads(answer.stdout)


@dataclass
class Used:
    """What all processes took: CPU seconds, and resident memory in MiB, again and again."""

    cpu: float = 0.0
    memory: list[float] = field(default_factory=list)


@contextmanager
def sampled() -> Iterator[Used]:
    """Yield what is used, looked at every half a second: a JVM that has ended tells nothing."""
    found, done, before = Used(), threading.Event(), cpu_seconds(tree())

    def look() -> None:
        while not done.wait(0.5):
            processes = tree()
            found.memory.append(resident(processes)[0])
            found.cpu = max(found.cpu, cpu_seconds(processes) - before)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


def thirds(memory: list[float]) -> tuple[float, ...]:
    length = max(len(memory) // 3, 1)
    return tuple(max(memory[n * length : (n + 1) * length], default=0.0) for n in range(3))


def bare(folder: Path, form: str, address: str) -> dict[str, float]:
    """Write the four tables; return the seconds of each."""
    spark = kafka_session() if form == KAFKA else local_session()
    tables, times = folder / f"bare-{form}", {}
    rows = topic_rows(spark, address) if form == KAFKA else file_rows(spark, folder / form)
    steps = {
        "land": lambda: land(rows, tables),
        "clean": lambda: parse(spark, tables),
        "feature": lambda: aggregate(spark, tables),
    }
    for name, step in steps.items():
        started = time.monotonic()
        step()
        times[name] = time.monotonic() - started
    return times


def file_rows(spark: SparkSession, files: Path) -> DataFrame:
    if files.name == "json":
        rows = spark.read.text(str(files)).select(F.col("value").alias("raw_payload"))
    else:
        rows = spark.read.parquet(str(files)).select(F.expr("to_json(struct(*)) AS raw_payload"))
    return rows.select("*", F.col("_metadata.file_path").alias("topic"))


def topic_rows(spark: SparkSession, address: str) -> DataFrame:
    options = {"kafka.bootstrap.servers": address, "subscribe": TOPIC}
    rows = spark.read.format("kafka").options(**options, startingOffsets="earliest").load()
    payload = "CAST(value AS STRING) AS raw_payload"
    return rows.selectExpr(payload, "topic", "partition", "offset", "timestamp AS source_ts")


def land(rows: DataFrame, tables: Path) -> None:
    rows = rows.select(
        "*", F.expr("uuid()").alias("record_id"), F.current_timestamp().alias("ingested_at")
    )
    rows.write.format("delta").save(str(tables / "bronze"))


def parse(spark: SparkSession, tables: Path) -> None:
    event = F.from_json("raw_payload", f"{TEXTS}, event_timestamp TIMESTAMP")
    rows = spark.read.format("delta").load(str(tables / "bronze"))
    rows = rows.select("record_id", event.alias("event"), "ingested_at")
    rows = rows.select("record_id", "event.*", "ingested_at")
    rows = rows.withColumn("event_hour", F.date_trunc("hour", "event_timestamp"))
    rows.write.format("delta").partitionBy("event_hour").save(str(tables / "events"))


def aggregate(spark: SparkSession, tables: Path) -> None:
    keys, at = ("profile_id", "gti"), F.date_trunc("minute", "event_timestamp")
    events = spark.read.format("delta").load(str(tables / "events"))
    counts = [F.count_if(F.col("event_type") == kind).alias(kind) for kind in KINDS]
    buckets = events.groupBy(*keys, at.alias("bucket_start")).agg(*counts)
    buckets = buckets.withColumn("bucket_hour", F.date_trunc("hour", "bucket_start"))
    buckets.write.format("delta").partitionBy("bucket_hour").save(str(tables / "buckets"))
    kept = spark.read.format("delta").load(str(tables / "buckets"))
    (newest,) = kept.select(F.max("bucket_start")).first() or (None,)
    as_of = F.lit(newest) + F.expr("INTERVAL 1 MINUTE")
    sums = [
        F.sum(
            F.when(
                F.col("bucket_start") >= as_of - F.expr(f"INTERVAL {minutes} MINUTE"), F.col(kind)
            ).otherwise(0)
        ).alias(f"{kind}_count_{window}")
        for window, minutes in WINDOWS.items()
        for kind in KINDS
    ]
    within = kept.where(F.col("bucket_start") >= as_of - F.expr("INTERVAL 1 DAY"))
    within.groupBy(*keys).agg(*sums).write.format("delta").save(str(tables / "gold"))


# -- the table -----------------------------------------------------------------------------------


def report(events: int, keys: int, runs: Mapping[str, tuple[Run, Run]]) -> str:
    """Return what was measured, as Markdown."""
    lines = [
        f"{events:,} events over {DAYS} days, {keys:,} possible keys, in files of {PER_FILE:,}; "
        "one run each.",
        "",
        machine(),
        "",
        "| seconds | " + " | ".join(f"{f}: Tidemill | bare | ratio" for f in runs) + " |",
        "|---|" + "---:|" * 3 * len(runs),
    ]
    lines += [
        _row(name, [_parts(ours, bare_, name) for ours, bare_ in runs.values()]) for name in QUERIES
    ]
    lines.append(_row("whole process", [(o.whole, b.whole) for o, b in runs.values()]))
    lines.append(_row("CPU", [(o.cpu, b.cpu) for o, b in runs.values()]))
    lines += ["", "| Tidemill | " + " | ".join(runs) + " |", "|---|" + "---:|" * len(runs)]
    cells: dict[str, list[str]] = {}
    for ours, _ in runs.values():
        for name in QUERIES:
            speed = events / ours.parts[name]
            told = f"{ours.batches[name]}; {speed:,.0f}; {speed / 2:,.0f}"
            cells.setdefault(f"{name}: batches; events a second; a core", []).append(told)
        whole = f"{events / ours.whole:,.0f}"
        cells.setdefault("all: events a second", []).append(whole)
        told = ", ".join(f"{each:,.0f}" for each in ours.thirds)
        cells.setdefault("most memory in each third, MiB", []).append(told)
    lines += [f"| {name} | {' | '.join(each)} |" for name, each in cells.items()]
    return "\n".join(lines) + "\n"


def _parts(ours: Run, plain: Run, name: str) -> tuple[float, float]:
    return ours.parts[name], plain.parts[name]


def _row(name: str, pairs: list[tuple[float, float]]) -> str:
    cells = " | ".join(f"{a:.0f} | {b:.0f} | {a / b:.1f}x" for a, b in pairs)
    return f"| {name} | {cells} |"


def main() -> None:
    options = argparse.ArgumentParser(description="What a backlog takes.")
    options.add_argument("--events", type=int, default=10_000_000)
    options.add_argument("--keys", type=int, default=1_000_000)
    options.add_argument("--form", choices=FORMS, help="one of the two; both without it")
    options.add_argument("--kafka", action="store_true", help="from a topic instead")
    options.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    options.add_argument("--bare", choices=(*FORMS, KAFKA), help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--address", default="", help=argparse.SUPPRESS)
    options.add_argument("--fill", action="store_true", help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.bare:
        print(json.dumps(bare(asked.folder, asked.bare, asked.address)))
        return
    if asked.fill:
        fill(asked.folder, asked.address)
        return
    with temporary("backlog") as folder:
        measured = of_topic if asked.kafka else of_files
        runs = measured(folder, asked.events, asked.keys, asked.form)
    text = report(asked.events, asked.keys, runs)
    print(text)
    if asked.write:
        write(text, "backlog kafka" if asked.kafka else "backlog")


def of_files(folder: Path, events: int, keys: int, form: str | None) -> dict[str, tuple[Run, Run]]:
    """Return both ways through the files of each form."""
    runs = {}
    for each in [form] if form else FORMS:
        write_files(folder / each, each, events, keys)
        say(f"{each}: the files are written")
        plain = through_spark(folder, each)
        say(f"{each}: Spark alone took {plain.whole:.0f} s")
        ours = through_tidemill(folder, each)
        say(f"{each}: Tidemill took {ours.whole:.0f} s")
        runs[each] = (ours, plain)
    return runs


def of_topic(folder: Path, events: int, keys: int, _: str | None) -> dict[str, tuple[Run, Run]]:
    """Return both ways through a topic."""
    write_files(folder / KAFKA, "json", events, keys)
    with broker(folder / "broker") as address:
        filling = [sys.executable, __file__, "--fill", "--folder", folder, "--address", address]
        subprocess.run(filling, check=True)
        say("the topic is filled")
        plain = through_spark(folder, KAFKA, address)
        say(f"Spark alone took {plain.whole:.0f} s")
        ours = through_tidemill(folder, KAFKA, address, events)
        say(f"Tidemill took {ours.whole:.0f} s")
    return {KAFKA: (ours, plain)}


if __name__ == "__main__":
    main()
