"""The events that an operator takes in, with their watermark, and how many they are.

The condition stands behind the watermark, which so goes by all events of the pipeline: an input of
which nothing comes holds nobody up. Spark would move it below, where the watermark would go by the
input's own events; it does not move what reads the time itself, nor anything past an observation.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.config.stream_operators.inputs import Input
from tidemill.features.expressions import fallible, row_expression

TIME = "__at"
OBSERVED = "tidemill_input_"  # what Spark calls the counts of an input, before its name
WATERMARK, ROWS = "watermark", "rows"


def is_taken(input_: Input) -> str:
    """Return the condition of an input as SQL, over rows that have the time as `TIME`; an event on
    which it fails is not taken."""
    if input_.where is None:
        return "TRUE"
    return f"coalesce({fallible.or_null(input_.where, TIME)}, FALSE)"


def input_rows(
    events: DataFrame, name: str, input_: Input, time: str, columns: Iterable[str]
) -> DataFrame:
    """Return the rows that an input takes of the events: `columns`, `record_id` and the time as
    `TIME`. Spark's progress tells of each batch, as `OBSERVED` and the name say, how many rows the
    input took, and its watermark by the events of the batch, in microseconds."""
    condition = is_taken(input_)
    reads = row_expression.columns_of(input_.where) if input_.where is not None else set()
    wanted = dict.fromkeys([*columns, *sorted(reads - {time})])
    seconds = int(input_.lateness.total_seconds())
    rows = events.select(F.col(time).alias(TIME), "record_id", *wanted)
    counts = (
        (F.max(F.unix_micros(TIME)) - seconds * 1_000_000).alias(WATERMARK),
        F.count_if(F.expr(condition)).alias(ROWS),
    )
    rows = rows.withWatermark(TIME, f"{seconds} seconds")
    return observed(rows, OBSERVED + name, *counts).where(condition)


def observed(rows: DataFrame, name: str, *counts: Column) -> DataFrame:
    """Return the rows of a stream, whose progress then tells the counts; a batch has none."""
    return rows.observe(name, *counts) if rows.isStreaming else rows
