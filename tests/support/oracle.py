"""What the tables must hold, counted by brute force; shares no code with the package.

events ──valid, distinct──► minute of each ──► for every key and window: count in [T - w, T)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

TYPES = ("select", "highlight", "view")
WINDOWS = {"1d": 1440, "12h": 720, "1h": 60}
MINUTE = timedelta(minutes=1)
Key = tuple[str, str]
Row = dict[str, int]
COLUMNS = [f"{kind}_count_{window}" for window in WINDOWS for kind in TYPES]


def minute_of(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)


def distinct(events: Iterable[tuple]) -> list[tuple]:
    """Return (event_id, profile_id, gti, event_type, event time) without repeated ids."""
    seen: set[tuple] = set()
    kept = []
    for event in events:
        identity = (event[0], event[4])
        if event[0] is None or identity not in seen:
            kept.append(event)
        seen.add(identity)
    return kept


def as_of(events: Iterable[tuple]) -> datetime | None:
    """The event clock: the end of the newest minute with an event."""
    return max((minute_of(event[4]) + MINUTE for event in events), default=None)


def features(events: Iterable[tuple], at: datetime) -> dict[Key, Row]:
    """The gold table's non-empty rows at a point in time."""
    found: dict[Key, Row] = {}
    for _, profile, gti, kind, time in distinct(events):
        for window, minutes in WINDOWS.items():
            if at - minutes * MINUTE <= minute_of(time) < at:
                row = found.setdefault((profile, gti), dict.fromkeys(COLUMNS, 0))
                row[f"{kind}_count_{window}"] += 1
    return found


def buckets(events: Iterable[tuple]) -> Counter[tuple]:
    """The number of events per (profile, title, type, minute)."""
    return Counter((e[1], e[2], e[3], minute_of(e[4])) for e in distinct(events))
