"""What the batches of streams cost beside Spark's bare operators over the same events.

    events, a commit for each batch ──stream_step──► counted, appended once, ledger     ours
                                    ──the operator──► appended                          bare

Both ways run in turns in one session with the same settings, a file of events for each batch,
state in RocksDB. Bare is the operator as one would write it by hand: the watermark, the condition,
and Spark's own Delta sink, which takes a batch once as ours does (of open windows a MERGE).
Sessions, which have no state here, stand beside `session_window` as a stream, which gives closed
ones alone. The rows of both are compared before any time counts. A batch's seconds are Spark's own
(`triggerExecution`); the first batch, and those without rows, do not count. `--write` puts the
table into docs/benchmarks.md, `--only` measures these streams alone.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import yaml
from delta.tables import DeltaTable
from measuring import machine, spread, temporary, write
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Clock, Place
from tidemill.config.stream_operators.processors import SpellOptions
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import writer
from tidemill.lake.open import open_for_writing
from tidemill.lake.session.session import local_session
from tidemill.pipeline.queries import ONCE, Pipeline
from tidemill.pipeline.stateful.engine import state_kept
from tidemill.pipeline.streams.operators.activity_spells import Spells
from tidemill.sources.null_source import Absent

FIRST = datetime(2026, 11, 18, tzinfo=timezone.utc)
BATCHES, PER_BATCH, MINUTES = 22, 20_000, 20
WORDS = yaml.safe_load(
    """
pipeline: shop
source: {kind: files, input: events}
max_files_per_trigger: 1
streams:
  - name: pairs
    join:
      kind: left
      left: {name: ask, where: "kind = 'ask'", watermark: 10m}
      right: {name: buy, where: "kind = 'buy'", watermark: 10m}
      keys: [item]
      within: 10m
  - name: firsts
    distinct: {keys: [item, kind], watermark: 10m}
  - name: by_window
    totals: {keys: [kind], length: 1m, watermark: 10m, compute: {events: count}}
  - name: visits
    sessions: {keys: [item], gap: 2m, watermark: 10m, page: kind}
  - name: ends
    span: {keys: [item, kind]}
  - name: spells
    process:
      by: activity_spells
      keys: [item]
      watermark: 10m
      options: {of: kind, timeout: 2m}
views:
  - name: items
    keys: [item]
    event_time: at
    schema: {item: string, kind: string}
    features:
      - count: {}
        over: [1h]
"""
)


KIND = "element_at(array('ask', 'buy', 'look'), CAST(pmod(shiftright(h, 20), 3) + 1 AS INT))"


@dataclass
class Way:
    """What one way took: the seconds of its batches, and its state at the end."""

    seconds: list[float] = field(default_factory=list)
    rows: int = 0
    size: int = 0

    def take(self, query: Any) -> None:
        """Take in the batches of a query that has ended."""
        for progress in query.recentProgress:
            if progress.numInputRows:
                self.seconds.append(progress.durationMs["triggerExecution"] / 1000)
            for state in progress.stateOperators:
                files = state.customMetrics.get("rocksdbSstFileSize", 0)
                self.rows, self.size = state.numRowsTotal, state.memoryUsedBytes + files


def events_of(spark: SparkSession, batch: int) -> DataFrame:
    """The events of a batch: twenty minutes, two thousand items, a few minutes out of order."""
    start = int((FIRST + timedelta(minutes=MINUTES * batch)).timestamp() * 1_000_000)
    drawn = spark.range(PER_BATCH).select(F.expr(f"xxhash64(id, {batch})").alias("h"), "id")
    rows = drawn.selectExpr(
        f"concat('r', {batch}, '-', id) AS record_id",
        "CAST(NULL AS STRING) AS event_id",
        "concat('item-', pmod(h, 2000)) AS item",
        f"{KIND} AS kind",
        f"timestamp_micros({start} + pmod(shiftright(h, 8), {MINUTES * 60_000_000})) AS at",
    )
    return rows.selectExpr(
        "*", "at AS ingested_at", f"{batch}L AS batch", "date_trunc('hour', at) AS event_hour"
    )


def feed(lake: Lake, batch: int) -> None:
    """Append a batch's events, as clean does: one file, one commit."""
    ledger = {"generation": lake.generation, "batch": batch, "accepted": PER_BATCH}
    name = lake.tables.events.name
    rows = events_of(lake.spark, batch).select(*lake.tables.events.column_names)
    writer.write(rows.coalesce(1).sortWithinPartitions("at"), name, ledger)


def bare_pairs(events: DataFrame) -> DataFrame:
    kept = events.withWatermark("at", "10 minutes")
    asks, buys = (
        kept.where(F.col("kind") == kind).select(
            F.col("at").alias(f"{kind}_at"),
            F.col("record_id").alias(f"{kind}_record_id"),
            F.col("item").alias(f"{kind}_item"),
        )
        for kind in ("ask", "buy")
    )
    condition = (
        "ask_item = buy_item AND buy_at >= ask_at AND buy_at <= ask_at + INTERVAL 10 MINUTES"
    )
    return asks.join(buys, F.expr(condition), "left")


def bare_firsts(events: DataFrame) -> DataFrame:
    kept = events.withWatermark("at", "10 minutes")
    return kept.dropDuplicatesWithinWatermark(["item", "kind"]).select("item", "kind", "at")


def bare_totals(events: DataFrame) -> DataFrame:
    kept = events.withWatermark("at", "10 minutes").groupBy(F.window("at", "1 minute"), "kind")
    totals = kept.agg(F.count("*").alias("events"))
    return totals.select("kind", F.col("window.start").alias("window_start"), "events")


def bare_sessions(events: DataFrame) -> DataFrame:
    kept = events.withWatermark("at", "10 minutes").groupBy(
        F.session_window("at", "2 minutes"), "item"
    )
    visits = kept.agg(F.count("*").alias("page_views"))
    return visits.select("item", F.col("session_window.start").alias("session_start"), "page_views")


def bare_ends(events: DataFrame) -> DataFrame:
    return events.select("item", "kind", "at", "record_id")


def bare_spells(events: DataFrame) -> DataFrame:
    kept = events.withWatermark("at", "10 minutes")
    rows = kept.select("item", "kind", F.unix_micros("at").alias("at"))
    columns = "start_at BIGINT, end_at BIGINT, events BIGINT, ended_by STRING, at BIGINT"
    spells = rows.groupBy("item").transformWithState(
        Spells(SpellOptions(of="kind", timeout="2m"), ("item",), "event"),
        outputStructType=f"item STRING, kind STRING, {columns}",
        outputMode="append",
        timeMode="EventTime",
    )
    return spells.withColumn("start_at", F.timestamp_micros("start_at"))


def merged_windows(known: DeltaTable, batch: DataFrame) -> None:
    """MERGE open windows as one would write it by hand."""
    same = "known.kind = new.kind AND known.window_start = new.window_start"
    merge = known.alias("known").merge(batch.alias("new"), same)
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def merged_ends(known: DeltaTable, batch: DataFrame) -> None:
    """MERGE the first and last events of a batch as one would write it by hand."""
    same = "known.item = new.item AND known.kind = new.kind"
    either = {"first": "least", "last": "greatest"}
    ends = {name: f"{which}(known.{name}, new.{name})" for name, which in either.items()}
    merge = known.alias("known").merge(ends_of(batch).alias("new"), same)
    merge.whenMatchedUpdate(set=ends).whenNotMatchedInsertAll().execute()


def ends_of(batch: DataFrame) -> DataFrame:
    event = F.struct("at", "record_id")
    return batch.groupBy("item", "kind").agg(
        F.min(event).alias("first"), F.max(event).alias("last")
    )


BARE: dict[str, Callable[[DataFrame], DataFrame]] = {
    "pairs": bare_pairs,
    "firsts": bare_firsts,
    "by_window": bare_totals,
    "visits": bare_sessions,
    "ends": bare_ends,
    "spells": bare_spells,
}
MERGED: dict[str, Callable[[DeltaTable, DataFrame], None]] = {
    "by_window": merged_windows,
    "ends": merged_ends,
}
SAME = {  # what is compared: columns of both, and a condition on ours
    "pairs": ("ask_record_id, buy_record_id", "TRUE"),
    "firsts": ("item, kind", "TRUE"),
    "by_window": ("kind, window_start, events", "TRUE"),
    "visits": ("item, session_start, page_views", "closed"),
    "ends": (
        "item, kind, struct(first_at AS at, first_record_id AS record_id) AS first, "
        "struct(last_at AS at, last_record_id AS record_id) AS last",
        "TRUE",
    ),
    "spells": ("item, kind, start_at, events, ended_by", "TRUE"),
}


def run_bare(lake: Lake, name: str, way: Way) -> None:
    """Bring what there is through the operator as one would write it by hand."""
    spark, folder = lake.spark, f"{lake.place.folder}-bare/{name}"
    begun = (Path(folder) / "checkpoint").exists()
    most = 1 if begun else 2**31 - 1
    events = spark.readStream.option("maxFilesPerTrigger", most).table(lake.tables.events.name)

    def merge(batch: DataFrame, batch_id: int) -> None:
        if DeltaTable.isDeltaTable(batch.sparkSession, f"{folder}/rows"):
            return MERGED[name](DeltaTable.forPath(batch.sparkSession, f"{folder}/rows"), batch)
        first = ends_of(batch) if name == "ends" else batch
        first.write.format("delta").save(f"{folder}/rows")

    with state_kept(spark, idle_batches=True):
        stream = BARE[name](events).writeStream
        if name in MERGED:
            stream = stream.outputMode("update").foreachBatch(merge)
        else:
            stream = stream.outputMode("append").format("delta").option("path", f"{folder}/rows")
        stream = stream.option("checkpointLocation", f"{folder}/checkpoint")
        query = stream.trigger(availableNow=True).start()
        query.awaitTermination()
    if begun:
        way.take(query)


def run_ours(pipeline: Pipeline, name: str, way: Way) -> None:
    """Bring what there is through the stream."""
    query = f"stream_{name}"
    begun = pipeline.lake.checkpoint(query).has_read
    pipeline.claim([query])
    running = pipeline.start(query, ONCE)
    running.awaitTermination()
    if begun:
        way.take(running)


def compare(lake: Lake, name: str) -> int:
    """Fail where the rows of both ways differ; return how many there are."""
    columns, condition = SAME[name]
    ours = lake.spark.sql(f"SELECT {columns} FROM {name} WHERE {condition}")
    bare = lake.spark.read.format("delta").load(f"{lake.place.folder}-bare/{name}/rows")
    theirs = bare.select(*ours.columns)
    different = ours.exceptAll(theirs).count() + theirs.exceptAll(ours).count()
    if different:
        raise SystemExit(f"{name}: {different} rows of {ours.count()} are different")
    return ours.count()


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    of = {"choices": [*BARE], "default": [*BARE], "metavar": "STREAM"}
    parser.add_argument("--only", nargs="+", help=f"some of {', '.join(BARE)}", **of)
    said = parser.parse_args()
    with temporary("streams") as folder:
        spark = local_session(driver_memory="2g")
        definition = PipelineDefinition.model_validate(WORDS)
        lake = open_for_writing(spark, Place(folder / "lake"), definition)
        pipeline = Pipeline(lake, Absent(), Clock(FIRST + timedelta(days=9)), "event")
        ways = {name: (Way(), Way()) for name in said.only}
        for first, last in ((0, 1), (1, 2), (2, BATCHES)):  # to begin, to warm up, to measure
            for batch in range(first, last):
                feed(lake, batch)
            for name, (ours, bare) in ways.items():
                run_ours(pipeline, name, ours)
                run_bare(lake, name, bare)
        rows = {name: compare(lake, name) for name in ways}
        print(made := table(ways, rows))
        if said.write:
            write(made, "streams")
        spark.stop()


def table(ways: dict[str, tuple[Way, Way]], rows: dict[str, int]) -> str:
    """Return the table, as Markdown."""
    lines = [
        "| stream | rows | a batch, ours (s) | bare (s) | ratio | of means | state rows "
        "| bytes a row |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, (ours, bare) in ways.items():
        mine, theirs = ours.seconds[1:], bare.seconds[1:]
        ratio, of_means = (
            take(mine) / take(theirs) for take in (statistics.median, statistics.mean)
        )
        state = f"{ours.rows:,} | {ours.size / ours.rows:,.0f}" if ours.rows else "none | "
        lines.append(
            f"| `{name}` | {rows[name]:,} | {spread(mine, '{:.2f}')} | {spread(theirs, '{:.2f}')} "
            f"| {ratio:.2f} | {of_means:.2f} | {state} |"
        )
    note = f"{BATCHES - 2} batches of {PER_BATCH:,} events of {MINUTES} minutes; 2,000 items."
    return "\n".join([*lines, "", f"{note} {machine()}", ""])


if __name__ == "__main__":
    main()
