"""Rows into a stream's table by their keys, in one commit that carries its ledger.

few rows in a folder, which the driver takes     the driver merges
any other                                        Spark's MERGE
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.lake import times
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger, writer
from tidemill.lake.commits.failpoints import reach
from tidemill.lake.commits.races import past_others
from tidemill.lake.parameters import beside_code, literal
from tidemill.lake.tables import Table
from tidemill.pipeline.row_writes import driver_merge

log = logging.getLogger(__name__)

SOURCE = "tidemill_changed_rows"
# A list in such a table is the path of a session.
LONGEST_LIST = 100
GONE = "__gone"  # of a row: its keys have none any more
HourRange = tuple[datetime, datetime]


def newest(lake: Lake, table: Table, batch: int) -> Mapping[str, Any] | None:
    """Return the newest ledger of the table, empty where it has none; None where the table holds
    the batch already."""
    commit = ledger.newest_append(lake, table.name, lake.generation)
    fields = (commit and commit.ledger) or {}
    if int(fields.get("batch", -1)) < batch:
        return fields
    log.info("%s holds batch %d already", table.name, batch)
    return None


def bring(
    rows: DataFrame | pa.Table,
    batch: int,
    lake: Lake,
    table: Table,
    keys: Sequence[str],
    start: str | None = None,
    *,
    started: float,
    told: Mapping[str, Any] | None = None,
) -> None:
    """MERGE the rows that change in a batch, one for each `keys` and `start`, a time, where there
    is one; of rows that are `GONE` the table's goes. No row makes no commit. The ledger has what is
    `told` too, and the seconds since `started`, by the monotonic clock. A frame is read thrice at
    most, a few rows of it once."""
    by = [*keys, *filter(None, [start])]
    at_hand = _at_hand(rows, lake, table)
    counts = _counted(rows, start) if at_hand is None else _counted_here(at_hand, start)
    if not counts["accepted"]:
        return
    reach("stream.counted")
    fields = {
        "generation": lake.generation,
        "batch": batch,
        "accepted": counts["accepted"],
        **(told or {}),
        "seconds": {"stream": round(time.monotonic() - started, 3)},
    }
    if at_hand is None or not _merged_by_driver(at_hand, counts, fields, lake, table, by):
        frame = rows if isinstance(rows, DataFrame) else lake.spark.createDataFrame(rows)
        frame = frame.withColumn("batch", beside_code(batch, frame.columns[0]))
        _merge(frame, counts, fields, lake, table, keys, start)
    reach("stream.appended")
    log.info("%s batch %d: %d rows", table.name, batch, counts["accepted"])


def _at_hand(rows: DataFrame | pa.Table, lake: Lake, table: Table) -> pa.Table | None:
    """Return the rows where they are in the driver, or few enough to come there."""
    if not isinstance(rows, DataFrame):
        return rows
    return driver_merge.few(lake, table, rows, LONGEST_LIST)


def _counted(rows: DataFrame, start: str | None) -> Mapping[str, Any]:
    """Return how many rows there are, `accepted`, and how many of them go, `gone`; and the `first`
    and `last` start."""
    ends = [] if start is None else [F.min(start).alias("first"), F.max(start).alias("last")]
    counted = rows.agg(F.count("*").alias("accepted"), F.count_if(GONE).alias("gone"), *ends)
    (row,) = times.collect(counted)
    return row.asDict()


def _counted_here(rows: pa.Table, start: str | None) -> Mapping[str, Any]:
    """Return what `_counted` does."""
    counts = {"accepted": rows.num_rows, "gone": pc.sum(rows[GONE]).as_py() or 0}
    if start is not None:
        ends = pc.min_max(rows[start]).as_py()
        counts |= {"first": ends["min"], "last": ends["max"]}
    return counts


def _merged_by_driver(
    rows: pa.Table,
    counts: Mapping[str, Any],
    fields: Mapping[str, Any],
    lake: Lake,
    table: Table,
    by: Sequence[str],
) -> bool:
    """MERGE in the driver where it may; return whether it did."""
    if not driver_merge.are_taken(rows, table, by):
        return False
    count, gone, batch = counts["accepted"], counts["gone"], int(fields["batch"])
    actions = pc.if_else(rows[GONE], "delete", "write")
    rows = rows.append_column("__action", actions).drop_columns([GONE])
    rows = rows.append_column("batch", pa.array([batch] * count, pa.int64()))
    clauses = [*["delete"] * bool(gone), *["write"] * (gone < count)]
    words = lake, table, rows, count, by, clauses, fields, (lake.app_id(table), batch)
    return bool(driver_merge.merge(*words, longest_list=LONGEST_LIST))


def whole_hours(first: datetime, last: datetime) -> HourRange:
    """Return the whole hours that hold what is between two times, by their ends."""
    begun, ended = (at.replace(minute=0, second=0, microsecond=0) for at in (first, last))
    return begun, ended + timedelta(hours=1)


def _merge(
    rows: DataFrame,
    counts: Mapping[str, Any],
    fields: Mapping[str, Any],
    lake: Lake,
    table: Table,
    keys: Sequence[str],
    start: str | None,
) -> None:
    batch = int(fields["batch"])
    rows.select(*table.column_names, GONE).createOrReplaceTempView(SOURCE)
    same = [f"known.{name} <=> changed.{name}" for name in keys]
    if start is not None:
        # The bounds are in the condition so that files of other times are not read; whole hours, as
        # they stand in code, which is compiled when they change.
        first, last = (literal(at) for at in whole_hours(counts["first"], counts["last"]))
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

    def run() -> None:
        with writer.carrying(lake.spark, fields, (lake.app_id(table), batch)):
            lake.spark.sql(text).collect()

    try:
        past_others(run)
    finally:
        lake.spark.catalog.dropTempView(SOURCE)
