"""Streams beside the views of a pipeline whose definition changes, and what they should hold.

Each is made of all events that there ever were: no event comes later than its watermark, and a
stream's first batch takes all that are there. The events have `buyer`, `shop`, `points` and `at`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Protocol

PASSED = timedelta(hours=2)  # the watermark of those that have one
WITHIN = timedelta(minutes=30)


class Event(Protocol):
    """What happened."""

    buyer: str
    shop: str
    points: int
    at: datetime


Row = tuple[Any, ...]


@dataclass(frozen=True)
class Oracle:
    """What is declared under a stream's name with a gap or length of minutes, the columns to look
    at, and their rows of all events."""

    words: Callable[[int], dict[str, Any]]
    columns: tuple[str, ...]
    rows: Callable[[Sequence[Event], int], Iterable[Row]]


def _spans(events: Sequence[Event], minutes: int) -> Iterable[Row]:
    for buyer in {event.buyer for event in events}:
        times = [event.at for event in events if event.buyer == buyer]
        yield buyer, min(times), max(times)


def _sessions(events: Sequence[Event], minutes: int) -> Iterable[Row]:
    gap, found = timedelta(minutes=minutes), list[list[Any]]()
    for event in sorted(events, key=lambda event: (event.buyer, event.at)):
        going_on = found and found[-1][0] == event.buyer and event.at <= found[-1][2] + gap
        if not going_on:
            found.append([event.buyer, event.at, event.at, 0])
        found[-1][2:] = [event.at, found[-1][3] + 1]
    return map(tuple, found)


def _totals(events: Sequence[Event], minutes: int) -> Iterable[Row]:
    found: dict[Row, list[int]] = {}
    for event in events:
        seconds = int(event.at.timestamp())
        start = event.at - timedelta(seconds=seconds % (minutes * 60))
        found.setdefault((event.shop, start), []).append(event.points)
    return [(*key, len(points), sum(points)) for key, points in found.items()]


def _pairs(events: Sequence[Event], minutes: int) -> Iterable[Row]:
    """A cheap one and the dear ones that follow it; without one, once it is sure that none does."""
    newest = max(event.at for event in events)
    for cheap in (event for event in events if event.points < 20):
        limit = cheap.at + WITHIN
        dear = [
            event
            for event in events
            if event.buyer == cheap.buyer and event.points >= 20 and cheap.at <= event.at <= limit
        ]
        for event in dear:
            yield cheap.buyer, cheap.at, cheap.points, event.at, event.points
        if not dear and limit < newest - PASSED:
            yield cheap.buyer, cheap.at, cheap.points, None, None


def _side(name: str, where: str) -> dict[str, Any]:
    return {"name": name, "where": where, "watermark": "2h", "columns": ["points"]}


STREAMS: Mapping[str, Oracle] = {
    "ends": Oracle(
        lambda minutes: {"span": {"keys": ["buyer"]}}, ("buyer", "first_at", "last_at"), _spans
    ),
    "visits": Oracle(
        lambda minutes: {
            "sessions": {
                "keys": ["buyer"],
                "gap": f"{minutes}m",
                "watermark": "2h",
                "page": "shop",
            }
        },
        ("buyer", "session_start", "session_end", "page_views"),
        _sessions,
    ),
    "takings": Oracle(
        lambda minutes: {
            "totals": {
                "keys": ["shop"],
                "length": f"{minutes}m",
                "watermark": "2h",
                "compute": {"events": "count", "points": {"sum": "points"}},
            }
        },
        ("shop", "window_start", "events", "points"),
        _totals,
    ),
    "dearer": Oracle(
        lambda minutes: {
            "join": {
                "kind": "left",
                "left": _side("cheap", "points < 20"),
                "right": _side("dear", "points >= 20"),
                "keys": ["buyer"],
                "within": "30m",
            }
        },
        ("buyer", "cheap_at", "cheap_points", "dear_at", "dear_points"),
        _pairs,
    ),
}


def _zoned(value: Any) -> Any:
    """Spark's times are of the session's zone, UTC, without saying so."""
    return value.replace(tzinfo=timezone.utc) if isinstance(value, datetime) else value


def declared(names: Iterable[str], minutes: int) -> list[dict[str, Any]]:
    return [{"name": name, **STREAMS[name].words(minutes)} for name in names]


def difference(
    name: str, minutes: int, events: Sequence[Event], rows: Iterable[Mapping[str, Any]]
) -> str:
    """Return what a stream's table has too much and too little; empty where it is right."""
    of = STREAMS[name]
    found = Counter(tuple(_zoned(row[column]) for column in of.columns) for row in rows)
    wanted = Counter(of.rows(events, minutes))
    if found == wanted:
        return ""
    more, less = [*(found - wanted).elements()], [*(wanted - found).elements()]
    return f"{name}: {len(more)} too many, {more[:3]}; {len(less)} missing, {less[:3]}"
