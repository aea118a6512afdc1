"""The changes of a batch into a dimension: the same rows whatever order changes come in.

    type1   of each key the newest change: MERGE by key, a row with a later position stays
    type2   every change of a key, each with the time in which it held: the histories of the keys
            that changed are made again from their rows and the batch's, and MERGEd

    position    1        2        4         then 3 arrives late
                |--------|--------|---->    [1, 2) [2, 3) [3, 4) [4, ...)

`valid_from` is the source's time of the change, and never before that of an earlier one: clocks go
back. A change at the same moment as the next one holds in no time, and stays as an empty interval.
A deleted key keeps its row, `deleted` with null attributes, so that an older change that comes late
finds a newer one there.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tidemill.config.dimension import Dimension
from tidemill.lake.catalog import Lake
from tidemill.lake.parameters import beside_code
from tidemill.lake.tables import Table
from tidemill.pipeline.dimensions.change_order import place_of

SOURCE = "tidemill_dimension_changes"


def newest(changes: DataFrame, dimension: Dimension) -> DataFrame:
    """Return the changes to merge: of each key the newest one; with a history the newest at each
    place, as two at one place are one change."""
    by = [*dimension.keys]
    if dimension.has_history:
        changes = changes.withColumn("__place", F.expr(place_of("position")))
        by.append("__place")
    others = [name for name in changes.columns if name not in (*by, "position")]
    latest = changes.groupBy(*by).agg(F.max(F.struct("position", *others)).alias("__newest"))
    return latest.select(*dimension.keys, "__newest.*")


def merge(rows: DataFrame, dimension: Dimension, lake: Lake, batch_id: int) -> None:
    """MERGE changes, one for each key (and place), into the dimension; the caller says in the
    session with what ledger."""
    table = lake.tables.dimensions[dimension.name].rows
    if dimension.has_history:
        rows = _histories(rows, dimension, lake, table)
    stamped = rows.withColumn("batch", beside_code(batch_id, "deleted"))
    stamped.select(*table.column_names).createOrReplaceTempView(SOURCE)
    try:
        lake.spark.sql(_text(dimension, table)).collect()
    finally:
        lake.spark.catalog.dropTempView(SOURCE)


def _histories(rows: DataFrame, dimension: Dimension, lake: Lake, table: Table) -> DataFrame:
    """Return every row of the keys that changed, with the time in which it holds."""
    keys = list(dimension.keys)
    stored = lake.spark.table(table.name).join(rows.select(*keys).distinct(), keys, "left_semi")
    together = newest(stored.select(*rows.columns).unionByName(rows), dimension)
    in_order = Window.partitionBy(*keys).orderBy("position")
    valid = together.withColumn("valid_from", F.max("changed_at").over(in_order))
    return valid.withColumn("valid_to", F.lead("valid_from").over(in_order))


def _text(dimension: Dimension, table: Table) -> str:
    """Return the MERGE statement."""
    match = [f"known.{key} = changed.{key}" for key in dimension.keys]
    newer = "changed.position > known.position"
    if dimension.has_history:
        match.append(f"{place_of('known.position')} = {place_of('changed.position')}")
        decided = ("position", "valid_from", "valid_to")
        newer = " OR ".join(f"changed.{n} IS DISTINCT FROM known.{n}" for n in decided)
    assigned = ", ".join(f"{name} = changed.{name}" for name in table.column_names)
    names = ", ".join(table.column_names)
    values = ", ".join(f"changed.{name}" for name in table.column_names)
    return (
        f"MERGE INTO {table.name} AS known USING {SOURCE} AS changed ON {' AND '.join(match)}\n"
        f"WHEN MATCHED AND ({newer}) THEN UPDATE SET {assigned}\n"
        f"WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({values})"
    )
