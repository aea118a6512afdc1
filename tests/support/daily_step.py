"""A fourth query, from outside the package: how many events of each day a batch brought."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from tidemill.config.dataflow import Query
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import writer
from tidemill.pipeline.queries import Pipeline, Trigger

DAILY = Query(
    "daily",
    reads="events",
    writes=("daily",),
    checkpoint="daily",
    step="daily_step",
    ledger="daily",
    trigger="1s",
)


def start(pipeline: Pipeline, query: Query, trigger: Trigger) -> StreamingQuery:
    (table,) = pipeline.lake.tables_of(query, query.writes)
    lake = pipeline.lake
    lake.spark.sql(
        f"CREATE TABLE IF NOT EXISTS {table} (day DATE, events BIGINT) USING delta"
        f" LOCATION '{lake.place.folder}/{table}'"
    )
    step = partial(daily_batch, lake=lake, table=table)
    stream = pipeline.follow(query).writeStream.foreachBatch(step)
    return pipeline.named(stream, query, trigger).start()


def daily_batch(batch: DataFrame, batch_id: int, *, lake: Lake, table: str) -> None:
    rows = batch.groupBy(F.to_date("event_hour").alias("day")).agg(F.count("*").alias("events"))
    told = {"generation": lake.generation, "batch": batch_id, "events": batch.count()}
    writer.write(rows, table, told, (f"{table}:{lake.generation}", batch_id))
