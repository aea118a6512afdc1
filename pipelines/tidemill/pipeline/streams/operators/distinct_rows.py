"""The first event of each key, by Spark's de-duplication within a watermark."""

from __future__ import annotations

from pyspark.sql import DataFrame

from tidemill.config.stream_operators.distinct import Distinct
from tidemill.config.stream_operators.inputs import EVENTS
from tidemill.pipeline.streams.operators.input_rows import TIME, input_rows


def distinct_rows(events: DataFrame, distinct: Distinct, time: str) -> DataFrame:
    """Return the first events, with the columns of their table but `batch` and `event_hour`. Which
    of equal ones in a batch is the first is not said."""
    columns = (*distinct.keys, *distinct.columns)
    rows = input_rows(events, EVENTS, distinct, time, columns)
    first = rows.dropDuplicatesWithinWatermark([*distinct.keys])
    return first.selectExpr(*columns, "record_id AS event_id", f"{TIME} AS {time}")
