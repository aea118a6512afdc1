"""What the streams of the shipped pipelines should hold, by DuckDB and by Python, from the valid
events alone.

Of a stream that waits for its watermark, `sure` are the rows that have to be there, `possible`
those that may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa

from shipped import Event

Rows = set[tuple[Any, ...]]
HALF_HOUR, HOUR = timedelta(minutes=30), timedelta(hours=1)


@dataclass(frozen=True)
class Expected:
    """The columns to look at, the rows that have to be there, and those that may be."""

    columns: tuple[str, ...]
    sure: Rows
    possible: Rows
    about: tuple[str, ...] = ()  # columns behind these that are estimates

    @classmethod
    def exactly(cls, columns: str, rows: Iterable[tuple[Any, ...]]) -> Expected:
        found = set(rows)
        return cls(tuple(columns.split()), found, found)

    @classmethod
    def closed(
        cls, columns: str, rows: Iterable[tuple[Any, ...]], start: int, until: datetime
    ) -> Expected:
        """Windows of an hour, of which those that end by `until` have to be there."""
        found = set(rows)
        sure = {row for row in found if row[start] + HOUR <= until}
        return cls(tuple(columns.split()), sure, found)


def _asked(events: Sequence[Event], text: str, **values: Any) -> list[tuple[Any, ...]]:
    """The answer of DuckDB, which has the events as a table, times in UTC."""
    table = pa.table({name: [event[name] for event in events] for name in _plain(events)})
    zone = events[0]["at"].tzinfo
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("events", table)
        rows = connection.execute(text, values or None).fetchall()
    return [
        tuple(v.astimezone(zone) if isinstance(v, datetime) else v for v in row) for row in rows
    ]


def _plain(events: Sequence[Event]) -> list[str]:
    """The names of what each event has, as one type: an event's time comes in several."""
    return [
        name
        for name in events[0]
        if len({type(event.get(name)) for event in events}) == 1 and name != "event_id"
    ]


def pairs(
    events: Sequence[Event], kinds: tuple[str, str], keys: Sequence[str], within: int, kind: str
) -> str:
    """The statement of a join within minutes: keys, and both times."""
    named = ", ".join(f"coalesce(a.{key}, b.{key})" for key in keys)
    same = " AND ".join(f"a.{key} = b.{key}" for key in keys)
    left, right = (f"(SELECT * FROM events WHERE event_type = '{each}')" for each in kinds)
    return (
        f"SELECT {named}, a.at, b.at FROM {left} a {kind} JOIN {right} b ON {same} "
        f"AND b.at BETWEEN a.at AND a.at + INTERVAL {within} MINUTE"
    )


def left_join(
    events: Sequence[Event],
    kinds: tuple[str, str],
    keys: Sequence[str],
    within: int,
    watermark: datetime,
) -> Expected:
    rows = set(_asked(events, pairs(events, kinds, keys, within, "LEFT")))
    limit = watermark - timedelta(minutes=within)
    known = {row for row in rows if row[-1] is not None or row[-2] < limit}
    columns = (*keys, f"{kinds[0]}_at", f"{kinds[1]}_at")
    return Expected(columns, known, known)


def attribution(events: Sequence[Event]) -> dict[str, Expected]:
    passed = newest(events) - timedelta(hours=3)
    keys = ("profile_id", "gti", "event_type")
    ends = "profile_id, event_type, min(events.at), max(events.at)"
    spans = _asked(events, f"SELECT {ends} FROM events GROUP BY profile_id, event_type")
    firsts = {tuple(event[key] for key in keys) for event in events}
    joined = left_join(events, ("highlight", "select"), keys[:2], 60, passed)
    return {
        "attribution": joined,
        "first_activity": Expected(keys, firsts, firsts),
        "profile_activity": Expected.exactly("profile_id event_type first_at last_at", spans),
    }


def orders(events: Sequence[Event]) -> dict[str, Expected]:
    passed = newest(events) - timedelta(minutes=10)
    kinds = ("order", "payment")
    paid = _asked(events, pairs(events, kinds, ["order_id"], 30, "INNER"))
    return {
        "order_payments": Expected.exactly("order_id order_at payment_at", paid),
        "orders_with_payments": left_join(events, kinds, ["order_id"], 30, passed),
    }


def ad_attribution(events: Sequence[Event]) -> dict[str, Expected]:
    passed = newest(events) - timedelta(hours=3)
    kinds, keys = ("impression", "click"), ("impression_id", "ad_id")
    joined = pairs(events, kinds, keys, 60, "INNER")
    clicks = _asked(
        events,
        "SELECT ad, time_bucket(INTERVAL 1 HOUR, click), count(*) "
        f"FROM ({joined}) AS found(impression, ad, shown, click) GROUP BY ALL",
    )
    return {
        "ad_attribution": left_join(events, kinds, keys, 60, passed),
        # what comes out of a join is late by the time within which it joins
        "ad_clicks": Expected.closed("ad_id window_start clicks", clicks, 1, passed - HOUR),
    }


def sales_summary(events: Sequence[Event]) -> dict[str, Expected]:
    passed = newest(events) - timedelta(hours=3)
    five = "time_bucket(INTERVAL 5 MINUTE, events.at)"
    summary = _asked(
        events,
        f"SELECT category, {five}, sum(amount), count(*), count(DISTINCT user_id) "
        "FROM events GROUP BY ALL",
    )
    users = _asked(events, f"SELECT {five}, count(DISTINCT user_id) FROM events GROUP BY ALL")
    rolling = _asked(
        events,
        "SELECT category, time_bucket(INTERVAL 2 MINUTE, events.at) - INTERVAL 2 MINUTE * step, "
        "sum(amount) FROM events, range(5) AS steps(step) GROUP BY ALL",
    )
    averages = _asked(
        events,
        "SELECT category, time_bucket(INTERVAL 1 HOUR, ten), avg(sales) FROM ("
        "SELECT category, time_bucket(INTERVAL 10 MINUTE, events.at) AS ten, count(*) AS sales "
        "FROM events GROUP BY ALL) GROUP BY ALL",
    )
    window = ("category", "window_start")
    return {
        "sales_summary": Expected(
            (*window, "revenue", "orders", "unique_users"),
            {*summary},
            {*summary},
            ("unique_users",),
        ),
        "rolling_sales": Expected.exactly("category window_start rolling_revenue", rolling),
        "hourly_average": Expected.closed("category window_start average", averages, 1, passed),
        "active_users": Expected(("window_start", "users"), {*users}, {*users}, ("users",)),
    }


def user_sessions(events: Sequence[Event]) -> dict[str, Expected]:
    """A session goes on while an event is not later than what one of its events waits for."""
    found: list[list[Any]] = []
    going_on: dict[str, list[Any]] = {}
    for event in sorted(events, key=lambda event: (event["user_id"], event["at"])):
        waits = timedelta(minutes=10) if event["user_kind"] == "staff" else HALF_HOUR
        user, at = event["user_id"], event["at"]
        session = going_on.get(user)
        if session is None or at > session[4]:
            session = going_on[user] = [user, at, at, 0, at]
            found.append(session)
        session[2:] = [at, session[3] + 1, max(session[4], at + waits)]
    columns = "user_id session_start session_end page_views closes_at"
    return {"user_sessions": Expected.exactly(columns, map(tuple, found))}


def activity_spells(events: Sequence[Event]) -> dict[str, Expected]:
    """The spells that are over when the watermark has passed, of the events up to it."""
    passed = newest(events) - timedelta(hours=3)
    passed = passed.replace(microsecond=passed.microsecond // 1000 * 1000)
    found: Rows = set()
    for user in {event["user_id"] for event in events}:
        mine = sorted((e["at"], e["page"]) for e in events if e["user_id"] == user)
        mine = [(at, page) for at, page in mine if at <= passed]
        spell: list[Any] = []
        for at, page in mine:
            if spell and at - spell[2] < HALF_HOUR and page == spell[0]:
                spell[2:] = [at, spell[3] + 1]
                continue
            if spell:
                is_over = at - spell[2] >= HALF_HOUR
                end, by = (spell[2], "timeout") if is_over else (at, "change")
                found.add((user, *spell[:2], end, spell[3], by))
            spell = [page, at, at, 1]
        if spell and passed - spell[2] >= HALF_HOUR:
            found.add((user, *spell, "timeout"))
    columns = "user_id page start_at end_at events ended_by"
    return {"activity_spells": Expected.exactly(columns, found)}


def newest(events: Iterable[Event]) -> datetime:
    found: datetime = max(event["at"] for event in events)
    return found


STREAMS = {
    "activity_spells": activity_spells,
    "ad_attribution": ad_attribution,
    "attribution": attribution,
    "orders": orders,
    "sales_summary": sales_summary,
    "user_sessions": user_sessions,
}


def check(name: str, expected: Expected, rows: Sequence[Mapping[str, Any]]) -> None:
    """Fail unless the rows that have to be there are, and no other that may not; of estimates the
    rows without them, and these within a tenth or two."""
    exact = len(expected.columns) - len(expected.about)
    found = [tuple(row[column] for column in expected.columns) for row in rows]
    heads = {row[:exact] for row in found}
    assert len(heads) == len(found), f"{name}: a row stands twice"
    missing = {row[:exact] for row in expected.sure} - heads
    more = heads - {row[:exact] for row in expected.possible}
    assert not missing, f"{name}: {len(missing)} of {len(expected.sure)}, {sorted(missing)[:3]}"
    assert not more, f"{name}: {len(more)} too many, {sorted(more)[:3]}"
    wanted = {row[:exact]: row[exact:] for row in expected.possible}
    for row in found if expected.about else ():
        for estimate, number in zip(row[exact:], wanted[row[:exact]], strict=True):
            assert abs(estimate - number) <= max(2, number * 0.15), f"{name}: {row}, {number}"
