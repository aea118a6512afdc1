"""What one tick costs: new events appended as buckets, gold refreshed, the clock a minute on.

    generated events ──load──► 25 h of buckets, gold       (a process of its own: the next is cold)
                     ──tick──► append ─► query and diff ─► MERGE       1 cold, some to warm up, more
                     ──bare──► the same rows by plain writes, nothing else: an append of buckets,
                               and gold by a MERGE that inserts, or by an append of new keys and a
                               MERGE that only updates; what is quicker counts

Two copies of the loaded lake take turns, one refreshed by `recompute`, one by `incremental`. After
every tick each gold is compared with DuckDB's count of the generated events; only when all are
equal are times printed. `--size small` is a tenth of `medium`, `large` ten times, `huge` a hundred
times; `--write` puts the table into docs/benchmarks.md. With 40 ticks or more (`--ticks 60
--recompute-ticks 1`) how even the incremental ones are is told as well, and written instead.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlparse

import duckdb
from measuring import machine, metered, say, spread, temporary, wish, write
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tidemill.config.pipeline_file import load
from tidemill.config.settings import Clock, Place
from tidemill.lake import catalog as lakes
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.open import open_for_writing
from tidemill.lake.session.session import session
from tidemill.pipeline import view_refresh
from tidemill.pipeline.gold.changes import changes_by_recompute, moved_keys
from tidemill.pipeline.steps import feature_step

__all__ = ["COLUMNS", "WINDOWS", "feed", "machine", "open_lake", "wanted", "write", "write_events"]
FIRST = datetime(2026, 11, 20, 0, 0, tzinfo=timezone.utc)
MINUTES = 25 * 60
LATE = 0.03
TYPES = ("select", "highlight", "view")
WINDOWS = {"1d": 1440, "12h": 720, "1h": 60}
COLUMNS = [f"{kind}_count_{window}" for window in WINDOWS for kind in TYPES]
Windows = Mapping[str, int]  # minutes by name
NAMES = """
    'profile-' || key // 50 AS profile_id,
    'title-' || key % 50 AS gti,
    CASE WHEN u0 < 0.25 THEN 'select' WHEN u0 < 0.9 THEN 'highlight' ELSE 'view' END AS event_type
"""  # of an event, from its key's number and a draw
BUCKETS, GOLD = "engagement_buckets", "engagement_features"


@dataclass(frozen=True)
class Size:
    """How much there is: events of the load, keys, events a tick.

    The load spans `minutes` and comes in `load_batches`. Of a tick's events the share `late` is
    late by up to `late_by` minutes. The first keys have most events, unless they are `even`; the
    share `hot` of all events has the first key.
    """

    events: int
    keys: int
    events_per_tick: int
    minutes: int = MINUTES
    late: float = LATE
    late_by: int = 180
    load_batches: int = 1
    even: bool = False
    hot: float = 0.0
    memory: str = "2g"
    new: float = 0.0  # the share of a tick's events that are of a key which nobody had before
    recompute_ticks: int | None = None  # of those counted; None for all


SIZES = {
    "small": Size(events=50_000, keys=5_000, events_per_tick=500, new=0.1),
    "medium": Size(events=500_000, keys=50_000, events_per_tick=5_000, new=0.1),
    "large": Size(events=5_000_000, keys=200_000, events_per_tick=20_000, new=0.1),
    "huge": Size(
        events=50_000_000,
        keys=1_000_000,
        events_per_tick=20_000,
        load_batches=10,
        memory="6g",
        recompute_ticks=3,
    ),
}
MODES = ("recompute", "incremental")
MANY = 40  # ticks, from which on their p95 is told
EVEN = 1.25  # of p95 to p50, at most


@dataclass(frozen=True)
class Tick:
    """One tick: seconds by step, CPU seconds and MiB, and what was read and written."""

    total: float
    cpu: float
    memory: float
    jvm: float
    append: float
    diff: float
    merge: float
    bare_append: float
    bare_merge: float
    bare_split: float
    duckdb: float
    buckets_added: int
    keys_changed: int
    rows_read: int
    rows_scanned: int
    files_read: int
    gold_rows: int
    jobs: int
    commits: int

    @property
    def rest(self) -> float:
        return self.total - self.append - self.diff - self.merge

    @property
    def ratio(self) -> float:
        return self.total / (self.bare_append + min(self.bare_merge, self.bare_split))


# -- events --------------------------------------------------------------------------------------


def write_events(folder: Path, size: Size, ticks: int) -> None:
    """Write a file per batch: of the load, each with its part of the time, then of each tick, a
    minute of events, a few of them late."""
    folder.mkdir(parents=True)
    for batch in range(size.load_batches):
        events, minutes = size.events // size.load_batches, size.minutes / size.load_batches
        _write_batch(folder, size, batch, events, f"{batch * minutes} + u2 * {minutes}")
    for tick in range(ticks):
        minute = f"{size.minutes + tick} - (u3 < {size.late})::INT * u2 * {size.late_by}"
        _write_batch(folder, size, size.load_batches + tick, size.events_per_tick, minute)


def _write_batch(folder: Path, size: Size, batch: int, events: int, minute: str) -> None:
    """Write `<batch>.parquet`; every column comes from hashes of the event's number.

    Key k is sqrt-likely, so the first keys have most events, the last ones some; even keys take
    turns in the load, and are drawn alike in a tick.
    """
    start = batch * 10**9  # of the numbers whose hashes are drawn
    draws = ", ".join(f"hash({start} + i * 5 + {n}) / 2**64 AS u{n}" for n in range(5))
    drawn = f"floor({size.keys} * u1 * u1)"
    if size.even:
        load = batch < size.load_batches
        drawn = f"({batch * events} + i) % {size.keys}" if load else f"floor({size.keys} * u1)"
    key = f"CASE WHEN hash({start} + i * 5 + 1, 7) / 2**64 < {size.hot} THEN 0 ELSE {drawn} END"
    key = key if size.hot else drawn
    if size.new and batch >= size.load_batches:
        own = f"{size.keys + (batch - size.load_batches) * events} + i"
        key = (
            f"CASE WHEN hash({start} + i * 5 + 2, 7) / 2**64 < {size.new} THEN {own} ELSE {key} END"
        )
    duckdb.sql(
        f"""
        COPY (
          WITH draws AS (SELECT i, {draws} FROM range({events}) AS numbers(i)),
          events AS (SELECT *, ({key})::BIGINT AS key FROM draws)
          SELECT
            {NAMES},
            make_timestamptz(
              ({int(FIRST.timestamp())} + floor({minute}) * 60 + floor(u4 * 60))::BIGINT * 1000000
            ) AS event_timestamp
          FROM events
        ) TO '{folder}/{batch}.parquet'
        """
    )


def columns(windows: Windows) -> list[str]:
    return [f"{kind}_count_{window}" for window in windows for kind in TYPES]


def wanted(events: Path, batches: int, windows: Windows = WINDOWS) -> str:
    """Return DuckDB's SQL for every feature, straight from the events of batches 0 to `batches`."""
    files = [f"{events}/{batch}.parquet" for batch in range(batches + 1)]
    counts = ",\n".join(
        f"count(*) FILTER (event_type = '{kind}' AND event_timestamp >= as_of - "
        f"INTERVAL {minutes} MINUTE) AS {kind}_count_{window}"
        for window, minutes in windows.items()
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


def wrong_keys(spark: SparkSession, events: Path, batches: int, windows: Windows = WINDOWS) -> int:
    """Count the keys whose features are not what DuckDB counts straight from the events.

    DuckDB reads the files that gold's newest version names; no row of them is deleted, as gold has
    no deletion vectors.
    """
    files = [unquote(urlparse(name).path) for name in spark.table(GOLD).inputFiles()]
    different = " OR ".join(f"coalesce(f.{c}, 0) <> coalesce(w.{c}, 0)" for c in columns(windows))
    (row,) = duckdb.sql(
        f"""
        SELECT count(*)
        FROM read_parquet({files}) AS f FULL JOIN ({wanted(events, batches, windows)}) AS w
        USING (profile_id, gti)
        WHERE {different}
        """
    ).fetchall()
    return int(row[0])


def counted_again(events: Path, batches: int) -> float:
    """Return the seconds that DuckDB takes on one thread for every feature from all events: the
    limit of the machine, for a result in memory."""
    own = duckdb.connect(config={"threads": 1})
    started = time.monotonic()
    own.execute(f"CREATE TABLE features AS {wanted(events, batches)}")
    return time.monotonic() - started


# -- ticks ---------------------------------------------------------------------------------------


def open_lake(
    folder: Path,
    mode: str,
    windows: Windows = WINDOWS,
    *,
    memory: str = "2g",
    words: Mapping[str, object] | None = None,
) -> Lake:
    """Return the lake `<folder>/<mode>` of the shipped pipeline, with these windows, and other
    words in its definition where given."""
    shipped = load("engagement")
    said: dict[str, object] = {"refresh": mode, **(words or {})}
    if windows != WINDOWS:
        view = {
            "name": "engagement",
            "keys": ["profile_id", "gti"],
            "event_time": "event_timestamp",
            "schema": dict.fromkeys(("profile_id", "gti", "event_type"), "string"),
            "features": [{"count": {"by": {"event_type": [*TYPES]}}, "over": [*windows]}],
        }
        said["views"] = [view]
    place = Place(folder / mode)
    return open_for_writing(session(driver_memory=memory), place, shipped.overridden(said))


def feed(lake: Lake, folder: Path, batch: int) -> float:
    """Run one batch through the pipeline's own function; return its seconds."""
    events = lake.spark.read.parquet(f"{folder}/events/{batch}.parquet")
    started = time.monotonic()
    feature_step.feature_batch(events, batch, lake=lake, clock=Clock(), follows="event")
    return time.monotonic() - started


def bring_in(lake: Lake, folder: Path, batches: int) -> None:
    """Append the batches of the load, and refresh gold once."""
    for batch in range(batches):
        events = lake.spark.read.parquet(f"{folder}/events/{batch}.parquet")
        feature_step.append_batch(events, batch, lake=lake)
        say(f"load: batch {batch + 1} of {batches} is in the buckets")
    view_refresh.refresh_view(lake, lake.pipeline.views[0].name, Clock(), "event")
    say("load: gold is there")


def load_lake(folder: Path, size: Size) -> None:
    """Bring in the load, and copy both tables, in their layout, for the bare writes."""
    lake = open_lake(folder, MODES[0], memory=size.memory)
    bring_in(lake, folder, size.load_batches)
    copy(lake.spark, folder, BUCKETS, "bare_buckets", partition=["bucket_hour"])
    for name in ("bare_merged", "bare_split"):
        copy(lake.spark, folder, GOLD, name, partition=[])
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
    there = lake.gold_state(lake.pipeline.views[0])
    before = versions(spark)
    group = f"tick-{batch}-{mode}"
    spark.sparkContext.setJobGroup(group, group)
    with metered() as used:
        total = feed(lake, folder, batch)
    jobs = len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
    spark.sparkContext.setJobGroup("measure", "measure")
    if wrong := wrong_keys(spark, folder / "events", batch):
        sys.exit(f"tick {batch}: {wrong} keys of gold are not what DuckDB counts; no times")
    commit = ledger.commits(spark, GOLD, 1)[0]
    assert commit.ledger is not None and commit.ledger["mode"] == mode
    read, scanned = bucket_reads(lake, there, ledger.instant(commit.ledger["as_of"]), batch)
    plain = (0.0, 0.0, 0.0) if mode == MODES[0] else bare(spark, folder, batch, commit)
    bare_append, bare_merge, bare_split = plain
    return Tick(
        total=total,
        **vars(used),
        append=commit.ledger["seconds"]["append"],
        diff=commit.ledger["seconds"]["diff"],
        merge=commit.metric("executionTimeMs") / 1000,
        bare_append=bare_append,
        bare_merge=bare_merge,
        bare_split=bare_split,
        duckdb=counted_again(folder / "events", batch),
        buckets_added=spark.table(BUCKETS).where(F.col("batch") == batch).count(),
        keys_changed=int(commit.ledger["changed"]),
        rows_read=spark.read.parquet(*read).count(),
        rows_scanned=scanned,
        files_read=len(read),
        gold_rows=spark.table(GOLD).count(),
        jobs=jobs,
        commits=sum(versions(spark)) - sum(before),
    )


def versions(spark: SparkSession) -> list[int]:
    return [ledger.commits(spark, table, 1)[0].version for table in (BUCKETS, GOLD)]


def bucket_reads(
    lake: Lake, there: ledger.GoldState, as_of: datetime, batch: int
) -> tuple[list[str], int]:
    """Return the bucket files that the refresh to `as_of` opened, and how many rows it read of
    them: those of the pages that could not be skipped, by the metrics of the scans."""
    view = lake.pipeline.views[0]
    if lake.pipeline.refresh == "recompute":
        frame = changes_by_recompute(lake, view, as_of, batch)
    else:
        frame = moved_keys(lake, view, there, as_of, batch)
    query = frame._jdf.queryExecution()
    query.toRdd().count()
    leaves = query.executedPlan().collectLeaves()
    scans = [leaves.apply(n) for n in range(leaves.size())]
    rows = (s.metrics().apply("numOutputRows").value() for s in scans if BUCKETS in s.nodeName())
    return [name for name in frame.inputFiles() if BUCKETS in name], sum(rows)


def bare(
    spark: SparkSession, folder: Path, batch: int, commit: ledger.Commit
) -> tuple[float, float, float]:
    """Write the tick's rows once more, plainly: return the seconds of the append of buckets, of
    a MERGE of gold, and of an append of its new keys and a MERGE that only updates."""
    rows, changed, new = (f"{folder}/{name}/{batch}" for name in ("rows", "changed", "new"))
    spark.table(BUCKETS).where(F.col("batch") == batch).write.parquet(rows)
    reader = spark.read.option("readChangeFeed", "true").option("startingVersion", commit.version)
    reader = reader.option("endingVersion", commit.version)
    for path, kind in ((new, "insert"), (changed, "update_postimage")):
        after = reader.table(GOLD).where(F.col("_change_type") == kind)
        after.select(*spark.table(GOLD).columns).write.parquet(path)
    spark.read.parquet(changed).createOrReplaceTempView("bare_changed")
    spark.read.parquet(changed, new).createOrReplaceTempView("bare_all")
    times = [time.monotonic()]
    append_plainly(spark, rows, f"{folder}/bare_buckets")
    times.append(time.monotonic())
    merge_plainly(spark, "bare_all", f"{folder}/bare_merged", "WHEN NOT MATCHED THEN INSERT *")
    times.append(time.monotonic())
    append_plainly(spark, new, f"{folder}/bare_split")
    merge_plainly(spark, "bare_changed", f"{folder}/bare_split")
    times.append(time.monotonic())
    append, merged, split = (later - earlier for earlier, later in pairwise(times))
    return append, merged, split


def append_plainly(spark: SparkSession, rows: str, table: str) -> None:
    """Append the rows of Parquet files, where there are any."""
    if any(Path(rows).glob("*.parquet")):
        spark.read.parquet(rows).write.format("delta").mode("append").save(table)


def merge_plainly(spark: SparkSession, rows: str, table: str, more: str = "") -> None:
    """Merge the rows of a view into gold's copy, by key."""
    spark.sql(
        f"MERGE INTO delta.`{table}` AS gold USING {rows} AS changed "
        "ON gold.profile_id = changed.profile_id AND gold.gti = changed.gti "
        f"WHEN MATCHED THEN UPDATE SET * {more}"
    ).collect()


# -- the table -----------------------------------------------------------------------------------


SECONDS = {
    "whole tick": "total",
    "- append of buckets": "append",
    "- query and diff": "diff",
    "- MERGE": "merge",
    "- the rest": "rest",
    "CPU of Python and JVM": "cpu",
}
COUNTS = {
    "peak memory of Python and JVM, MiB": "memory",
    "- of the JVM": "jvm",
    "bucket rows appended": "buckets_added",
    "keys changed": "keys_changed",
    "bucket rows in the files that are opened": "rows_read",
    "bucket rows read of them": "rows_scanned",
    "bucket files read": "files_read",
    "rows of gold": "gold_rows",
    "Spark jobs": "jobs",
    "commits": "commits",
}
BARE = {
    "bare append of the same rows": "bare_append",
    "bare MERGE of the same rows": "bare_merge",
    "bare append of new keys, MERGE of the others": "bare_split",
    "DuckDB, one thread, all features from all events": "duckdb",
}


def report(size: Size, ticks: dict[str, list[Tick]], warm: int) -> str:
    """Return what was measured, as Markdown; the first tick of each mode is the cold one."""
    cold = {mode: each[0].total for mode, each in ticks.items()}
    counted = {mode: each[1 + warm :] for mode, each in ticks.items()}
    incremental, fewer = counted["incremental"], len(counted["recompute"])
    few = "" if fewer == len(incremental) else f", of recompute {fewer}"
    lines = [
        f"{size.events:,} events over 25 h, {size.keys:,} possible keys, "
        f"{size.events_per_tick:,} events a tick; 1 cold tick and {warm} to warm up, then "
        f"{len(incremental)} warm ticks{few}.",
        "",
        machine(size.memory),
        "",
        "| warm tick, median (least to most) | recompute | incremental | ratio |",
        "|---|---:|---:|---:|",
        *(_row(name, field, counted, "{:.2f} s") for name, field in SECONDS.items()),
        *(_row(name, field, counted, "{:,.0f}") for name, field in COUNTS.items()),
        "",
        f"The cold tick: recompute {cold['recompute']:.1f} s, incremental "
        f"{cold['incremental']:.1f} s.",
        "",
        "| beside it | median (least to most) |",
        "|---|---:|",
        *(f"| {name} | {_told(incremental, field, '{:.2f} s')} |" for name, field in BARE.items()),
        f"| incremental tick / bare writes | {_told(incremental, 'ratio', '{:.1f}x')} |",
    ]
    return "\n".join(lines) + "\n"


def evenness(size: Size, counted: list[Tick]) -> str:
    """Return how far the slow ticks are from the median one, as Markdown."""
    seconds = [each.total for each in counted]
    middle, high = statistics.median(seconds), statistics.quantiles(seconds, n=100)[94]
    return (
        f"{len(seconds)} warm incremental ticks in a row, {size.events:,} events over 25 h, "
        f"{size.events_per_tick:,} a tick: p50 {middle:.2f} s, p95 {high:.2f} s, longest "
        f"{max(seconds):.2f} s; p95 to p50 {wish(high / middle, EVEN)}.\n\n{machine(size.memory)}\n"
    )


def _row(name: str, field: str, ticks: dict[str, list[Tick]], form: str) -> str:
    cells = [_told(ticks[mode], field, form) for mode in MODES]
    pairs = zip(*([getattr(each, field) for each in ticks[mode]] for mode in MODES), strict=False)
    ratios = [before / after for before, after in pairs if after]
    ratio = f"{statistics.median(ratios):.1f}x" if ratios else ""
    return f"| {name} | {' | '.join(cells)} | {ratio} |"


def _told(ticks: list[Tick], field: str, form: str) -> str:
    return spread([getattr(each, field) for each in ticks], form)


def measure(folder: Path, size: Size, warm: int, counted: int) -> dict[str, list[Tick]]:
    """Return the ticks of each mode, the cold one first; recompute may end earlier."""
    ticks: dict[str, list[Tick]] = {mode: [] for mode in MODES}
    fewer = counted if size.recompute_ticks is None else size.recompute_ticks
    most = {MODES[0]: 1 + warm + min(fewer, counted), MODES[1]: 1 + warm + counted}
    opened = [open_lake(folder, mode, memory=size.memory) for mode in MODES]
    for number in range(1 + warm + counted):
        for lake in opened:
            mode = lake.pipeline.refresh
            if number < most[mode]:
                ticks[mode].append(tick(lake, folder, size.load_batches + number))
                say(f"tick {number + 1} {mode}: {ticks[mode][-1].total:.2f} s, equal to DuckDB")
    return ticks


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--size", choices=SIZES, default="small", help="how much there is")
    options.add_argument("--ticks", type=int, default=5, help="warm ticks counted, 5 or more")
    options.add_argument("--warm", type=int, default=5, help="ticks of each mode to warm up")
    options.add_argument("--recompute-ticks", type=int, help="fewer of them for recompute")
    options.add_argument("--memory", help="driver memory, such as 4g")
    options.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    options.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    asked = options.parse_args()
    said = {"memory": asked.memory, "recompute_ticks": asked.recompute_ticks}
    size = replace(SIZES[asked.size], **{n: v for n, v in said.items() if v is not None})
    if asked.load:
        load_lake(asked.load, size)
        return
    with temporary("tick") as folder:
        write_events(folder / "events", size, 1 + asked.warm + asked.ticks)
        same = ["--size", asked.size, "--memory", size.memory]
        subprocess.run([sys.executable, __file__, "--load", str(folder), *same], check=True)
        ticks = measure(folder, size, asked.warm, asked.ticks)
    told = " and ".join(f"{len(ticks[mode])} ticks of {mode}" for mode in MODES)
    print(f"gold is equal to DuckDB's count after each of {told}\n")
    print(table := report(size, ticks, asked.warm))
    if asked.ticks >= MANY:
        print(told := evenness(size, ticks[MODES[1]][1 + asked.warm :]))
        if asked.write:
            write(told, f"even ticks {asked.size}")
    elif asked.write:
        write(table, f"tick {asked.size}")


if __name__ == "__main__":
    main()
