"""What a publish costs: rows of gold into Redis, beside a bare pipeline of the same bytes.

    snapshot   every row of gold, into an empty store
    changes    the keys that one refresh changed, by gold's change data feed
    bare       the same keys and bytes by redis-py: SET with EX, pipelines of 1,000, one process

Every row of the store is compared with gold before any time counts. Starts a Redis of its own.
`--write` puts the table into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis
from measuring import machine, say, spread, temporary, wish, write
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.config.pipeline_file import load
from tidemill.config.settings import Place
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import writer
from tidemill.lake.open import open_for_writing
from tidemill.lake.session.session import local_session
from tidemill.lake.session.temporary_conf import temporary_conf
from tidemill.online.open_store import open_store
from tidemill.online.publish import publish
from tidemill.online.store_address import StoreAddress

AT_ONCE = 1_000
TARGET = 2.0
CHANGE = """MERGE INTO engagement_features AS gold USING changed
ON gold.profile_id = changed.profile_id AND gold.gti = changed.gti
WHEN MATCHED THEN UPDATE SET *"""


@contextmanager
def server(folder: Path) -> Iterator[int]:
    """Yield the port of a Redis that keeps its data in memory alone."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = ("--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
    process = subprocess.Popen(
        ["redis-server", "--port", str(port), *quiet], cwd=folder, stdout=subprocess.DEVNULL
    )
    try:
        time.sleep(1)
        yield port
    finally:
        process.kill()
        process.wait()


def rows(spark: SparkSession, first: int, count: int, minute: int) -> DataFrame:
    """Return rows of gold for keys from `first` on, as of a minute."""
    lake_columns = [
        F.concat(F.lit("profile-"), F.col("id") % 100_000).alias("profile_id"),
        F.concat(F.lit("title-"), F.col("id")).alias("gti"),
    ]
    values = [
        (F.xxhash64("id", F.lit(n * 100 + minute)) % 900 + 900).alias(column.name)
        for n, column in enumerate(load("engagement").views[0].columns)
    ]
    at = F.expr(f"TIMESTAMP '2026-11-21 10:{minute:02}:00'").alias("updated_at")
    return spark.range(first, first + count).select(*lake_columns, *values, at)


def commit(lake: Lake, frame: DataFrame, minute: int, changed: int) -> None:
    """Commit rows as a refresh would: new ones appended, others merged, with a ledger."""
    fields = {
        "generation": lake.generation, "batch": minute, "refresh": minute + 1,
        "as_of": f"2026-11-21T10:{minute:02}:00Z", "changed": changed,
        "definition": lake.pipeline.views[0].definition, "mode": "incremental",
    }  # fmt: skip
    if minute == 0:
        writer.write(frame, "engagement_features", fields)
        return
    frame.createOrReplaceTempView("changed")
    with writer.carrying(lake.spark, fields):
        lake.spark.sql(CHANGE).collect()


def expect_equal(lake: Lake, address: StoreAddress) -> None:
    """Stop where a row of the store is not gold's, or one is missing."""
    store, view = open_store(address), lake.pipeline.views[0]
    state = store.view(view.name)
    assert state is not None
    names = [column.name for column in view.shown]
    for batch in lake.spark.table("engagement_features").toArrow().to_batches(AT_ONCE):
        found = batch.to_pylist()
        answers = store.read(state, [(row["profile_id"], row["gti"]) for row in found])
        for row, answer in zip(found, answers, strict=True):
            if answer is None or list(answer.values) != [row[name] for name in names]:
                sys.exit(f"the store differs from gold: {row} {answer}; no times")


def bare(port: int, said: list[tuple[bytes, bytes]]) -> float:
    """Return the seconds in which redis-py writes the same keys and bytes to an empty server."""
    client = redis.Redis(port=port)
    client.flushall()
    started = time.monotonic()
    for start in range(0, len(said), AT_ONCE):
        pipeline = client.pipeline(transaction=False)
        for key, packed in said[start : start + AT_ONCE]:
            pipeline.set(key, packed, ex=172_800)
        pipeline.execute()
    return time.monotonic() - started


def content(port: int) -> list[tuple[bytes, bytes]]:
    """Return the keys and bytes of the rows in the server."""
    client = redis.Redis(port=port)
    names = [name for name in client.scan_iter("tidemill:engagement:*", count=AT_ONCE)]
    found: list[tuple[bytes, bytes]] = []
    for start in range(0, len(names), AT_ONCE):
        part = names[start : start + AT_ONCE]
        found += zip(part, client.mget(part), strict=True)
    return found


def measured(
    spark: SparkSession, folder: Path, port: int, keys: int, changed: int, repeats: int
) -> dict[str, list[float]]:
    """Return the seconds of a snapshot, of the changes, and of the bare pipelines."""
    lake = open_for_writing(spark, Place(folder / "lake"), load("engagement"))
    view, address = lake.pipeline.views[0], StoreAddress(f"redis://127.0.0.1:{port}/0")
    commit(lake, rows(spark, 0, keys, 0), 0, keys)
    seconds: dict[str, list[float]] = {
        name: [] for name in ("snapshot", "changes", "bare snapshot", "bare changes")
    }
    publish(lake, view, address)  # the first one of a process compiles and starts its workers
    expect_equal(lake, address)
    for minute in range(1, repeats + 1):
        redis.Redis(port=port).flushall()
        started = time.monotonic()
        publish(lake, view, address)
        seconds["snapshot"].append(time.monotonic() - started)
        commit(lake, rows(spark, 0, changed, minute), minute, changed)
        started = time.monotonic()
        done = publish(lake, view, address)
        seconds["changes"].append(time.monotonic() - started)
        if (done.mode, done.keys) != ("feed", changed):
            sys.exit(f"the changes were brought by {done}; no times")
        expect_equal(lake, address)
        whole = content(port)
        moved = [pair for pair in whole if pair[1][4:12] == done.gold_version.to_bytes(8, "big")]
        seconds["bare snapshot"].append(bare(port, whole))
        seconds["bare changes"].append(bare(port, moved))
        say(", ".join(f"{name} {spent[-1]:.2f} s" for name, spent in seconds.items()))
    return seconds


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--keys", type=int, default=1_000_000)
    options.add_argument("--changes", type=int, default=20_000, help="of a refresh")
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    asked = options.parse_args()
    spark = local_session(driver_memory="3g")
    with (
        temporary("publish") as folder,
        server(folder) as port,
        temporary_conf(spark, {"spark.sql.session.timeZone": "UTC"}),
    ):
        seconds = measured(spark, folder, port, asked.keys, asked.changes, asked.repeats)
    lines = [
        f"Gold of {asked.keys:,} keys and 9 features, {asked.changes:,} of them changed; Redis on "
        f"the same machine; medians of {asked.repeats}, warm, in turn in one process.",
        "",
        machine("3g"),
        "",
        "| | took | keys a second | to the bare pipeline |",
        "|---|---:|---:|---:|",
    ]
    for name, count in (("snapshot", asked.keys), ("changes", asked.changes)):
        bare_middle = statistics.median(seconds[f"bare {name}"])
        middle = statistics.median(seconds[name])
        lines += [
            f"| {name}: `publish` | {spread(seconds[name], '{:.2f} s')} | {count / middle:,.0f} | "
            f"{wish(middle / bare_middle, TARGET)} |",
            f"| {name}: bare | {spread(seconds[f'bare {name}'], '{:.2f} s')} | "
            f"{count / bare_middle:,.0f} | 1x |",
        ]
    text = "\n".join([*lines, ""])
    if asked.write:
        write(text, "publish")
    else:
        print(text)


if __name__ == "__main__":
    main()
