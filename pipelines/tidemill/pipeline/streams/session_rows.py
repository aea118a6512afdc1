"""The sessions of some keys, made of their events: Spark's session windows over a batch frame."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.config.stream_operators.sessions import Sessions
from tidemill.pipeline.streams.keyed_merge import LONGEST_LIST
from tidemill.pipeline.streams.operators.input_rows import TIME, is_taken

GAP = "__gap"


def taken(events: DataFrame, sessions: Sessions, time: str) -> DataFrame:
    """Return the events of sessions: keys, `TIME` (the time), `GAP` (how long a session goes on
    behind it, in seconds), page and record_id."""
    rows = events.withColumn(TIME, F.col(time)).where(is_taken(sessions))
    has_keys = F.lit(True)
    for key in sessions.keys:
        has_keys = has_keys & F.col(key).isNotNull()
    page = F.col(sessions.page).alias("__page")
    return rows.where(has_keys).select(
        *sessions.keys, TIME, _gap(sessions).alias(GAP), page, "record_id"
    )


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
    each = events.groupBy(*sessions.keys, window).agg(F.collect_list(event).alias("events"))
    each = each.select(
        *sessions.keys,
        F.col("session_window.end").alias("closes_at"),
        F.array_sort("events").alias("events"),
    )
    each = each.selectExpr(
        *sessions.keys,
        "closes_at",
        "events",
        "events[0] AS first",
        "try_element_at(events, -1) AS last",
    )
    return each.selectExpr(
        *sessions.keys,
        "first.at AS session_start",
        "last.at AS session_end",
        "closes_at",
        "CAST(size(events) AS BIGINT) AS page_views",
        "CAST(size(array_distinct(transform(events, e -> e.page))) AS BIGINT) AS pages_visited",
        "(unix_micros(last.at) - unix_micros(first.at)) / 1e6D AS length",
        "size(events) = 1 AS bounce",
        "first.page AS first_page",
        "last.page AS last_page",
        f"slice(transform(events, e -> e.page), 1, {LONGEST_LIST}) AS path",
        "CAST(first.at AS DATE) AS session_day",
    )
