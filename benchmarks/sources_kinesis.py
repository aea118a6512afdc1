"""What a Kinesis stream costs on its way into bronze and gold, beside a bare copy of the same.

    stream ──land──────────────────► bronze ─► events ─► buckets ─► gold
           ──kinesis_py alone──────► Delta
           ──the reader, no Spark──► counted

The stream is moto's, a process of its own: it answers in Python what AWS answers in C, so the bare
reader's time beside it says what of a time is the server's. All three ways read the same records in
turns, and are compared before any time counts: as many records, the same hash of their payloads.
`--write` puts the table into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import xxhash
from measuring import cpu_seconds, machine, say, spread, temporary, tree, wish, write
from pyspark.sql import DataFrame, SparkSession

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
import tidemill
from kinesis import CREDENTIALS, REGION, FakeStream, serving
from tidemill.lake.session.session import local_session

FIRST = datetime(2026, 11, 20, tzinfo=timezone.utc)
KINDS = ("select", "highlight", "view")
MOST = 1.3  # times the bare copy's time, into bronze
Found = tuple[int, int]


@dataclass(frozen=True)
class Timed:
    """Seconds of one way, and those of all processors of this process and its JVM."""

    seconds: float
    cpu: float


def payloads(events: int) -> Iterator[str]:
    """Yield events of a day, 1,000 keys."""
    for number in range(events):
        at = FIRST + timedelta(seconds=86_400 * number / events)
        yield json.dumps(
            {
                "event_id": f"e{number}",
                "profile_id": f"profile-{number % 50}",
                "gti": f"title-{number // 50 % 20}",
                "event_type": KINDS[number % 3],
                "event_timestamp": at.isoformat(),
            }
        )


def timed(work: Callable[[], None]) -> Timed:
    began, used = time.monotonic(), cpu_seconds(tree())
    work()
    return Timed(time.monotonic() - began, cpu_seconds(tree()) - used)


def read_alone(stream: FakeStream) -> Found:
    """Return count and hash of the records as the reader plans them, batch by batch."""
    reader, count, mark = stream.reader(), 0, 0
    at = reader.initialOffset()
    while (end := reader.latestOffset(at, reader.getDefaultReadLimit())) != at:
        for part in reader.partitions(at, end):
            for batch in reader.read(part):
                for data in batch.column("data").to_pylist():
                    count, mark = count + 1, mark ^ xxhash.xxh64_intdigest(data)
        at = end
    return count, mark


def copy(spark: SparkSession, stream: FakeStream, folder: Path) -> None:
    """Copy the stream into a Delta table by the data source alone."""
    rows = spark.readStream.format("kinesis_py").options(**stream.options().to_spark()).load()
    query = (
        rows.selectExpr("*", "CAST(data AS STRING) AS payload")
        .writeStream.format("delta")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "table"))
    )
    query.awaitTermination()


def run(stream: FakeStream, root: Path) -> None:
    """Bring the stream into gold by the shipped pipeline."""
    definition = tidemill.load("engagement").overridden(
        {
            "source": {
                "kind": "kinesis",
                "stream": stream.name,
                "region": REGION,
                "endpoint_url": stream.address.endpoint,
            }
        }
    )
    with tidemill.open_lake(root, pipeline=definition, write=True, create=True) as lake:
        lake.run_once()


def mark_of(rows: DataFrame) -> Found:
    """Return count and hash of payloads in a table, as `read_alone` does."""
    found, mark = 0, 0
    for (payload,) in rows.toLocalIterator():
        found, mark = found + 1, mark ^ xxhash.xxh64_intdigest(payload.encode())
    return found, mark


def measure(events: int, rounds: int, folder: Path) -> str:
    os.environ.update(CREDENTIALS)
    with serving(folder) as kinesis:
        stream = kinesis.stream("bench", 4)
        say(f"{events:,} records go to the stream")
        stream.put(payloads(events))
        spark = local_session(driver_memory="2g")
        tidemill.register_kinesis(spark)
        alone, bare, bronze, gold = [], [], [], []
        for number in range(rounds + 1):  # the first one warms up
            say(f"round {number}")
            expected: list[Found] = []
            alone.append(timed(lambda into=expected: into.append(read_alone(stream))))
            at = folder / f"bare{number}"
            bare.append(timed(lambda at=at: copy(spark, stream, at)))
            assert (
                mark_of(spark.read.format("delta").load(str(at / "table")).select("payload"))
                == (expected[0])
            )
            root = folder / f"lake{number}"
            gold.append(timed(lambda root=root: run(stream, root)))
            table = spark.read.format("delta").load(str(root / "engagement_bronze"))
            assert mark_of(table.select("raw_payload")) == expected[0]
            bronze.append(_land_seconds(root))
        spark.stop()
    return _table(events, alone[1:], bare[1:], bronze[1:], gold[1:])


def _land_seconds(root: Path) -> float:
    """Return from when to when land ran: from its checkpoint's first file to its last commit."""
    checkpoint = root / "_checkpoints" / "engagement_land"
    begin = (checkpoint / "metadata").stat().st_mtime
    return max(path.stat().st_mtime for path in (checkpoint / "commits").iterdir()) - begin


def _table(
    events: int, alone: list[Timed], bare: list[Timed], bronze: list[float], gold: list[Timed]
) -> str:
    ratios = [land / copied.seconds for land, copied in zip(bronze, bare, strict=True)]
    ratio = sorted(ratios)[len(ratios) // 2]
    lines = [
        f"{events:,} records of four shards; {len(bare)} rounds after one to warm up. {machine()}",
        "",
        "| way, median (least to most) | seconds | records a second | records a second of CPU |",
        "|---|---:|---:|---:|",
    ]
    for name, each in (
        ("the reader alone, without Spark", alone),
        ("`kinesis_py` into a Delta table, bare", bare),
        ("the whole pipeline, into gold", gold),
    ):
        seconds, used = [one.seconds for one in each], [one.cpu for one in each]
        rates = [events / one for one in seconds]
        by_cpu = [events / one for one in used]
        form = "{:,.0f}"
        lines.append(
            f"| {name} | {spread(seconds, '{:.1f}')} | {spread(rates, form)} | "
            f"{spread(by_cpu, form)} |"
        )
    lines.append(f"| land, into bronze | {spread(bronze, '{:.1f}')} | | |")
    lines += ["", f"Into bronze beside the bare copy: {wish(ratio, MOST)}.", ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    words = parser.parse_args()
    with temporary("kinesis") as folder:
        table = measure(words.events, words.rounds, folder)
    print(table)
    if words.write:
        write(table, "kinesis")


if __name__ == "__main__":
    main()
