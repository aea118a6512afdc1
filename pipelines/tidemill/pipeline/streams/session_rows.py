"""The sessions of some keys, made of their events: Spark's session windows over a batch frame.

Written as SQL: a frame that is made of columns one by one asks the JVM for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame

from tidemill.config.stream_operators.sessions import Sessions
from tidemill.features.expressions import row_expression
from tidemill.lake.parameters import ask, literal
from tidemill.pipeline.streams.keyed_merge import LONGEST_LIST
from tidemill.pipeline.streams.operators.input_rows import TIME, is_taken

ENDS, TAKEN = "__ends", "__taken"


def marked(events: DataFrame, sessions: Sessions, time: str) -> DataFrame:
    """Return events as sessions see them: keys, `TIME` (the time), `ENDS` (up to when a session
    goes on behind it), whether it is `TAKEN`, and the batch of clean."""
    ends = f"{TIME} + make_interval(0, 0, 0, 0, 0, 0, {_gap(sessions)}) AS {ENDS}"
    taken = f"{_is_ours(sessions)} AS {TAKEN}"
    rows = events.selectExpr("*", f"`{time}` AS {TIME}")
    return rows.selectExpr(*_quoted(sessions.keys), TIME, ends, taken, "batch")


def columns_read(sessions: Sessions, time: str) -> list[str]:
    """Return the columns of events that sessions are made of."""
    by = [sessions.gap_by.of] if sessions.gap_by else []
    said = row_expression.columns_of(sessions.where) if sessions.where is not None else set()
    names = [*sessions.keys, time, *by, sessions.page, "record_id", *sorted(said)]
    return [*dict.fromkeys(names)]


def session_rows(events: DataFrame, sessions: Sessions, time: str) -> DataFrame:
    """Return the sessions of events with the `columns_read`, with the columns of their table but
    `closed` and `batch`. Events of the same time are in the order of their record ids."""
    keys = ", ".join(_quoted(sessions.keys))
    window = f"session_window({TIME}, concat(CAST({_gap(sessions)} AS STRING), ' seconds'))"
    event = f"struct({TIME} AS at, record_id, `{sessions.page}` AS page)"
    # Named as no column of an event is.
    first, last = "__events[0]", "try_element_at(__events, -1)"
    pages = "transform(__events, __e -> __e.page)"
    text = f"""
        SELECT {keys},
            {first}.at AS session_start,
            {last}.at AS session_end,
            __ended AS closes_at,
            CAST(size(__events) AS BIGINT) AS page_views,
            CAST(size(array_distinct({pages})) AS BIGINT) AS pages_visited,
            (unix_micros({last}.at) - unix_micros({first}.at)) / 1e6D AS length,
            size(__events) = 1 AS bounce,
            {first}.page AS first_page,
            {last}.page AS last_page,
            slice({pages}, 1, {LONGEST_LIST}) AS path,
            CAST({first}.at AS DATE) AS session_day
        FROM (
            SELECT {keys}, session_window.end AS __ended,
                array_sort(collect_list({event})) AS __events
            FROM (SELECT *, `{time}` AS {TIME} FROM tidemill_inside)
            WHERE {_is_ours(sessions)}
            GROUP BY {keys}, {window}
        )"""
    return ask(events.sparkSession, text, {}, {"tidemill_inside": events})


def _is_ours(sessions: Sessions) -> str:
    """Return the condition of an event with its keys that the declaration takes."""
    keys = [f"{key} IS NOT NULL" for key in _quoted(sessions.keys)]
    return " AND ".join([*keys, is_taken(sessions)])


def _gap(sessions: Sessions) -> str:
    """Return for how many seconds a session goes on behind an event."""
    usual = int(sessions.usual_gap.total_seconds())
    if sessions.gap_by is None:
        return str(usual)
    of = f"WHEN `{sessions.gap_by.of}` ="
    others = [f"{of} {literal(v)} THEN {int(g.total_seconds())}" for v, g in sessions.gaps.items()]
    return f"CASE {' '.join(others)} ELSE {usual} END"


def _quoted(names: Iterable[str]) -> list[str]:
    return [f"`{name}`" for name in names]
