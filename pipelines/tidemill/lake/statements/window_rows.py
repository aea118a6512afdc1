"""Which rows of a bucket table a window holds, gains and loses, as SQL conditions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from tidemill.features import FeatureView
from tidemill.features.windows import HOUR, Window


def whole_seconds(length: timedelta) -> int:
    """Return a length of time in seconds."""
    return length // timedelta(seconds=1)


def interval(length: timedelta) -> str:
    """Return a length of time as a SQL interval."""
    seconds = whole_seconds(length)
    whole = seconds % 60 == 0
    return f"INTERVAL '{seconds // 60 if whole else seconds}' {'MINUTE' if whole else 'SECOND'}"


def _before(time: str, length: timedelta) -> str:
    return f"{time} - {interval(length)}" if length else time


def sign(window: Window) -> str:
    """Return the SQL that tells what a bucket row does to a window: 1 enters, -1 leaves, 0
    neither."""
    now = _in_window(window, ":as_of")
    before = f"batch <= :batch_before AND {_in_window(window, ':as_of_before')}"
    return f"CAST({now} AS INT) - CAST({before} AS INT) AS {sign_name(window)}"


def sign_name(window: Window) -> str:
    """Return the name of the column that holds a window's sign."""
    return f"__sign_{window.text}"


def _in_window(window: Window, as_of: str) -> str:
    start, end = _before(as_of, window.reach), _before(as_of, window.offset)
    return f"bucket_start >= {start} AND bucket_start < {end}"


def inside(window: Window, by_hours: bool) -> str:
    """Return the SQL condition for a row of the horizon to count in a window.

    By hours a minute row counts only where no hour row stands for it, and an hour row where the
    window holds all of it.
    """
    start, end = _before(":as_of", window.reach), _before(":as_of", window.offset)
    inside = f"bucket_start >= {start}"
    if not by_hours:
        return f"{inside} AND bucket_start < {end}" if window.offset else inside
    if not window.offset:
        return f"{inside} AND __covered_from < {start}"
    hour = f"{end} - INTERVAL '60' MINUTE"
    uncovered = f"(__covered_from < {start} OR __covered_from > {hour})"
    return f"{inside} AND __last < {end} AND {uncovered}"


def _ends(window: Window) -> tuple[timedelta, timedelta]:
    """Return how far before as_of a window starts and ends."""
    return window.reach, window.offset


def edges(view: FeatureView) -> Iterator[str]:
    """Yield the SQL conditions for a bucket to be where a window's start or end passed."""
    for length in dict.fromkeys(edge for w in view.windows for edge in _ends(w)):
        if length:
            low, high = _before(":low", length), _before(":high", length)
            yield f"(bucket_start >= {low} AND bucket_start < {high})"


def edge_partitions(view: FeatureView) -> Iterator[str]:
    """Yield the SQL conditions for an hour to hold buckets of such an edge, or of where as_of
    passed."""
    for length in dict.fromkeys((timedelta(), *(e for w in view.windows for e in _ends(w)))):
        low, high = _before(":low", length + HOUR), _before(":high", length)
        yield f"(bucket_hour > {low} AND bucket_hour < {high})"


def edge_hours(view: FeatureView) -> Iterator[str]:
    """Yield the SQL conditions for a bucket to be where a window has only a part of an hour: after
    its start, and before its end."""
    for start in dict.fromkeys(window.reach for window in view.windows):
        seconds = whole_seconds(start) - 3599
        end = f"timestamp_seconds(floor((unix_seconds(:as_of) - {seconds}) / 3600) * 3600)"
        yield f"(bucket_start >= {_before(':as_of', start)} AND bucket_start < {end})"
    for offset in dict.fromkeys(window.offset for window in view.windows):
        if offset:
            first = f"floor((unix_seconds(:as_of) - {whole_seconds(offset)}) / 3600) * 3600"
            yield (
                f"(bucket_start >= timestamp_seconds({first}) "
                f"AND bucket_start < {_before(':as_of', offset)})"
            )
