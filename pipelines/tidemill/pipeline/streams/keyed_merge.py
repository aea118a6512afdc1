"""Rows into a stream's table by their keys, in one commit that carries its ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.lake import times
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import writer
from tidemill.lake.commits.writer import Transaction
from tidemill.lake.parameters import literal
from tidemill.lake.tables import Table
from tidemill.pipeline.gold.merge import lost_race

SOURCE = "tidemill_changed_rows"
TRIES = 3
GONE = "__gone"  # of a row: its keys have none any more


def counted(rows: DataFrame, start: str) -> Mapping[str, Any]:
    """Return how many rows there are, `accepted`, and the `first` and `last` of a time."""
    (row,) = times.collect(
        rows.agg(
            F.count("*").alias("accepted"), F.min(start).alias("first"), F.max(start).alias("last")
        )
    )
    return row.asDict()


def merge(
    rows: DataFrame,
    counts: Mapping[str, Any],
    fields: Mapping[str, Any],
    lake: Lake,
    table: Table,
    keys: Sequence[str],
    start: str | None = None,
) -> None:
    """MERGE rows, one for each `keys` and `start`, a time, where there is one; of rows that are
    `GONE` the table's goes. `counts` are those of `counted`. A table that has the batch of `fields`
    takes nothing."""
    batch = int(fields["batch"])
    stamped = rows.withColumn("batch", F.lit(batch).cast("bigint"))
    stamped.select(*table.column_names, GONE).createOrReplaceTempView(SOURCE)
    same = [f"known.{name} <=> changed.{name}" for name in keys]
    if start is not None:
        first, last = (literal(counts[name]) for name in ("first", "last"))
        # The bounds are in the condition so that files of other times are not read.
        same += [f"known.{start} = changed.{start}", f"known.{start} BETWEEN {first} AND {last}"]
    names = ", ".join(table.column_names)
    values = ", ".join(f"changed.{name}" for name in table.column_names)
    assigned = ", ".join(f"{name} = changed.{name}" for name in table.column_names)
    text = (
        f"MERGE INTO {table.name} AS known USING {SOURCE} AS changed ON {' AND '.join(same)}\n"
        f"WHEN MATCHED AND changed.{GONE} THEN DELETE\n"
        f"WHEN MATCHED THEN UPDATE SET {assigned}\n"
        f"WHEN NOT MATCHED AND NOT changed.{GONE} THEN INSERT ({names}) VALUES ({values})"
    )
    try:
        _run(text, fields, (lake.app_id(table), batch), lake)
    finally:
        lake.spark.catalog.dropTempView(SOURCE)


def _run(text: str, fields: Mapping[str, Any], transaction: Transaction, lake: Lake) -> None:
    """Run the statement, again where another commit came first, as maintenance's may: it changes no
    row."""
    for tries in range(TRIES, 0, -1):
        try:
            with writer.carrying(lake.spark, fields, transaction):
                lake.spark.sql(text).collect()
            return
        except PySparkException as error:
            if tries == 1 or not lost_race(error):
                raise
