"""What answers from slices should have been: of the events that clean had accepted by the batch
that an answer names, over windows that end at its time.

    answer: key, through, as_of ──► events with batch <= through ──buckets.sql──► values

By SQL, as a recompute does it; neither the store nor what merges slices has a part in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import functions as F

from tidemill.config.settings import micros_of
from tidemill.features import FeatureView
from tidemill.features.columns import Term
from tidemill.lake.catalog import Lake
from tidemill.lake.statements import window_rows
from tidemill.pipeline.silver import minute_buckets

Asked = tuple[tuple[Any, ...], int, datetime]  # a key, the batch it was answered through, as_of
_BATCH = "__clean_batch"


def expected(
    lake: Lake, view: FeatureView, asked: Mapping[int, Asked]
) -> dict[int, dict[str, Any] | None]:
    """Return, by the place of an answer, the features of its key; None for a key without events in
    the windows."""
    if not asked:
        return {}
    schema = ", ".join(f"`{key}` {view.types[key]}" for key in view.keys)
    rows = [(*key, place, through, micros_of(end)) for place, (key, through, end) in asked.items()]
    answers = lake.spark.createDataFrame(
        rows, f"{schema}, __place INT, __through BIGINT, __end BIGINT"
    )
    first = min(end for _, _, end in asked.values()) - view.horizon
    events = lake.spark.table(lake.tables.events.name).withColumn(_BATCH, F.col("batch"))
    events = events.where(F.unix_micros("event_hour") >= micros_of(first) - 3_600_000_000)
    minutes = minute_buckets.buckets_of(events, 0, _by_batch(view))
    known = minutes.join(F.broadcast(answers), [*view.keys]).where(f"{_BATCH} <= __through")
    known = known.where(_between(f"__end - {_micros(view.horizon)}", "__end"))
    values = [F.expr(column.value(_merged)).alias(column.name) for column in view.shown]
    found = {
        row.pop("__place"): row
        for row in known.groupBy("__place").agg(*values).toArrow().to_pylist()
    }
    return {place: found.get(place) for place in asked}


def _by_batch(view: FeatureView) -> FeatureView:
    """Return the view with the batch of clean as one more key."""
    schema = {**view.event_schema, _BATCH: "bigint"}
    return view.model_copy(update={"keys": (*view.keys, _BATCH), "event_schema": schema})


def _merged(term: Term) -> str:
    """Return the SQL of a partial, merged over its window."""
    start, end = (
        f"unix_micros({side(term.window, 'timestamp_micros(__end)')})"
        for side in (window_rows.start, window_rows.end)
    )
    return term.partial.merged(_between(start, end))


def _between(start: str, end: str) -> str:
    """Return the condition of a minute to lie between two times in microseconds."""
    at = "unix_micros(bucket_start)"
    return f"({at} >= {start} AND {at} < {end})"


def _micros(length: timedelta) -> int:
    return length // timedelta(microseconds=1)
