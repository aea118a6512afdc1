"""Totals of windows of time by Spark's windowed aggregation, and totals of these behind it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.config.stream_operators.window_totals import Compute, Totals, computed_types
from tidemill.features.windows import duration

WINDOW = "__window"


def windowed(rows: DataFrame, totals: Totals, time: str, types: dict[str, str]) -> DataFrame:
    """Return the totals of rows: keys, window_start, window_end, window_day and what is computed;
    `time` is the column that has the watermark, `types` are those of the columns that are read."""
    length, every = (f"{int(each.total_seconds())} seconds" for each in totals.lengths)
    window = F.window(time, length, every).alias(WINDOW)
    found = rows.groupBy(window, *totals.keys).agg(*_columns(totals.compute, types))
    if then := totals.then:
        longer = f"{int(duration(then.length).total_seconds())} seconds"
        window = F.window(WINDOW, longer).alias(WINDOW)
        between = computed_types(totals.compute, types)
        found = found.groupBy(window, *totals.result_keys).agg(*_columns(then.compute, between))
    return found.select(
        *totals.result_keys,
        F.col(f"{WINDOW}.start").alias("window_start"),
        F.col(f"{WINDOW}.end").alias("window_end"),
        *totals.types_of(types),
        F.col(f"{WINDOW}.start").cast("date").alias("window_day"),
    )


def _columns(compute: Compute, types: dict[str, str]) -> list[Column]:
    wanted = computed_types(compute, types)
    return [_computed(call).cast(wanted[name]).alias(name) for name, call in compute.items()]


def _computed(call: object) -> Column:
    """Return an aggregate as a column; a sum that does not fit its type is null."""
    if not isinstance(call, dict):
        return F.count("*")
    ((function, column),) = call.items()
    made = {
        "sum": lambda: F.try_sum(column),
        "min": lambda: F.min(column),
        "max": lambda: F.max(column),
        "mean": lambda: F.avg(F.col(column).cast("double")),
        "approx_distinct": lambda: F.approx_count_distinct(column),
    }
    return made[function]()
