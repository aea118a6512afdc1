"""An expression that may fail on an event: a cast, a division, an overflow.

    clean     tries each and refuses a record on which one fails: expression_failed:<view>.<name>
    buckets   take null in its place, for events that were accepted before the view was declared

SQL has no word for trying any expression. Spark's `try_add` of intervals is null where anything
below it fails (decision 0035), so the expression's hash is added as a number of days.
"""

from __future__ import annotations


def holds(sql: str, time: str) -> str:
    """Return the condition that an expression does not fail; `time` is the event's time column."""
    # The CASE, whose condition is always true, hides the expression: one that stands twice is
    # computed ahead of both by generated code, and there nothing catches its error.
    days = f"make_dt_interval(CAST(pmod(xxhash64({sql}), 2) AS INT))"
    tried = f"try_add(INTERVAL '0' DAY, {days})"
    return f"(CASE WHEN unix_seconds({time}) > -100000000000 THEN {tried} END IS NOT NULL)"


def or_null(sql: str, time: str) -> str:
    """Return the expression with null in the place of an error."""
    return f"CASE WHEN {holds(sql, time)} THEN {sql} END"
