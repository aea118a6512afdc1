"""What one batch costs on its whole way: a file of records landed, cleaned, counted, in gold.

    a file of records ──a run──► bronze ─► events ─► buckets ─► gold    one after the other
                      ──bare───► Delta ──► Delta ──► Delta ──► Delta    the same rows, plainly

A tenth of a batch's events are of keys that nobody had before, one of twenty is late by up to a
day, each has an id. The lake has 25 hours of events, brought in by a process of its own, so that
the first batch is cold. Bare is: the lines appended as text, parsed (`from_json`) and appended by
the hour, the same bucket rows appended, and gold by a MERGE that inserts, or by an append of its
new keys and a MERGE that only updates; what is quicker counts. It is run when the run has ended,
warm, in the same session. A query's seconds are Spark's (`triggerExecution`). After each batch gold
is compared with DuckDB's count of the events; only when all are equal are times printed. `--write`
puts the table into docs/benchmarks.md; `--profile` looks where the run's time goes, which slows it.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb
import tick
from backlog import QUERIES, TEXTS
from measuring import cpu_seconds, machine, say, spread, temporary, took, tree, write
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tidemill.config.settings import Clock
from tidemill.lake.batches import BatchRow
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.session.session import local_session
from tidemill.monitoring.profile.batch_profile import BatchProfile, Profiles
from tidemill.monitoring.profile.stack_parts import PARTS
from tidemill.pipeline.observer import Observer
from tidemill.pipeline.queries import Pipeline
from tidemill.pipeline.runner import Stop, run, run_once
from tidemill.sources.files.source import Files

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
import executors

DAY = 24 * 60  # minutes
SIZES = {
    "tiny": replace(tick.SIZES["small"], late=0.05, late_by=DAY),
    "S": replace(tick.SIZES["large"], late=0.05, late_by=DAY, load_batches=5),
    "L": replace(tick.SIZES["huge"], late=0.05, late_by=DAY, load_batches=50, new=0.1),
}
MODE = "incremental"
SCHEMA = f"{TEXTS}, event_timestamp TIMESTAMP"
FIELDS = ["profile_id", "gti", "event_type", "event_timestamp"]


@dataclass
class Batch:
    """A batch's seconds of CPU, its seconds by query, and those of the bare writes."""

    cpu: float
    seconds: dict[str, float]
    bare: dict[str, float] = field(default_factory=dict)

    @property
    def whole(self) -> float:
        return sum(self.seconds.values())

    @property
    def floor(self) -> float:
        return sum(self.bare.values())


# -- records -------------------------------------------------------------------------------------


def write_records(folder: Path, batches: int) -> None:
    """Write the events of each batch as JSON lines, each with an id of its own."""
    (folder / "records").mkdir()
    for batch in range(batches):
        at = "strftime(event_timestamp AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%SZ')"
        duckdb.sql(
            f"""
            COPY (
              SELECT '{batch}-' || row_number() OVER () AS event_id, profile_id, gti, event_type,
                {at} AS event_timestamp
              FROM '{folder}/events/{batch}.parquet'
            ) TO '{records(folder, batch)}' (FORMAT json)
            """
        )


def records(folder: Path, batch: int) -> Path:
    return folder / "records" / f"{batch}.json"


def let_come(folder: Path, batch: int) -> None:
    """Put a batch's file where the source looks, whole at once."""
    (folder / "input").mkdir(exist_ok=True)
    (folder / "input" / f"{batch:06}.json").hardlink_to(records(folder, batch))


# -- the run -------------------------------------------------------------------------------------


def opened(folder: Path, size: tick.Size, apart: bool) -> Pipeline:
    """Return the shipped pipeline over the files, looking each second; with its tasks in processes
    of their own where they run `apart`."""
    local_session(driver_memory=size.memory, extra=executors.settings() if apart else {})
    words = {"triggers": dict.fromkeys(QUERIES, "1s")}
    lake = tick.open_lake(folder, MODE, memory=size.memory, words=words)
    return Pipeline(lake, Files(folder / "input"), Clock(), "event")


def load(folder: Path, size: tick.Size, apart: bool) -> None:
    """Bring in the load, and copy gold and buckets for the bare writes."""
    for batch in range(size.load_batches):
        let_come(folder, batch)
    pipeline = opened(folder, size, apart)
    run_once(pipeline, Stop())
    spark = pipeline.lake.spark
    tick.copy(spark, folder, tick.BUCKETS, "bare_buckets", partition=["bucket_hour"])
    for name in ("bare_merged", "bare_split"):
        tick.copy(spark, folder, tick.GOLD, name, partition=[])
    events = spark.table(pipeline.lake.tables.events.name)
    events = events.select("event_id", *FIELDS, "event_hour")
    events.write.format("delta").partitionBy("event_hour").save(str(folder / "bare_events"))
    spark.stop()


@dataclass
class Feeder(Observer):
    """Lets a batch come when the last one is in gold and was compared, and keeps what it took."""

    folder: Path
    lake: Lake
    first: int
    count: int
    batches: list[Batch] = field(default_factory=list)
    _in_gold: bool = False
    _cpu: float = 0.0

    def on_start(self, pipeline: Pipeline) -> None:
        """Let the first batch come."""
        self._let_come()

    def on_batch(self, rows: Sequence[BatchRow]) -> None:
        """Remember that the batch is in gold."""
        self._in_gold = self._in_gold or any(row.query == "feature" for row in rows)

    def on_idle(self, pipeline: Pipeline, busy: bool) -> None:
        """Keep what the batch took when Spark has told all of it, and let the next one come."""
        seconds = self._seconds() if self._in_gold and not busy else None
        if seconds is None:
            return
        number = len(self.batches)
        self.batches.append(Batch(cpu_seconds(tree()) - self._cpu, seconds))
        if wrong := tick.wrong_keys(self.lake.spark, self.folder / "events", self.first + number):
            sys.exit(f"batch {number}: {wrong} keys of gold are not what DuckDB counts; no times")
        say(f"batch {number + 1}: {self.batches[-1].whole:.2f} s, equal to DuckDB")
        if not self.has_enough:
            self._let_come()

    @property
    def has_enough(self) -> bool:
        """Whether all batches are in gold."""
        return len(self.batches) == self.count

    def _let_come(self) -> None:
        self._in_gold, self._cpu = False, cpu_seconds(tree())
        let_come(self.folder, self.first + len(self.batches))

    def _seconds(self) -> dict[str, float] | None:
        """Return the seconds of each query's newest batch; None where Spark has not told yet."""
        found = {}
        for query in self.lake.spark.streams.active:
            told = [each for each in query.recentProgress if each["numInputRows"]]
            if len(told) != len(self.batches) + 1:
                return None
            name = next(step for step in QUERIES if (query.name or "").endswith(step))
            found[name] = told[-1]["durationMs"]["triggerExecution"] / 1000
        return found if len(found) == len(QUERIES) else None


# -- the bare writes -----------------------------------------------------------------------------


def run_bare(folder: Path, lake: Lake, first: int, batches: Sequence[Batch]) -> None:
    """Write each batch's rows once more, plainly, and keep what that took."""
    spark = lake.spark
    newest = reversed(ledger.commits(spark, tick.GOLD, len(batches)))
    for number, (batch, commit) in enumerate(zip(batches, newest, strict=True)):
        assert commit.ledger is not None
        path = str(records(folder, first + number))
        batch.bare = {
            "land": took(lambda: append_lines(spark, path, folder)),  # noqa: B023
            "clean": took(lambda: append_events(spark, path, folder)),  # noqa: B023
        }
        append, merged, split = tick.bare(spark, folder, int(commit.ledger["batch"]), commit)
        batch.bare["feature"] = append + min(merged, split)
        say(f"bare {number + 1}: {batch.floor:.2f} s")


def append_lines(spark: SparkSession, path: str, folder: Path) -> None:
    lines = spark.read.text(path).withColumn("ingested_at", F.current_timestamp())
    lines.write.format("delta").mode("append").save(str(folder / "bare_lines"))


def append_events(spark: SparkSession, path: str, folder: Path) -> None:
    event = F.from_json("value", SCHEMA).alias("event")
    hour = F.date_trunc("hour", "event_timestamp")
    rows = spark.read.text(path).select(event).select("event.*").withColumn("event_hour", hour)
    writer = rows.write.format("delta").mode("append").partitionBy("event_hour")
    writer.save(str(folder / "bare_events"))


# -- the table -----------------------------------------------------------------------------------


def report(name: str, size: tick.Size, batches: Sequence[Batch], warm: int) -> str:
    """Return what was measured, as Markdown; the first batch is the cold one."""
    cold, counted = batches[0], batches[1 + warm :]
    rows = [
        f"| {step} | {spread([b.seconds[step] for b in counted], '{:.2f} s')} "
        f"| {spread([b.bare[step] for b in counted], '{:.2f} s')} "
        f"| {statistics.median(b.seconds[step] / b.bare[step] for b in counted):.2f}x |"
        for step in QUERIES
    ]
    ratio = statistics.median(b.whole / b.floor for b in counted)
    return "\n".join(
        [
            f"{name}: {size.events:,} events over 25 h, {size.keys:,} possible keys, "
            f"{size.events_per_tick:,} events a batch, a tenth of new keys, one of twenty late by "
            f"up to a day; 1 cold batch and {warm} to warm up, then {len(counted)} warm ones.",
            "",
            machine(size.memory),
            "",
            "| warm batch, median (least to most) | Tidemill | bare | ratio |",
            "|---|---:|---:|---:|",
            *rows,
            f"| whole | {spread([b.whole for b in counted], '{:.2f} s')} "
            f"| {spread([b.floor for b in counted], '{:.2f} s')} | {ratio:.2f}x |",
            "",
            f"The cold batch: {cold.whole:.1f} s. CPU of a warm one, until it is in gold: "
            f"{spread([b.cpu for b in counted], '{:.1f} s')}.",
            "",
        ]
    )


def parts(profiles: Sequence[BatchProfile], counted: int) -> str:
    """Return where the time of the last batches went, by query and part, as Markdown."""
    newest = {q: [p for p in profiles if p.query == q and p.batch is not None] for q in QUERIES}
    rows = [f"| {' | '.join(['seconds, median', *QUERIES])} |", "|---|" + "---:|" * len(QUERIES)]
    for part in PARTS:
        medians = [
            statistics.median(each.parts.get(part, 0.0) for each in newest[query][-counted:])
            for query in QUERIES
        ]
        if max(medians) >= 0.005:
            rows.append(f"| {part} | {' | '.join(f'{seconds:.2f}' for seconds in medians)} |")
    return "\n".join([*rows, ""])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--size", choices=SIZES, default="tiny", help="how much there is")
    options.add_argument("--batches", type=int, default=5, help="warm batches counted, 5 or more")
    options.add_argument("--warm", type=int, default=5, help="batches to warm up")
    options.add_argument("--executors", action="store_true", help=f"on {executors.EXECUTORS}")
    options.add_argument("--profile", action="store_true", help="say where the time went, too")
    options.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    options.add_argument("--load", type=Path, help=argparse.SUPPRESS)
    asked = options.parse_args()
    size = SIZES[asked.size]
    if asked.load:
        load(asked.load, size, asked.executors)
        return
    with temporary("whole") as folder:
        count = 1 + asked.warm + asked.batches
        tick.write_events(folder / "events", size, count)
        write_records(folder, size.load_batches + count)
        loading = [sys.executable, __file__, "--load", str(folder), "--size", asked.size]
        subprocess.run(loading + ["--executors"] * asked.executors, check=True)
        say("load: gold is there")
        pipeline = opened(folder, size, asked.executors)
        feeder = Feeder(folder, pipeline.lake, size.load_batches, count)
        profiles = Profiles()
        with profiles.of(pipeline) if asked.profile else nullcontext():
            run(pipeline, Stop(), [feeder])
        run_bare(folder, pipeline.lake, size.load_batches, feeder.batches)
    print(f"gold is equal to DuckDB's count after each of {count} batches\n")
    print(table := report(asked.size, size, feeder.batches, asked.warm))
    if asked.profile:
        print(parts(profiles.fresh(), asked.batches))
    if asked.write:
        write(table, f"whole {asked.size}" + " on executors" * asked.executors)


if __name__ == "__main__":
    main()
