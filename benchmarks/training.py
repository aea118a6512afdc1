"""What a training set costs: running sums beside the range join that one would write by hand.

    tidemill   `training_set`, mode="event": running sums per key, looked up at each row's edges
    naive      Spark: spine JOIN buckets ON key AND time in the longest window, summed by window
    duckdb     DuckDB: ASOF joins to running sums, and the range join, of the same Parquet files

The spine's rows are at random seconds, of keys with buckets in a share of all minutes. Every value
is compared before any time counts. `--write` puts the table into docs/benchmarks.md.

A range join of all rows takes hours. It is measured at `--naive-rows` and at twice as many; what
the second half of them took is what any more take, as each row meets the same number of buckets. No
side of it is broadcast, as neither would be with all rows.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import duckdb
from measuring import Usage, machine, metered, say, spread, temporary, write
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.config.pipeline_file import load
from tidemill.config.settings import Place
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import writer
from tidemill.lake.open import open_for_writing
from tidemill.lake.session.session import local_session
from tidemill.training.training_set import Wanted, training_set

END = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
KINDS = ("select", "highlight", "view")
WINDOWS = {"1d": 1440, "12h": 720, "1h": 60}
FEATURES = [f"{kind}_count_{window}" for window in WINDOWS for kind in KINDS]
SEED = 17


def lake_of(spark: SparkSession, root: Path, keys: int, days: int, share: float) -> Lake:
    """Return a lake whose buckets hold a `share` of the minutes of so many days, by key.

    One key in a hundred has ten times as many rows of the spine as another (see `spine_of`).
    """
    lake = open_for_writing(spark, Place(root), load("engagement"))
    minutes = days * 1440
    drawn = "pmod(xxhash64(id, {n}), 1000)"
    counts = [f"pmod(xxhash64(id, {n}), 5) AS {kind}_count" for n, kind in enumerate(KINDS, 3)]
    start = int((END - timedelta(days=days)).timestamp())
    rows = (
        spark.range(keys * minutes)
        .where(f"{drawn.format(n=SEED)} < {round(share * 1000)}")
        .selectExpr(
            f"concat('profile-', id DIV {minutes}) AS profile_id",
            "'title' AS gti",
            f"timestamp_seconds({start} + 60 * (id % {minutes})) AS bucket_start",
            "0L AS batch",
            *counts,
            f"timestamp_seconds(({start} + 60 * (id % {minutes})) DIV 3600 * 3600) AS bucket_hour",
        )
    )
    newest = f"{END - timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}"
    ledger = {
        "generation": lake.generation,
        "batch": 0,
        "newest": newest,
        "digest": "",
        "events": 0,
    }
    table = lake.tables.of(lake.pipeline.views[0]).buckets
    shuffled = rows.repartition("bucket_hour").sortWithinPartitions("bucket_start")
    writer.write(shuffled, table.name, ledger, (lake.app_id(table), 0))
    return lake


def spine_of(spark: SparkSession, rows: int, keys: int, days: int) -> DataFrame:
    """Return rows at random seconds after the first day; a tenth of them of a hundredth of keys."""
    seconds = (days - 1) * 86400
    last = int(END.timestamp())
    few = max(keys // 100, 1)
    key = f"if(id % 10 = 0, pmod(xxhash64(id, 1), {few}), pmod(xxhash64(id, 2), {keys}))"
    at = f"{last} - pmod(xxhash64(id, 3), {seconds})"
    return spark.range(rows).selectExpr(
        "id AS row",
        f"concat('profile-', {key}) AS profile_id",
        "'title' AS gti",
        f"timestamp_seconds({at}) AS timestamp",
    )


def naive(spine: DataFrame, buckets: DataFrame) -> DataFrame:
    """Return the same by a join on the key and a range of time, as it is written by hand."""
    edge = F.date_trunc("minute", "timestamp")
    left = spine.withColumn("edge", edge).alias("s")
    right = buckets.alias("b")
    same = [F.col(f"s.{k}") == F.col(f"b.{k}") for k in ("profile_id", "gti")]
    inside = (F.col("b.bucket_start") < F.col("s.edge")) & (
        F.col("b.bucket_start") >= F.col("s.edge") - F.expr("INTERVAL 1 DAY")
    )
    joined = left.join(right, [*same, inside], "left")
    sums = [
        F.coalesce(
            F.sum(
                F.when(
                    F.col("b.bucket_start")
                    >= F.col("s.edge") - F.expr(f"INTERVAL {minutes} MINUTE"),
                    F.col(f"b.{kind}_count"),
                )
            ),
            F.lit(0),
        ).alias(f"{kind}_count_{window}")
        for window, minutes in WINDOWS.items()
        for kind in KINDS
    ]
    return joined.groupBy("s.row").agg(*sums)


def in_duckdb(kind: str, spine: str, buckets: str) -> str:
    """Return DuckDB's statement: `asof` to running sums, or the range join."""
    minutes = sorted({0, *WINDOWS.values()})
    if kind == "range":
        sums = ", ".join(
            f"coalesce(sum({k}_count) FILTER (WHERE bucket_start >= edge - INTERVAL {m} MINUTE), 0)"
            f" AS {k}_count_{w}"
            for w, m in WINDOWS.items()
            for k in KINDS
        )
        return f"""SELECT row, {sums} FROM (
            SELECT *, date_trunc('minute', timestamp) AS edge FROM '{spine}') AS s
            LEFT JOIN '{buckets}' AS b ON s.profile_id = b.profile_id AND s.gti = b.gti
              AND b.bucket_start >= s.edge - INTERVAL 1440 MINUTE AND b.bucket_start < s.edge
            GROUP BY row"""
    running = ", ".join(
        f"sum({k}_count) OVER (PARTITION BY profile_id, gti ORDER BY bucket_start) AS {k}"
        for k in KINDS
    )
    joins = " ".join(
        f"ASOF LEFT JOIN running AS r{m} ON s.profile_id = r{m}.profile_id AND s.gti = r{m}.gti "
        f"AND s.edge - INTERVAL {m} MINUTE > r{m}.bucket_start"
        for m in minutes
    )
    sums = ", ".join(
        f"coalesce(r0.{k}, 0) - coalesce(r{m}.{k}, 0) AS {k}_count_{w}"
        for w, m in WINDOWS.items()
        for k in KINDS
    )
    return f"""WITH running AS (
          SELECT profile_id, gti, bucket_start, {running} FROM '{buckets}'),
        s AS (SELECT *, date_trunc('minute', timestamp) AS edge FROM '{spine}')
        SELECT row, {sums} FROM s {joins}"""


def digest(frame: DataFrame, below: int) -> tuple[int, int]:
    """Compute every row; return how many of the first so many there are, and a hash of their
    values."""
    hashed = F.when(F.col("row") < below, F.xxhash64("row", *FEATURES))
    row = frame.agg(F.count(hashed), F.bit_xor(hashed), F.bit_xor(F.xxhash64("row", *FEATURES)))
    found = row.collect()[0]
    return found[0], found[1]


def duckdb_rows(kind: str, folder: Path, rows: int, output: Path) -> float:
    """Run DuckDB over the first rows of the spine, into a file; return the seconds."""
    with duckdb.connect(config={"memory_limit": "3GB", "temp_directory": str(folder)}) as base:
        spine = f"{folder}/spine.parquet/*.parquet"
        base.execute(f"CREATE VIEW few AS SELECT * FROM '{spine}' WHERE row < {rows}")
        text = in_duckdb(kind, "few", f"{folder}/buckets.parquet/*.parquet")
        text = text.replace("'few'", "few")
        started = time.monotonic()
        base.execute(f"COPY ({text}) TO '{output}' (FORMAT parquet)")
        return time.monotonic() - started


@dataclass
class Found:
    """The seconds of each way, by name; of a range join those of so many rows and of twice as many;
    the bucket rows, and what the training set took."""

    seconds: dict[str, list[float]]
    buckets: int
    used: Usage


def measured(spark: SparkSession, folder: Path, asked: argparse.Namespace) -> Found:
    """Measure every way; stop where values differ."""
    lake = lake_of(spark, folder / "lake", asked.keys, asked.days, asked.share)
    columns = ("profile_id", "gti", "bucket_start", *(f"{kind}_count" for kind in KINDS))
    buckets = spark.table("engagement_buckets").select(*columns)
    buckets.write.parquet(str(folder / "buckets.parquet"))
    spine_of(spark, asked.rows, asked.keys, asked.days).write.parquet(str(folder / "spine.parquet"))
    spine = spark.read.parquet(str(folder / "spine.parquet"))
    parquet = spark.read.parquet(str(folder / "buckets.parquet"))
    count = parquet.count()
    say(f"{count:,} bucket rows of {asked.keys:,} keys, {asked.rows:,} rows of the spine")
    wanted = Wanted([(lake, lake.pipeline.views[0])], duplicates="keep")
    digests: set[tuple[int, int]] = set()
    seconds: dict[str, list[float]] = {}
    usages: list[Usage] = []
    for repeat in range(asked.repeats + 1):
        with metered() as used:
            started = time.monotonic()
            digests.add(digest(training_set(spine, wanted).rows, asked.naive_rows))
            spent = time.monotonic() - started
        usages.append(used)
        seconds.setdefault("tidemill" if repeat else "cold", []).append(spent)
        say(f"tidemill: {spent:.1f} s{'' if repeat else ' (cold)'}")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    naive(spine.where("row < 100"), parquet).collect()  # the first one compiles
    for rows in (asked.naive_rows, 2 * asked.naive_rows):
        few = spine.where(f"row < {rows}")
        with metered() as used:
            started = time.monotonic()
            digests.add(digest(naive(few, parquet), asked.naive_rows))
            seconds.setdefault("naive", []).append(time.monotonic() - started)
        seconds.setdefault("naive cpu", []).append(used.cpu)
        say(f"naive, {rows:,} rows: {seconds['naive'][-1]:.1f} s")
    sizes = {"asof": [asked.rows], "range": [asked.naive_rows, 2 * asked.naive_rows]}
    for kind, sizes_of_kind in sizes.items():
        for rows in sizes_of_kind:
            output = folder / f"{kind}-{rows}.parquet"
            seconds.setdefault(kind, []).append(duckdb_rows(kind, folder, rows, output))
            whole = [F.col(name).cast("bigint").alias(name) for name in FEATURES]
            frame = spark.read.parquet(str(output)).select("row", *whole)
            digests.add(digest(frame, asked.naive_rows))
            say(f"duckdb {kind}, {rows:,} rows: {seconds[kind][-1]:.1f} s")
    if len(digests) != 1:
        sys.exit(f"the values differ: {digests}; no times")
    return Found(seconds, count, usages[-1])


def of_all(asked: argparse.Namespace, spent: list[float]) -> float:
    """Return what a range join takes for all rows, from what it took for some and twice as many."""
    half, whole = spent
    return half + (whole - half) / asked.naive_rows * (asked.rows - asked.naive_rows)


def table(asked: argparse.Namespace, found: Found) -> str:
    """Return the part of the document."""
    seconds = found.seconds
    tidemill = statistics.median(seconds["tidemill"])
    range_join = of_all(asked, seconds["naive"])
    cpu = of_all(asked, seconds["naive cpu"]) / found.used.cpu
    target = "met" if min(range_join / tidemill, cpu) >= 20 else "missed"
    some = f"from {asked.naive_rows:,} and {2 * asked.naive_rows:,} rows"
    lines = [
        f"A training set of {asked.rows:,} rows over {asked.days} days: {asked.keys:,} keys with a "
        f"bucket in {asked.share:.0%} of all minutes, {found.buckets:,} bucket rows, nine counts "
        "over 1 h, 12 h and 1 day; a tenth of the rows are of a hundredth of the keys.",
        "",
        machine("3g"),
        "",
        "| | took | rows a second | to Tidemill |",
        "|---|---:|---:|---:|",
        f"| `training_set`, mode event, warm | {spread(seconds['tidemill'], '{:.1f} s')} | "
        f"{asked.rows / tidemill:,.0f} | 1x |",
        f"| range join in Spark, {some} | {range_join:,.0f} s | {asked.rows / range_join:,.0f} | "
        f"{range_join / tidemill:.1f}x, of CPU {cpu:.1f}x; target at least 20x: {target} |",
    ]
    others = {
        "DuckDB, ASOF joins to running sums": seconds["asof"][0],
        f"DuckDB, range join, {some}": of_all(asked, seconds["range"]),
    }
    for name, spent in others.items():
        speed = f"{asked.rows / spent:,.0f}"
        lines.append(f"| {name} | {spent:,.1f} s | {speed} | {spent / tidemill:.2f}x |")
    half, whole = seconds["naive"]
    lines += [
        "",
        f"Measured of the range join in Spark: {half:.1f} s and {whole:.1f} s. The first training "
        f"set of the process took {seconds['cold'][0]:.1f} s. A warm one took at most "
        f"{found.used.memory:,.0f} MiB of memory, Python's and the JVM's, and "
        f"{found.used.cpu:.0f} s of CPU.",
    ]
    return "\n".join([*lines, ""])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=1_000_000, help="of the spine")
    options.add_argument("--naive-rows", type=int, default=20_000, help="of them for range joins")
    options.add_argument("--keys", type=int, default=1_000)
    options.add_argument("--days", type=int, default=7)
    options.add_argument("--share", type=float, default=0.5, help="of minutes with a bucket")
    options.add_argument("--repeats", type=int, default=2)
    options.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    asked = options.parse_args()
    spark = local_session(driver_memory="3g")
    with temporary("training") as folder:
        text = table(asked, measured(spark, folder, asked))
    if asked.write:
        write(text, "training")
    else:
        print(text)


if __name__ == "__main__":
    main()
