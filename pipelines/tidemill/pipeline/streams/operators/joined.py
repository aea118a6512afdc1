"""Pairs of events by Spark's stream-stream join, and the events for which no pair can come.

    events ─► highlight: time, keys, columns ─┐
    events ─► select:    time, keys, columns ─┴─► pairs within the time, by the later event's time

An event that stays alone is known to be so when the watermark has passed its time and the length
within which its pair could have come.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.config.stream_operators.join import Join, Side
from tidemill.pipeline.streams.operators.input_rows import TIME, input_rows


def joined(events: DataFrame, join: Join, time: str) -> DataFrame:
    """Return the join's rows, with the columns of its table but `batch` and `event_hour`; `time` is
    the events' time column, as a stream with which the watermarks are not set yet."""
    left, right = (_side(events, side, join, time) for side in join.sides)
    first, second = (f"{side.name}_at" for side in join.sides)
    seconds = int(join.interval.total_seconds())
    equal = [f"__{join.left.name}_{name} = __{join.right.name}_{name}" for name in join.keys]
    within = f"{second} >= {first} AND {second} <= {first} + INTERVAL '{seconds}' SECOND"
    kind = "full_outer" if join.kind == "full" else join.kind
    pairs = left.join(right, F.expr(" AND ".join([*equal, within])), kind)
    return pairs.selectExpr(*_columns(join, first, second, time))


def _side(events: DataFrame, side: Side, join: Join, time: str) -> DataFrame:
    rows = input_rows(events, side.name, side, time, (*join.keys, *side.columns))
    return rows.selectExpr(
        f"{TIME} AS {side.name}_at",
        f"record_id AS {side.name}_record_id",
        *(f"{name} AS __{side.name}_{name}" for name in join.keys),
        *(f"{name} AS {side.name}_{name}" for name in side.columns),
    )


def _columns(join: Join, first: str, second: str, time: str) -> list[str]:
    sides = [side.name for side in join.sides]
    ids = [f"{name}_record_id" for name in sides]
    between = f"unix_micros({second}) - unix_micros({first})"
    return [
        *(f"coalesce(__{sides[0]}_{name}, __{sides[1]}_{name}) AS {name}" for name in join.keys),
        *(
            column
            for side in join.sides
            for column in (
                f"{side.name}_at",
                f"{side.name}_record_id",
                *(f"{side.name}_{name}" for name in side.columns),
            )
        ),
        f"{ids[0]} IS NOT NULL AND {ids[1]} IS NOT NULL AS matched",
        f"({between}) / 1e6D AS seconds_between",
        f"concat(coalesce({ids[0]}, ''), '/', coalesce({ids[1]}, '')) AS event_id",
        f"greatest({first}, {second}) AS {time}",
    ]
