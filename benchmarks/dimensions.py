"""What keeping a dimension costs: batches of changes, beside a bare MERGE of the same rows.

    type1      a batch of envelopes through `dimension`: judged, counted, merged, with its ledger
    type2      the same, with the histories of the keys made again
    bare       the same rows, already parsed, by one MERGE with the one condition that is needed
    envelopes  the bare parse of the envelopes and the same MERGE: what a notebook would do

The newest row of every key is compared before any time counts. `--write` puts the table into
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from datetime import datetime, timezone
from pathlib import Path

from measuring import machine, say, spread, temporary, took, write
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.config.pipeline_file import PipelineDefinition, load
from tidemill.config.settings import Place
from tidemill.lake.catalog import Lake
from tidemill.lake.open import open_for_writing
from tidemill.lake.session.session import local_session
from tidemill.pipeline.dimensions import change_batch

AT = int(datetime(2026, 11, 21, 12, tzinfo=timezone.utc).timestamp())
ENVELOPE = """to_json(named_struct('op', op, 'before', IF(op = 'd', row, NULL),
    'after', IF(op = 'd', NULL, row),
    'source', named_struct('connector', 'postgresql', 'lsn', lsn, 'ts_ms', ts_ms)))"""
SCHEMA = """op STRING, before STRUCT<customer_id STRING>,
    after STRUCT<customer_id STRING, segment STRING, country STRING>,
    source STRUCT<lsn BIGINT, ts_ms BIGINT>"""
COLUMNS = ("customer_id", "segment", "country", "deleted", "lsn")
MERGE = """MERGE INTO bare_{name} AS known USING {source} AS changed
ON known.customer_id = changed.customer_id
WHEN MATCHED AND changed.lsn > known.lsn THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *"""


def changes(spark: SparkSession, batch: int, count: int, keys: int) -> DataFrame:
    """Return changes of random keys, one in fifty a delete, their places rising by the batch."""
    drawn = F.pmod(F.xxhash64("id", F.lit(batch)), F.lit(keys))
    lsn = F.lit(batch * 10**9).cast("bigint") + F.col("id")
    return spark.range(count).select(
        F.when(F.col("id") % 50 == 0, "d").otherwise("u").alias("op"),
        F.struct(
            F.concat(F.lit("customer-"), drawn).alias("customer_id"),
            F.expr("element_at(array('basic', 'silver', 'gold'), CAST(id % 3 + 1 AS INT))").alias(
                "segment"
            ),
            F.expr("element_at(array('DE', 'FR', 'PT'), CAST(id % 7 % 3 + 1 AS INT))").alias(
                "country"
            ),
        ).alias("row"),
        lsn.alias("lsn"),
        (F.lit((AT + 60 * batch) * 1000).cast("bigint") + F.col("id") % 60_000).alias("ts_ms"),
    )


def bronze(rows: DataFrame, batch: int) -> DataFrame:
    """Return the changes as bronze has them."""
    at = F.timestamp_seconds(F.lit(AT + 60 * batch))
    return rows.select(
        F.format_string("r-%d-%d", F.lit(batch), "lsn").alias("record_id"),
        F.expr(ENVELOPE).alias("raw_payload"),
        F.lit("t").alias("topic"),
        F.lit(0).alias("partition"),
        F.col("lsn").alias("offset"),
        at.alias("source_ts"),
        at.alias("ingested_at"),
        F.to_date(at).alias("ingest_date"),
    )


def parsed(envelopes: DataFrame) -> DataFrame:
    """Return the newest change of each key, parsed by the bare function."""
    said = envelopes.select(F.from_json("raw_payload", SCHEMA).alias("said")).select("said.*")
    key = F.coalesce("after.customer_id", "before.customer_id").alias("customer_id")
    deleted = (F.col("op") == "d").alias("deleted")
    rows = said.select(key, "after.segment", "after.country", deleted, F.col("source.lsn"))
    others = [name for name in COLUMNS if name not in ("customer_id", "lsn")]
    newest = rows.groupBy("customer_id").agg(F.max(F.struct("lsn", *others)).alias("newest"))
    return newest.select("customer_id", "newest.*").select(*COLUMNS)


def merge(source: DataFrame, name: str) -> None:
    """MERGE rows into a bare table."""
    source.createOrReplaceTempView(f"{name}_source")
    source.sparkSession.sql(MERGE.format(name=name, source=f"{name}_source")).collect()


def with_history(history: str) -> PipelineDefinition:
    """Return the shipped pipeline, its dimension kept so."""
    definition = load("customers")
    dimension = definition.dimensions[0].model_copy(update={"history": history})
    return definition.model_copy(update={"dimensions": (dimension,)})


def measured(
    spark: SparkSession, folder: Path, count: int, keys: int, repeats: int
) -> dict[str, list[float]]:
    """Return the seconds of each way of a batch, the warm ones."""
    lakes = {
        kind: open_for_writing(spark.newSession(), Place(folder / kind), with_history(kind))
        for kind in ("type1", "type2")
    }
    for name in ("rows", "envelopes"):
        columns = "customer_id STRING, segment STRING, country STRING, deleted BOOLEAN, lsn BIGINT"
        path = folder / f"bare_{name}"
        spark.sql(f"CREATE TABLE bare_{name} ({columns}) USING delta LOCATION '{path}'")
    seconds: dict[str, list[float]] = {n: [] for n in ("type1", "type2", "bare", "envelopes")}
    for batch in range(repeats + 2):
        size = keys * 2 if batch == 0 else count
        path = str(folder / f"batch-{batch}")
        bronze(changes(spark, batch, size, keys), batch).repartition(2).write.format("delta").save(
            path
        )
        rows = spark.read.format("delta").load(path)
        parsed(rows).write.format("delta").save(f"{path}-rows")
        ready = spark.read.format("delta").load(f"{path}-rows")
        spent = {kind: took(lambda: apply(lakes[kind], path, batch)) for kind in lakes}  # noqa: B023
        spent["bare"] = took(lambda: merge(ready, "rows"))  # noqa: B023
        spent["envelopes"] = took(lambda: merge(parsed(rows), "envelopes"))  # noqa: B023
        for name, second in spent.items():
            if batch >= 2:
                seconds[name].append(second)
        say(f"batch {batch}: " + ", ".join(f"{n} {s:.2f} s" for n, s in spent.items()))
    expect_equal(lakes, spark)
    return seconds


def apply(lake: Lake, path: str, batch: int) -> None:
    """Bring a batch into the dimension."""
    frame = lake.spark.read.format("delta").load(path)
    change_batch.apply(frame, batch, lake=lake, dimension=lake.pipeline.dimensions[0])


def expect_equal(lakes: dict[str, Lake], spark: SparkSession) -> None:
    """Stop where a key's newest row is not the same in all."""
    names = ("customer_id", "segment", "country")
    wanted = spark.table("bare_rows").where("NOT deleted").select(*names)
    found = [lake.spark.table("customer_current").select(*names) for lake in lakes.values()]
    others = spark.table("bare_envelopes").where("NOT deleted").select(*names)
    sums = [
        frame.agg(F.count("*"), F.expr(f"bit_xor(xxhash64({', '.join(names)}))")).collect()[0]
        for frame in (wanted, *found, others)
    ]
    if len(set(sums)) != 1:
        sys.exit(f"the tables differ: {sums}; no times")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--keys", type=int, default=200_000)
    options.add_argument("--changes", type=int, default=50_000, help="of a batch")
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    asked = options.parse_args()
    spark = local_session(driver_memory="3g")
    with temporary("dimensions") as folder:
        seconds = measured(spark, folder, asked.changes, asked.keys, asked.repeats)
    bare = statistics.median(seconds["bare"])
    lines = [
        f"Batches of {asked.changes:,} changes into a dimension of {asked.keys:,} keys: medians of "
        f"{asked.repeats}, warm, the ways in turn in one process.",
        "",
        machine("3g"),
        "",
        "| a batch by | took | changes a second | to the bare MERGE |",
        "|---|---:|---:|---:|",
    ]
    words = {
        "bare": "a bare MERGE of parsed rows",
        "envelopes": "a bare parse of the envelopes, and the same MERGE",
        "type1": "`dimension`, type 1",
        "type2": "`dimension`, type 2",
    }
    for name, what in words.items():
        middle = statistics.median(seconds[name])
        lines.append(
            f"| {what} | {spread(seconds[name], '{:.2f} s')} | {asked.changes / middle:,.0f} | "
            f"{middle / bare:.2f}x |"
        )
    text = "\n".join([*lines, ""])
    if asked.write:
        write(text, "dimensions")
    else:
        print(text)


if __name__ == "__main__":
    main()
