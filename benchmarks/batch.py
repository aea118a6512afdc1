"""What clean costs: a small batch beside much history, and a large batch, beside Spark's bare work.

    look-up    2,000 records, 5 % of them late by up to a day: on an empty lake, and where that day
               has millions of events; each with repeats of its own, and some with those of before
    large      one batch of millions: beside the bare parse and write of the same records

Counts are checked against what was made before any time counts. `--write` puts the tables into
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from measuring import cpu_seconds, machine, say, spread, temporary, took, tree, write
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.config.pipeline_file import load
from tidemill.config.settings import Place
from tidemill.lake.catalog import Lake
from tidemill.lake.open import open_for_writing
from tidemill.lake.session.separate_session import separate_session
from tidemill.lake.session.session import local_session
from tidemill.pipeline.silver import known_events
from tidemill.pipeline.silver.clean import Cleaned, clean
from tidemill.pipeline.silver.known_events import KnownEvents

DAY = 86_400
END = int(datetime(2026, 11, 21, 12, tzinfo=timezone.utc).timestamp())
Cost = tuple[float, float]  # seconds, and seconds of CPU
SMALL = 2_000  # records
LATE, REPEATED = 20, 50  # one in so many is late by up to a day, or comes again in its batch
AGAIN = 10  # records of events of the batch before
PAYLOAD = """to_json(named_struct('event_id', id, 'profile_id', concat('profile-', who),
    'gti', concat('title-', who % 500), 'event_type',
    element_at(array('view', 'select', 'highlight'), CAST(who % 3 + 1 AS INT)),
    'event_timestamp', date_format(at, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")))"""


def records(spark: SparkSession, batch: int, count: int, keys: int) -> DataFrame:
    """Return records as bronze has them: the newest minute's events, some late, some repeated."""
    now, number = END + 60 * batch, F.col("number")
    late = number % LATE == 0
    seconds = F.when(late, F.pmod(F.xxhash64(number, F.lit(batch)), F.lit(DAY))).otherwise(
        number % 60
    )
    first = F.when(number % REPEATED == 1, number - 1).otherwise(number)  # the one before, again
    return (
        spark.range(count)
        .select(F.col("id").alias("number"))
        .select(first.alias("number"))
        .select(
            F.md5(F.concat_ws("-", F.lit(batch), "number")).alias("id"),
            F.pmod(F.xxhash64("number"), F.lit(keys)).alias("who"),
            F.timestamp_millis((F.lit(now) - seconds) * 1000 + number % 997).alias("at"),
            F.monotonically_increasing_id().alias("place"),
        )
        .select(
            F.format_string("r-%08d-%012d", F.lit(batch), "place").alias("record_id"),
            F.expr(PAYLOAD).alias("raw_payload"),
            F.lit("t").alias("topic"),
            F.lit(0).alias("partition"),
            F.col("place").alias("offset"),
            F.timestamp_seconds(F.lit(now)).alias("source_ts"),
            F.timestamp_seconds(F.lit(now)).alias("ingested_at"),
            F.to_date(F.timestamp_seconds(F.lit(now))).alias("ingest_date"),
        )
    )


def with_history(lake: Lake, events: int) -> None:
    """Fill the day before with events, in the order in which they came, as upkeep leaves files."""
    spark = lake.spark
    after = (F.col("id") * F.lit(DAY * 1_000_000 / events)).cast("bigint")
    at = F.timestamp_micros(F.lit((END - DAY) * 1_000_000) + after)
    rows = spark.range(0, events, 1, 24).select(
        F.concat(F.lit("h"), "id").alias("record_id"),
        F.md5(F.concat(F.lit("h"), "id")).alias("event_id"),
        F.concat(F.lit("profile-"), F.col("id") % 1_000_000).alias("profile_id"),
        F.concat(F.lit("title-"), F.col("id") % 500).alias("gti"),
        F.lit("view").alias("event_type"),
        at.alias("event_timestamp"),
        at.alias("ingested_at"),
        F.lit(-1).cast("bigint").alias("batch"),
        F.timestamp_seconds(F.floor(F.unix_seconds(at) / 3600) * 3600).alias("event_hour"),
    )
    rows.write.format("delta").mode("append").saveAsTable(lake.tables.events.name)


def cost(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds that work takes, and those of CPU, which a busy machine changes less."""
    before = cpu_seconds(tree())
    seconds = took(work)
    return seconds, cpu_seconds(tree()) - before


@dataclass
class Small:
    """The costs of small batches: warm on both lakes, on the full one while the run reads what it
    knows from then on, and there with records of events that were accepted before."""

    empty: list[Cost]
    full: list[Cost]
    learning: list[Cost]
    again: list[Cost]


def small_batches(spark: SparkSession, folder: Path, history: int, repeats: int) -> Small:
    """Return the cost of small batches, warm, on an empty lake and on one with so many events in
    its last day, each batch on both in turns: what a batch costs changes with a process's age. Its
    records are read once before, and who is first changes from batch to batch: the first pays."""
    # Each has a session of its own: one session knows the tables of the lake it opened last.
    empty, full = (
        open_for_writing(
            separate_session(spark), Place(folder / name), load("engagement"), asked=False
        )
        for name in ("empty", "full")
    )
    with_history(full, history)
    costs: tuple[list[Cost], list[Cost]] = ([], [])
    known = KnownEvents(), KnownEvents()
    learning = history // known_events.EVENTS + 25 // known_events.HOURS + 1
    counted = range(learning + 2, learning + 2 + repeats)
    for batch in range(1, counted.stop + 2 + repeats):
        again = AGAIN if batch >= counted.stop else 0
        path = str(folder / f"records-{batch}")
        rows = records(spark, batch, SMALL, 1000)
        if again:
            # The first two are one event, and late.
            before = records(spark, batch - 1, SMALL, 1000).orderBy("record_id").offset(2)
            another = F.concat("record_id", F.lit("-again"))
            rows = rows.union(before.limit(again).withColumn("record_id", another))
        rows.coalesce(1).write.format("delta").save(path)
        turns = [*zip((empty, full), costs, known, strict=True)]
        for lake, each, kept in turns[:: 1 if batch % 2 else -1]:
            frame = lake.spark.read.format("delta").load(path)
            frame.count()
            results: list[Cleaned] = []
            words = {"lake": lake, "known": kept}
            each.append(cost(lambda: results.append(clean(frame, batch, **words))))  # noqa: B023
            expect(results[0], SMALL, again)
            stands = lake.spark.table(lake.tables.events.name).where("batch > 0").count()
            assert stands == batch * results[0].accepted, stands
    first, last = counted.start - 1, counted.stop - 1
    on_empty, on_full = costs
    return Small(
        on_empty[first:last], on_full[first:last], on_full[1:learning], on_full[last + 2 :]
    )


def expect(result: Cleaned, count: int, again: int = 0) -> None:
    repeated = count // REPEATED
    if (result.accepted, result.duplicates) != (count - repeated, repeated + again):
        sys.exit(f"{result} of {count} records, {repeated} of them repeated; no times")


def large(
    spark: SparkSession, folder: Path, count: int, repeats: int
) -> tuple[list[Cost], list[Cost]]:
    """Return the cost of one large batch, each time on a new lake, and of the bare parse and
    write of its records, in turns; the first turn is cold."""
    path = str(folder / "records")
    records(spark, 0, count, 1_000_000).repartition(4).write.format("delta").save(path)
    frame = spark.read.format("delta").load(path)
    cleaned, plain = [], []
    for turn in range(repeats + 1):
        lake = open_for_writing(
            spark, Place(folder / f"lake-{turn}"), load("engagement"), asked=False
        )
        results: list[Cleaned] = []
        cleaned.append(cost(lambda: results.append(clean(frame, 0, lake=lake))))  # noqa: B023
        expect(results[0], count)
        plain.append(cost(lambda: bare(frame, folder / f"bare-{turn}")))  # noqa: B023
        say(f"turn {turn}: clean {told([cleaned[-1]])}, bare {told([plain[-1]])}")
    return cleaned, plain


def bare(frame: DataFrame, folder: Path) -> None:
    """Parse and write, and nothing else."""
    texts = ("event_id", "profile_id", "gti", "event_type")
    schema = ", ".join([*(f"{name} STRING" for name in texts), "event_timestamp TIMESTAMP"])
    event = F.from_json("raw_payload", schema)
    rows = frame.select("record_id", event.alias("event"), "ingested_at").select(
        "record_id", "event.*", "ingested_at", F.lit(0).cast("bigint").alias("batch")
    )
    hour = F.timestamp_seconds(F.floor(F.unix_seconds("event_timestamp") / 3600) * 3600)
    rows = rows.withColumn("event_hour", hour)
    rows.write.format("delta").partitionBy("event_hour").save(str(folder))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--history", type=int, default=50_000_000, help="events of the last day")
    options.add_argument("--large", type=int, default=2_000_000, help="records of the large batch")
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    asked = options.parse_args()
    spark = local_session(driver_memory="4g")
    with temporary("batch") as folder:
        cleaned, plain = large(spark, folder / "large", asked.large, asked.repeats)
        small = small_batches(spark, folder / "small", asked.history, asked.repeats)
        say(f"empty lake: {told(small.empty)}; {asked.history:,} events: {told(small.full)}")
    text = table(asked, small, cleaned, plain)
    if asked.write:
        write(text, "batch")
    else:
        print(text)


def told(costs: Sequence[Cost]) -> str:
    wall, cpu = zip(*costs, strict=True)
    return f"{spread(wall, '{:.2f} s')}, CPU {spread(cpu, '{:.2f} s')}"


def ratios(costs: Sequence[Cost], others: Sequence[Cost], what: str) -> str:
    each = zip(zip(*costs, strict=True), zip(*others, strict=True), strict=True)
    wall, cpu = (statistics.median(ours) / statistics.median(theirs) for ours, theirs in each)
    return f"{wall:.2f}x, CPU {cpu:.2f}x, {what}"


def table(
    asked: argparse.Namespace,
    small: Small,
    cleaned: list[Cost],
    plain: list[Cost],
) -> str:
    """Return what was measured, as Markdown."""
    bare_of_large, bare_of_first = (
        f"the bare parse and write: {told(each)}" for each in (plain[1:], plain[:1])
    )
    return "\n".join(
        [
            f"Medians of {asked.repeats}, warm, in one process; small batches on both lakes in "
            "turns; a large batch and its bare work in turns, each on a new lake.",
            "",
            machine("4g"),
            "",
            "| clean of | took | to |",
            "|---|---:|---:|",
            f"| {SMALL:,} records, 5 % late, an empty lake | {told(small.empty)} | |",
            f"| the same beside {asked.history:,} events of that day | "
            f"{told(small.full)} | {ratios(small.full, small.empty, 'the empty lake')} |",
            f"| {AGAIN} records more, of events that were accepted before | "
            f"{told(small.again)} | {ratios(small.again, small.empty, 'the empty lake')} |",
            f"| the first {len(small.learning) + 1} batches of a run, the very first left out | "
            f"{told(small.learning)} | {ratios(small.learning, small.empty, 'the empty lake')} |",
            f"| {asked.large:,} records in one batch | {told(cleaned[1:])} | "
            f"{ratios(cleaned[1:], plain[1:], bare_of_large)} |",
            f"| the first such batch of a process | {told(cleaned[:1])} | "
            f"{ratios(cleaned[:1], plain[:1], bare_of_first)} |",
            "",
        ]
    )


if __name__ == "__main__":
    main()
