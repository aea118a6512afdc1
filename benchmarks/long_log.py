"""What the files of a long log cost a tick, and what is left once maintenance has shortened it.

    empty lake ──► N commits more in the logs of buckets and gold, days old ──► load ──► ticks
        short      none of them
        long       all of them (not with --only-cleaned)
        cleaned    all of them, then `log` of `tidemill maintain`

The lakes take turns, tick by tick, in one process: a ratio is the median of the ratios of such
turns, to the short one's. Gold is compared with DuckDB's count after each tick that counts. Then
`tidemill_batches` gets the files that a run leaves apart at most, then as many as it appends in a
day, none joined, and `<view>_current` is read with them and without, before and after maintenance
has joined them. `--write` puts the table into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

import tick
from measuring import machine, say, spread, temporary, wish, write
from pyspark.sql import SparkSession

from tidemill.config.settings import Clock
from tidemill.lake.catalog import Lake, register
from tidemill.operations import maintenance
from tidemill.pipeline import batch_log

SIZE = tick.Size(events=50_000, keys=5_000, events_per_tick=500)
SHORT, LONG, CLEANED = "short", "long", "cleaned"
MODE = "incremental"
WISHED = 1.2
LINKS = 30_000  # names of one file: a file system takes so many
EACH = 10  # commits between two checkpoints
APART, DAY = batch_log.JOINED_EVERY, 1_440  # files of tidemill_batches


# -- lakes ---------------------------------------------------------------------------------------


def make(folder: Path, files: int) -> None:
    """Make the lakes: an empty one, copies of it with a longer log, and the same load in each."""
    lake = tick.open_lake(folder / SHORT, MODE)
    for table in (tick.BUCKETS, tick.GOLD):
        _delta_log(lake.spark, folder / SHORT / MODE / table).checkpoint()
    for name in names(folder):
        if name != SHORT:
            shutil.copytree(folder / SHORT, folder / name)
            for table in (tick.BUCKETS, tick.GOLD):
                lengthen(folder / name / MODE / table / "_delta_log", files)
            say(f"{name}: {files:,} files more in each of two logs")
    for name in names(folder):
        opened = tick.open_lake(folder / name, MODE)
        tick.bring_in(opened, folder, SIZE.load_batches)
        batch_log.record(opened)


def names(folder: Path) -> list[str]:
    return (folder / "lakes").read_text().split()


def _delta_log(spark: SparkSession, table: Path):  # type: ignore[no-untyped-def]
    logs = spark._jvm.org.apache.spark.sql.delta.DeltaLog
    return logs.forTable(spark._jsparkSession, str(table))


def lengthen(log: Path, files: int) -> None:
    """Put so many files behind version 0, whose state stays: commits that change nothing, each with
    its checksum, and checkpoints."""
    commits = files * EACH // (2 * EACH + 1)
    checkpoint = log / f"{0:020}.checkpoint.parquet"
    info = {"timestamp": 0, "operation": "COMPUTE STATS", "operationParameters": {}}
    text = {
        ".json": json.dumps({"commitInfo": info}) + "\n",
        ".crc": (log / f"{0:020}.crc").read_text(),
    }
    old = (datetime.now(timezone.utc) - timedelta(days=5)).timestamp()
    sources: dict[str, Path] = {}
    for version in range(1, commits + 1):
        named = log / f"{version:020}.json"
        for suffix, content in text.items():
            if version % LINKS == 1:
                sources[suffix] = named.with_suffix(suffix)
                sources[suffix].write_text(content)
                os.utime(sources[suffix], (old, old))
            else:
                os.link(sources[suffix], named.with_suffix(suffix))
        if version % EACH == 0 or version == commits:
            shutil.copy(checkpoint, log / f"{version:020}.checkpoint.parquet")
            os.utime(log / f"{version:020}.checkpoint.parquet", (old, old))
    last = json.loads((log / "_last_checkpoint").read_text())
    kept = {name: last[name] for name in ("size", "sizeInBytes", "numOfAddFiles") if name in last}
    (log / "_last_checkpoint").write_text(json.dumps({"version": commits, **kept}))


def log_files(folder: Path, name: str) -> int:
    root = folder / name / MODE
    return sum(len(os.listdir(root / table / "_delta_log")) for table in (tick.BUCKETS, tick.GOLD))


def shorten(lake: Lake) -> float:
    """Run the step `log`; return its seconds."""
    register(lake.spark, lake.place)
    started = time.monotonic()
    for done in maintenance.maintain(lake, maintenance.plan(lake, Clock(), ("log",))):
        say(f"{done.table}: {done.reason}: {done.result}")
    return time.monotonic() - started


# -- ticks ---------------------------------------------------------------------------------------


def measure(
    folder: Path, lakes: Mapping[str, Lake], warm: int, counted: int
) -> dict[str, list[float]]:
    """Return the seconds of each lake's ticks, without those that only warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in lakes}
    for number in range(warm + counted):
        for name, lake in lakes.items():
            register(lake.spark, lake.place)
            batch = SIZE.load_batches + number
            took = tick.feed(lake, folder, batch)
            if number < warm:
                continue
            if wrong := tick.wrong_keys(lake.spark, folder / "events", batch):
                sys.exit(f"{name}: {wrong} keys of gold are not what DuckDB counts; no times")
            seconds[name].append(took)
            say(f"tick {number + 1} {name}: {took:.2f} s, equal to DuckDB")
    return seconds


def read_current(lake: Lake, warm: int = 9, counted: int = 9) -> list[float]:
    """Return the seconds of reading all of `engagement_current`, after some that only warm up."""
    register(lake.spark, lake.place)
    seconds = []
    for _ in range(warm + counted):
        started = time.monotonic()
        frame = lake.spark.table("engagement_current")
        frame.write.format("noop").mode("overwrite").save()
        seconds.append(time.monotonic() - started)
    return seconds[warm:]


def append_batches(lake: Lake, files: int) -> None:
    """Give `tidemill_batches` so many files of today more: its newest append again and again, each
    a commit and a file, which `batch_log.append` would take half a second for; then a checkpoint.
    """
    assert lake.place.folder is not None
    table = lake.place.folder / "tidemill_batches"
    log = table / "_delta_log"
    newest = max(int(commit.stem) for commit in log.glob("*.json"))
    actions = [json.loads(line) for line in (log / f"{newest:020}.json").read_text().splitlines()]
    (add,) = (action["add"] for action in actions if "add" in action)
    first = table / add["path"]
    for version in range(newest + 1, newest + 1 + files):
        add["path"] = f"{first.parent.name}/part-{version:05}-again.snappy.parquet"
        os.link(first, table / add["path"])
        lines = "".join(json.dumps(action) + "\n" for action in actions)
        (log / f"{version:020}.json").write_text(lines)
    newest, now = newest + files, time.time()
    for file in log.glob("0*.*"):  # a minute between two commits
        at = now - 60 * (newest - int(file.name.split(".")[0]))
        os.utime(file, (at, at))
    _delta_log(lake.spark, table).checkpoint()


def join_batches(lake: Lake) -> None:
    """Run the steps `optimize` and `log` for `tidemill_batches`, in their order."""
    register(lake.spark, lake.place)
    for group in ("optimize", "log"):
        steps = maintenance.plan(lake, Clock(), (group,))
        maintenance.maintain(lake, [step for step in steps if step.table == "tidemill_batches"])


# -- the table -----------------------------------------------------------------------------------


def report(
    files: int,
    seconds: Mapping[str, list[float]],
    logs: Mapping[str, int],
    cleaning: float,
    reads: Mapping[str, list[float]],
) -> str:
    """Return what was measured, as Markdown."""
    short = seconds[SHORT]
    ratios = {
        name: statistics.median(mine / base for mine, base in zip(each, short, strict=True))
        for name, each in seconds.items()
    }
    lines = [
        f"{SIZE.events:,} events over 25 h, {SIZE.keys:,} possible keys, "
        f"{SIZE.events_per_tick:,} events a tick; {files:,} files more in each of the logs of "
        f"buckets and gold; {len(short)} warm ticks of each lake, in turns.",
        "",
        machine(),
        "",
        "| log | files in the two logs | whole tick | ratio |",
        "|---|---:|---:|---:|",
        *(
            f"| {name} | {logs[name]:,} | {spread(each, '{:.2f} s')} | {ratios[name]:.2f}x |"
            for name, each in seconds.items()
        ),
        "",
        f"Whole tick, cleaned to short: {wish(ratios[CLEANED], WISHED)}. "
        f"The step `log`, all of it at once, took {cleaning:.1f} s.",
    ]
    if reads:
        first = statistics.median(next(iter(reads.values())))
        lines += [
            "",
            "| `engagement_current`, files of `tidemill_batches` | seconds | ratio |",
            "|---|---:|---:|",
            *(
                f"| {name} | {spread(each, '{:.2f} s')} | {statistics.median(each) / first:.2f}x |"
                for name, each in reads.items()
            ),
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--files", type=int, default=20_000, help="more in each log")
    options.add_argument("--ticks", type=int, default=5, help="warm ticks counted, 5 or more")
    options.add_argument("--warm", type=int, default=5, help="ticks of each lake to warm up")
    options.add_argument("--only-cleaned", action="store_true", help="no tick with the long log")
    options.add_argument("--no-views", action="store_true", help="ticks alone")
    options.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    options.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.make:
        make(asked.make, asked.files)
        return
    with temporary("long-log") as folder:
        wanted = [SHORT, CLEANED] if asked.only_cleaned else [SHORT, LONG, CLEANED]
        (folder / "lakes").write_text(" ".join(wanted))
        tick.write_events(folder / "events", SIZE, asked.warm + asked.ticks)
        same = ["--make", str(folder), "--files", str(asked.files)]
        subprocess.run([sys.executable, __file__, *same], check=True)
        lakes = {name: tick.open_lake(folder / name, MODE) for name in wanted}
        cleaning = shorten(lakes[CLEANED])
        logs = {name: log_files(folder, name) for name in wanted}
        seconds = measure(folder, lakes, asked.warm, asked.ticks)
        reads: dict[str, list[float]] = {}
        if not asked.no_views:
            lake = lakes[SHORT]
            join_batches(lake)
            reads["joined"] = read_current(lake)
            append_batches(lake, APART)
            reads[f"{APART} more, of today: the most that a run leaves apart"] = read_current(lake)
            for _ in range(DAY // APART - 1):
                append_batches(lake, APART)
            reads[f"{DAY:,} more: a day of them, none joined"] = read_current(lake)
            join_batches(lake)
            reads["the same, after maintenance"] = read_current(lake)
    print(table := report(asked.files, seconds, logs, cleaning, reads))
    if asked.write:
        write(table, f"long log {asked.files}")


if __name__ == "__main__":
    main()
