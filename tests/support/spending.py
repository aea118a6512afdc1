"""Amounts spent: features that do not add up, and what they are by brute force."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import datetime, timedelta

from pyspark.sql import functions as F

import oracle
from lakes import Event, TestLake
from tidemill.pipeline.steps import feature_step

MINUTE = timedelta(minutes=1)


def some_event(choose: random.Random, now: datetime) -> Event:
    """An event in the minute before now, or late: by minutes, or around the windows' edges."""
    late = choose.choice([1, 1, 1, 2, 30, 60, 61, 719, 720, 1439, 1440, 1441, 3000])
    key, kind = choose.choice("pqr"), choose.choice(oracle.TYPES)
    return (None, key, choose.choice("gh"), kind, now - late * MINUTE)


SPENT = {
    "name": "engagement",
    "keys": ["profile_id"],
    "event_time": "event_timestamp",
    "schema": {"profile_id": "string", "event_type": "string", "amount": "bigint"},
    "features": [
        {"min": "amount", "over": ["1h", "1d"]},
        {"max": {"of": "amount", "by": {"event_type": ["view"]}}, "over": ["1h"]},
        {"count": {}, "over": ["1h"]},
    ],
}


Spending = tuple[str, str, int, datetime]


def feed_spending(lake: TestLake, batch: Iterable[Spending]) -> None:
    schema = "profile_id STRING, event_type STRING, amount BIGINT, event_timestamp TIMESTAMP"
    feed_rows(lake, batch, schema)


def feed_rows(lake: TestLake, batch: Iterable[tuple], schema: str) -> None:
    lake.batch += 1
    frame = lake.spark.createDataFrame(list(batch), schema).coalesce(1)
    feature_step.feature_batch(frame, lake.batch, lake=lake.lake, clock=lake.clock, follows="event")


def spent(lake: TestLake) -> dict[str, tuple]:
    names = ("amount_min_1d", "amount_min_1h", "view_amount_max_1h", "count_1h")
    rows = lake.table("features").where(F.col("amount_min_1d").isNotNull()).collect()
    return {row["profile_id"]: tuple(row[name] for name in names) for row in rows}


def brute(known: Iterable[Spending], as_of: datetime) -> dict[str, tuple]:
    found: dict[str, tuple] = {}
    for key in {event[0] for event in known}:
        day, hour = (
            [e for e in known if e[0] == key and as_of - length <= e[3] < as_of]
            for length in (timedelta(days=1), timedelta(hours=1))
        )
        if day:
            views = [e[2] for e in hour if e[1] == "view"]
            amounts = [e[2] for e in hour]
            found[key] = (
                min(e[2] for e in day),
                min(amounts, default=None),
                max(views, default=None),
                len(hour),
            )
    return found
