"""What one tick costs: new events appended as buckets, gold refreshed, the clock a minute on.

    generated events ──load──► 25 h of buckets, gold       (a process of its own: the next is cold)
                     ──tick──► append ─► query and diff ─► MERGE            1 cold, then warm ones
                     ──bare──► the same rows by a plain append and a plain MERGE, nothing else

Two copies of the loaded lake take turns, one refreshed by `recompute`, one by `incremental`. After
every tick each gold is compared with DuckDB's count of the generated events; only when all are
equal are times printed. `--size small` is a tenth of `medium`, `large` ten times; `--write` puts
the table into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

import duckdb
import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill import gold, ledger, pipeline
from tidemill import lake as lakes
from tidemill.features.definition import load
from tidemill.lake import Lake
from tidemill.session import session
from tidemill.settings import Clock, Place

DOCUMENT = Path(__file__).parents[1] / "docs" / "benchmarks.md"
FIRST = datetime(2026, 11, 20, 0, 0, tzinfo=timezone.utc)
MINUTES = 25 * 60
LATE = 0.03
TYPES = ("select", "highlight", "view")
WINDOWS = {"1d": 1440, "12h": 720, "1h": 60}
COLUMNS = [f"{kind}_count_{window}" for window in WINDOWS for kind in TYPES]
BUCKETS, GOLD = "engagement_buckets", "engagement_features"


@dataclass(frozen=True)
class Size:
    """How much there is: events of the load, keys, events a tick."""

    events: int
    keys: int
    events_per_tick: int


SIZES = {
    "small": Size(events=50_000, keys=5_000, events_per_tick=500),
    "medium": Size(events=500_000, keys=50_000, events_per_tick=5_000),
    "large": Size(events=5_000_000, keys=200_000, events_per_tick=20_000),
}
MODES = ("recompute", "incremental")


@dataclass(frozen=True)
class Tick:
    """One tick: seconds by step, and what was read and written."""

    total: float
    append: float
    diff: float
    merge: float
    bare_append: float
    bare_merge: float
    duckdb: float
    buckets_added: int
    keys_changed: int
    rows_read: int
    files_read: int
    gold_rows: int
    jobs: int
    commits: int

    @property
    def rest(self) -> float:
        return self.total - self.append - self.diff - self.merge

    @property
    def ratio(self) -> float:
        return self.total / (self.bare_append + self.bare_merge)


# -- events --------------------------------------------------------------------------------------


def write_events(folder: Path, size: Size, ticks: int) -> None:
    """Write `0.parquet`, 25 hours of events, and a file per tick: a minute of them, a few late.

    Every column comes from hashes of the event's number. Key k is sqrt-likely: the first keys have
    most events, the last ones some.
    """
    folder.mkdir()
    for batch in range(ticks + 1):
        number = size.events_per_tick if batch else size.events
        minute = MINUTES + batch - 1
        start = batch * 10**9  # of the numbers whose hashes are drawn
        spread = f"u2 * {MINUTES}" if batch == 0 else f"{minute} - (u3 < {LATE})::INT * u2 * 180"
        duckdb.sql(
            f"""
            COPY (
              WITH draws AS (
                SELECT {", ".join(f"hash({start} + i * 5 + {n}) / 2**64 AS u{n}" for n in range(5))}
                FROM range({number}) AS numbers(i)
              ), events AS (
                SELECT *, floor({size.keys} * u1 * u1)::BIGINT AS key FROM draws
              )
              SELECT
                'profile-' || key // 50 AS profile_id,
                'title-' || key % 50 AS gti,
                CASE WHEN u0 < 0.25 THEN 'select' WHEN u0 < 0.9 THEN 'highlight' ELSE 'view' END
                  AS event_type,
                make_timestamptz(
                  ({int(FIRST.timestamp())} + floor({spread}) * 60 + floor(u4 * 60))::BIGINT
                  * 1000000
                ) AS event_timestamp
              FROM events
            ) TO '{folder}/{batch}.parquet'
            """
        )


def wanted(events: Path, batches: int) -> str:
    """Yield DuckDB's SQL for every feature, straight from the events."""
    files = [f"{events}/{batch}.parquet" for batch in range(batches + 1)]
    counts = ",\n".join(
        f"count(*) FILTER (event_type = '{kind}' AND event_timestamp >= as_of - "
        f"INTERVAL {minutes} MINUTE) AS {kind}_count_{window}"
        for window, minutes in WINDOWS.items()
        for kind in TYPES
    )
    return f"""
        WITH events AS (FROM read_parquet({files})),
        clock AS (
          SELECT date_trunc('minute', max(event_timestamp)) + INTERVAL 1 MINUTE AS as_of FROM events
        )
        SELECT profile_id, gti, {counts}
        FROM events, clock
        GROUP BY profile_id, gti
    """


def wrong_keys(gold_rows: DataFrame, events: Path, batches: int) -> int:
    """Count the keys whose features are not what DuckDB counts straight from the events."""
    found = gold_rows.select("profile_id", "gti", *COLUMNS).toArrow()  # noqa: F841 (DuckDB reads it)
    different = " OR ".join(f"coalesce(f.{c}, 0) <> coalesce(w.{c}, 0)" for c in COLUMNS)
    (row,) = duckdb.sql(
        f"""
        SELECT count(*) FROM found AS f FULL JOIN ({wanted(events, batches)}) AS w
        USING (profile_id, gti)
        WHERE {different}
        """
    ).fetchall()
    return int(row[0])


def counted_again(events: Path, batches: int) -> float:
    """Yield the seconds that DuckDB takes on one thread for every feature from all events: the
    limit of the machine, for a result in memory."""
    own = duckdb.connect(config={"threads": 1})
    started = time.monotonic()
    own.execute(f"CREATE TABLE features AS {wanted(events, batches)}")
    return time.monotonic() - started


# -- ticks ---------------------------------------------------------------------------------------


def open_lake(folder: Path, mode: str) -> Lake:
    definition = load("engagement").overridden({"refresh": mode})
    return lakes.open_for_writing(session(), Place(folder / mode), definition)


def feed(lake: Lake, folder: Path, batch: int) -> float:
    """Run one batch through the pipeline's own function; yield its seconds."""
    events = lake.spark.read.parquet(f"{folder}/events/{batch}.parquet")
    started = time.monotonic()
    pipeline.feature_batch(events, batch, lake=lake, clock=Clock(), follows="event")
    return time.monotonic() - started


def load_lake(folder: Path) -> None:
    """Bring in the 25 hours, and copy both tables, in their layout, for the bare writes."""
    lake = open_lake(folder, MODES[0])
    feed(lake, folder, 0)
    copy(lake.spark, folder, BUCKETS, "bare_buckets", partition=["bucket_hour"])
    copy(lake.spark, folder, GOLD, "bare_features", partition=[])
    lake.spark.stop()
    shutil.copytree(folder / MODES[0], folder / MODES[1])


def copy(spark: SparkSession, folder: Path, source: str, name: str, partition: list[str]) -> None:
    feed_on = "true" if source == GOLD else "false"
    writer = spark.table(source).write.format("delta").partitionBy(*partition)
    writer = writer.option("delta.enableChangeDataFeed", feed_on)
    writer.option("delta.enableDeletionVectors", "false").save(str(folder / name))


def tick(lake: Lake, folder: Path, batch: int) -> Tick:
    """Run one tick, the check and the bare writes; only the first is the tick."""
    spark, mode = lake.spark, lake.pipeline.refresh
    lakes.register(spark, lake.place)
    there = lake.standing(lake.pipeline.views[0])
    before = versions(spark)
    group = f"tick-{batch}-{mode}"
    spark.sparkContext.setJobGroup(group, group)
    total = feed(lake, folder, batch)
    jobs = len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
    spark.sparkContext.setJobGroup("measure", "measure")
    rows = spark.table(GOLD)
    wrong = wrong_keys(rows, folder / "events", batch)
    if wrong:
        sys.exit(f"tick {batch}: {wrong} keys of gold are not what DuckDB counts; no times")
    commit = ledger.commits(spark, GOLD, 1)[0]
    assert commit.ledger is not None and commit.ledger["mode"] == mode
    read = files_read(lake, there, ledger.instant(commit.ledger["as_of"]), batch)
    bare_append, bare_merge = (0.0, 0.0) if mode == MODES[0] else bare(spark, folder, batch, commit)
    return Tick(
        total=total,
        append=commit.ledger["seconds"]["append"],
        diff=commit.ledger["seconds"]["diff"],
        merge=commit.metric("executionTimeMs") / 1000,
        bare_append=bare_append,
        bare_merge=bare_merge,
        duckdb=counted_again(folder / "events", batch),
        buckets_added=spark.table(BUCKETS).where(F.col("batch") == batch).count(),
        keys_changed=int(commit.ledger["changed"]),
        rows_read=spark.read.parquet(*read).count(),
        files_read=len(read),
        gold_rows=rows.count(),
        jobs=jobs,
        commits=sum(versions(spark)) - sum(before),
    )


def versions(spark: SparkSession) -> list[int]:
    return [ledger.commits(spark, table, 1)[0].version for table in (BUCKETS, GOLD)]


def files_read(lake: Lake, there: ledger.Standing, as_of: datetime, batch: int) -> list[str]:
    """Yield the bucket files that the refresh to `as_of` opened."""
    view = lake.pipeline.views[0]
    if lake.pipeline.refresh == "recompute":
        frame = gold.changes(lake, view, as_of, batch)
    else:
        frame = gold.moved(lake, view, there, as_of, batch)
    return [name for name in frame.inputFiles() if BUCKETS in name]


def bare(
    spark: SparkSession, folder: Path, batch: int, commit: ledger.Commit
) -> tuple[float, float]:
    """Write the tick's rows once more, plainly: yield the seconds of append and of MERGE."""
    rows, changed = f"{folder}/rows/{batch}", f"{folder}/changed/{batch}"
    spark.table(BUCKETS).where(F.col("batch") == batch).write.parquet(rows)
    reader = spark.read.option("readChangeFeed", "true").option("startingVersion", commit.version)
    after = reader.table(GOLD).where(F.col("_change_type").isin("insert", "update_postimage"))
    after.select(*spark.table(GOLD).columns).write.parquet(changed)
    spark.read.parquet(changed).createOrReplaceTempView("bare_changed")
    started = time.monotonic()
    writer = spark.read.parquet(rows).write.format("delta").mode("append")
    writer.save(f"{folder}/bare_buckets")
    appended = time.monotonic()
    spark.sql(
        f"MERGE INTO delta.`{folder}/bare_features` AS gold USING bare_changed AS changed "
        "ON gold.profile_id = changed.profile_id AND gold.gti = changed.gti "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    ).collect()
    return appended - started, time.monotonic() - appended


# -- the table -----------------------------------------------------------------------------------


def report(size: Size, ticks: dict[str, list[Tick]]) -> str:
    """Yield what was measured, as Markdown."""
    seconds = {
        "whole tick": "total",
        "- append of buckets": "append",
        "- query and diff": "diff",
        "- MERGE": "merge",
        "- the rest": "rest",
    }
    counts = {
        "bucket rows appended": "buckets_added",
        "keys changed": "keys_changed",
        "bucket rows in the files read": "rows_read",
        "bucket files read": "files_read",
        "rows of gold": "gold_rows",
        "Spark jobs": "jobs",
        "commits": "commits",
    }
    incremental = ticks["incremental"][1:]
    bare = {
        "bare append of the same rows": "bare_append",
        "bare MERGE of the same rows": "bare_merge",
        "DuckDB, one thread, all features from all events": "duckdb",
    }
    lines = [
        f"{size.events:,} events over 25 h, {size.keys:,} possible keys, "
        f"{size.events_per_tick:,} events a tick; 1 cold and {len(incremental)} warm ticks each.",
        "",
        machine(),
        "",
        "| warm tick, median (least to most) | recompute | incremental | ratio |",
        "|---|---:|---:|---:|",
        *(_row(name, field, ticks, "{:.2f} s") for name, field in seconds.items()),
        *(_row(name, field, ticks, "{:,.0f}") for name, field in counts.items()),
        "",
        f"The cold tick: recompute {ticks['recompute'][0].total:.1f} s, incremental "
        f"{ticks['incremental'][0].total:.1f} s.",
        "",
        "| beside it | median (least to most) |",
        "|---|---:|",
        *(f"| {name} | {_told(incremental, field, '{:.2f} s')} |" for name, field in bare.items()),
        f"| incremental tick / bare writes | {_told(incremental, 'ratio', '{:.1f}x')} |",
    ]
    return "\n".join(lines) + "\n"


def _row(name: str, field: str, ticks: dict[str, list[Tick]], form: str) -> str:
    cells = [_told(ticks[mode][1:], field, form) for mode in MODES]
    pairs = zip(
        *([getattr(each, field) for each in ticks[mode][1:]] for mode in MODES), strict=True
    )
    ratios = [before / after for before, after in pairs if after]
    ratio = f"{statistics.median(ratios):.1f}x" if ratios else ""
    return f"| {name} | {' | '.join(cells)} | {ratio} |"


def _told(ticks: list[Tick], field: str, form: str) -> str:
    values = [getattr(each, field) for each in ticks]
    middle, least, most = map(form.format, (statistics.median(values), min(values), max(values)))
    return middle if least == most else f"{middle} ({least} to {most})"


def machine() -> str:
    """Yield what ran it."""
    memory = psutil.virtual_memory().total / 2**30
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'"(\d+)', java)
    return (
        f"{datetime.now(timezone.utc):%Y-%m-%d}; {os.cpu_count()} cores, {memory:.0f} GB memory, "
        f"{platform.system()} {platform.machine()}; load before the run {LOAD:.1f}; "
        f"Python {platform.python_version()}, Java {found[1] if found else 'unknown'}, "
        f"Spark {version('pyspark')}, Delta {version('delta-spark')}, "
        f"DuckDB {version('duckdb')}; driver memory 2 GB."
    )


def write(table: str, name: str) -> None:
    """Replace a named part of the document."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    text = DOCUMENT.read_text(encoding="utf-8")
    head, tail = text.split(begin)[0], text.split(end)[1]
    DOCUMENT.write_text(f"{head}{begin}{table}{end}{tail}", encoding="utf-8")


LOAD = os.getloadavg()[0]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--size", choices=SIZES, default="small", help="how much there is")
    options.add_argument("--ticks", type=int, default=5, help="warm ticks, 5 or more")
    options.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    options.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.load:
        load_lake(asked.load)
        return
    size, folder = SIZES[asked.size], Path(tempfile.mkdtemp(prefix="tidemill-tick-"))
    ticks: dict[str, list[Tick]] = {mode: [] for mode in MODES}
    try:
        write_events(folder / "events", size, asked.ticks + 1)
        subprocess.run([sys.executable, __file__, "--load", str(folder)], check=True)
        opened = [open_lake(folder, mode) for mode in MODES]
        for batch in range(1, asked.ticks + 2):
            for lake in opened:
                ticks[lake.pipeline.refresh].append(tick(lake, folder, batch))
                print(f"tick {batch} {lake.pipeline.refresh}: equal to DuckDB", file=sys.stderr)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"gold is equal to DuckDB's count after each of {asked.ticks + 1} ticks of each mode\n")
    print(table := report(size, ticks))
    if asked.write:
        write(table, f"tick {asked.size}")


if __name__ == "__main__":
    main()
