"""The sessions of some keys, made of their events: Spark's session windows over a batch frame."""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.config.stream_operators.sessions import Sessions
from tidemill.pipeline.streams.keyed_merge import LONGEST_LIST
from tidemill.pipeline.streams.operators.input_rows import TIME, is_taken

GAP, ENDS, TAKEN = "__gap", "__ends", "__taken"


def marked(events: DataFrame, sessions: Sessions, time: str) -> DataFrame:
    """Return events as sessions see them: keys, `TIME` (the time), `ENDS` (up to when a session
    goes on behind it), whether it is `TAKEN`, and the batch of clean."""
    rows = events.withColumn(TIME, F.col(time))
    ends = F.col(TIME) + F.make_interval(secs=_gap(sessions))
    taken = _is_ours(sessions).alias(TAKEN)
    return rows.select(*sessions.keys, TIME, ends.alias(ENDS), taken, "batch")


def taken(events: DataFrame, sessions: Sessions, time: str) -> DataFrame:
    """Return the events of sessions: keys, `TIME`, `GAP` (how long a session goes on behind it, in
    seconds), page and record_id."""
    rows = events.withColumn(TIME, F.col(time)).where(_is_ours(sessions))
    page = F.col(sessions.page).alias("__page")
    return rows.select(*sessions.keys, TIME, _gap(sessions).alias(GAP), page, "record_id")


def _is_ours(sessions: Sessions) -> Column:
    """Return the condition of an event with its keys that the declaration takes."""
    keys = (F.col(key).isNotNull() for key in sessions.keys)
    return reduce(and_, keys, F.expr(is_taken(sessions)))


def _gap(sessions: Sessions) -> Column:
    usual = F.lit(int(sessions.usual_gap.total_seconds()))
    gap = usual
    for value, other in sessions.gaps.items():
        assert sessions.gap_by is not None
        is_value = F.col(sessions.gap_by.of) == F.lit(value)
        gap = F.when(is_value, F.lit(int(other.total_seconds()))).otherwise(gap)
    return gap


def session_rows(events: DataFrame, sessions: Sessions) -> DataFrame:
    """Return the sessions of what `taken` returns, with the columns of their table but `closed` and
    `batch`. Events of the same time are in the order of their record ids."""
    window = F.session_window(TIME, F.concat(F.col(GAP).cast("string"), F.lit(" seconds")))
    event = F.struct(F.col(TIME).alias("at"), F.col("record_id"), F.col("__page").alias("page"))
    each = events.groupBy(*sessions.keys, window).agg(
        F.array_sort(F.collect_list(event)).alias("events")
    )
    first, last, pages = "events[0]", "try_element_at(events, -1)", "transform(events, e -> e.page)"
    return each.selectExpr(
        *sessions.keys,
        f"{first}.at AS session_start",
        f"{last}.at AS session_end",
        "session_window.end AS closes_at",
        "CAST(size(events) AS BIGINT) AS page_views",
        f"CAST(size(array_distinct({pages})) AS BIGINT) AS pages_visited",
        f"(unix_micros({last}.at) - unix_micros({first}.at)) / 1e6D AS length",
        "size(events) = 1 AS bounce",
        f"{first}.page AS first_page",
        f"{last}.page AS last_page",
        f"slice({pages}, 1, {LONGEST_LIST}) AS path",
        f"CAST({first}.at AS DATE) AS session_day",
    )
