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


def start(window: Window, as_of: str) -> str:
    """Return the SQL of where a window starts at a time."""
    if window.period is None:
        return _before(as_of, window.reach)
    return window.period.sql(end(window, as_of))


def end(window: Window, as_of: str) -> str:
    """Return the SQL of where a window ends at a time."""
    return _before(as_of, window.offset)


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
    return f"bucket_start >= {start(window, as_of)} AND bucket_start < {end(window, as_of)}"


def inside(window: Window, by_hours: bool) -> str:
    """Return the SQL condition for a row of the horizon to count in a window.

    By hours a minute row counts only where no hour row stands for it, and an hour row where the
    window holds all of it.
    """
    first, last = start(window, ":as_of"), end(window, ":as_of")
    inside = f"bucket_start >= {first}"
    if not by_hours:
        return f"{inside} AND bucket_start < {last}" if window.offset else inside
    if not window.offset:
        return f"{inside} AND __covered_from < {first}"
    hour = f"{last} - INTERVAL '60' MINUTE"
    uncovered = f"(__covered_from < {first} OR __covered_from > {hour})"
    return f"{inside} AND __last < {last} AND {uncovered}"


def _passed(view: FeatureView) -> Iterator[tuple[str, str]]:
    """Yield from where to where the starts and ends of windows passed, each once."""
    pairs = ((side(w, ":low"), side(w, ":high")) for w in view.windows for side in (start, end))
    yield from dict.fromkeys(pairs)


def edges(view: FeatureView) -> Iterator[str]:
    """Yield the SQL conditions for a bucket to be where a window's start or end passed, but for
    as_of itself."""
    for low, high in _passed(view):
        if low not in (":low", high):  # a lifetime's start stands still
            yield f"(bucket_start >= {low} AND bucket_start < {high})"


def edge_partitions(view: FeatureView) -> Iterator[str]:
    """Yield the SQL conditions for an hour to hold buckets of such an edge, or of where as_of
    passed."""
    for low, high in dict.fromkeys(((":low", ":high"), *_passed(view))):
        yield f"(bucket_hour > {low} - {interval(HOUR)} AND bucket_hour < {high})"


def edge_hours(view: FeatureView) -> Iterator[str]:
    """Yield the SQL conditions for a bucket to be where a window has only a part of an hour: after
    its start, and before its end."""
    for first in dict.fromkeys(start(window, ":as_of") for window in view.windows):
        hour = f"timestamp_seconds(floor((unix_seconds({first}) + 3599) / 3600) * 3600)"
        yield f"(bucket_start >= {first} AND bucket_start < {hour})"
    for offset in dict.fromkeys(window.offset for window in view.windows):
        if offset:
            first = f"floor((unix_seconds(:as_of) - {whole_seconds(offset)}) / 3600) * 3600"
            yield (
                f"(bucket_start >= timestamp_seconds({first}) "
                f"AND bucket_start < {_before(':as_of', offset)})"
            )
