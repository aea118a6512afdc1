"""What a rebuild of a part writes, and where the bucket table says how far it is.

Of a rebuild of features its property `tidemill.rebuild` is a JSON object:

    {spec, id}           what is rebuilt, and a name for its transactions
    {done, until}        how many days are done, and the newest batch of events in them
    {to, aim, tails}     of later events: the newest batch that was read, the one to read to

It goes in the commit by which the table says that it holds the features. Keys, and what came since
a time, are staged (see `staging`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.config.settings import iso
from tidemill.errors import UsageError
from tidemill.features import FeatureView
from tidemill.features.key_text import key_text
from tidemill.features.windows import BEGINNING
from tidemill.lake import times
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger, writer
from tidemill.lake.integrity import interrupted_rebuilds
from tidemill.lake.parameters import literal, quoted
from tidemill.lake.schema import creation, evolution, expired_before, table_properties
from tidemill.pipeline.silver import minute_buckets

DAY = timedelta(days=1)
TAILS = 1_000_000  # the transaction numbers of later events begin here, those of days at 0


def make_room(lake: Lake, view: FeatureView, partials: Sequence[str], rebuild: str) -> None:
    """Add the columns that are missing, and empty those that hold something from before."""
    name = lake.tables.of(view).buckets.name
    columns = {field.name for field in lake.spark.table(name).schema}
    declared = {column.name: column for column in lake.tables.of(view).buckets.columns}
    new = [declared[partial] for partial in partials if partial not in columns]
    evolution.append_columns(lake.spark, name, new)
    old = [partial for partial in partials if partial in columns]
    if old:
        ledger_fields = {
            "generation": lake.generation,
            "batch": minute_buckets.bucketed(lake, view).batch,
            ledger.UPKEEP: "columns emptied",
            ledger.REBUILD: rebuild,
        }
        emptied = ", ".join(f"{partial} = NULL" for partial in old)
        known = " OR ".join(f"{partial} IS NOT NULL" for partial in old)
        with writer.carrying(lake.spark, ledger_fields):
            lake.spark.sql(f"UPDATE {name} SET {emptied} WHERE {known}")


def only(
    lake: Lake, view: FeatureView, events: DataFrame, batch: int, partials: Sequence[str]
) -> DataFrame:
    """Return the buckets of events with the given partials alone; the others add nothing."""
    made = minute_buckets.buckets_of(events, batch, view)
    others = {p.name for p in view.partials if p.name not in partials}
    columns = []
    for column in lake.spark.table(lake.tables.of(view).buckets.name).schema:
        if column.name in others or column.name not in made.columns:
            nothing = F.lit(None) if column.nullable else F.lit(0)
            columns.append(nothing.cast(column.dataType).alias(column.name))
        else:
            columns.append(F.col(column.name))
    return made.select(*columns)


@dataclass(frozen=True)
class Days:
    """The days that a rebuild of a part makes again, the oldest first, and from when on they hold
    every event: `BEGINNING` where no event is older."""

    each: tuple[datetime, ...]
    whole_from: datetime


def days(
    lake: Lake,
    view: FeatureView,
    events: DataFrame,
    since: datetime | None = None,
    *,
    held: bool = False,
) -> Days:
    """Return the days that hold events, from a time on: those of which the view's buckets are kept,
    all where it has lifetimes; with `held` also older ones of which the bucket table may still hold
    rows."""
    ends = events.agg(F.unix_seconds(F.min("event_hour")), F.unix_seconds(F.max("event_hour")))
    oldest, last = (times.of_epoch(seconds) for seconds in ends.collect()[0])
    if oldest is None or last is None:
        return Days((), BEGINNING)
    kept = BEGINNING if view.has_lifetimes else last - lake.pipeline.kept_of(view)
    if held:
        kept = min(kept, expired_before.of_table(lake, lake.tables.of(view).buckets.name))
    first = max(filter(None, (oldest, since, kept)))
    day = first.replace(hour=0, minute=0, second=0, microsecond=0)
    whole_from = BEGINNING if first == oldest else max(day, since or day)
    number = (last - day) // DAY + 1 if day <= last else 0
    return Days(tuple(day + place * DAY for place in range(number)), whole_from)


def extent(lake: Lake, view: FeatureView) -> str:
    """Return, as a text, what the days depend on besides the events and the rebuild: it is the same
    one only while they are the same."""
    held_from = expired_before.of_table(lake, lake.tables.of(view).buckets.name)
    return f"{lake.pipeline.kept_of(view)}, {iso(held_from)}"


def first_replaced(view: FeatureView, days: Sequence[datetime]) -> datetime:
    """Return from when on bucket rows are replaced by those of the days: where there are lifetimes,
    with the keys' base."""
    return BEGINNING if view.has_lifetimes else days[0]


def of_day(events: DataFrame, day: datetime) -> DataFrame:
    """Return the events of a day."""
    hour = F.col("event_hour")
    return events.where((hour >= times.at(day)) & (hour < times.at(day + DAY)))


def checked_keys(
    views: Sequence[FeatureView], keys: Sequence[Mapping[str, str]]
) -> tuple[Mapping[str, str], ...]:
    """Return the keys with their values as SQL casts them to their types; UsageError for keys that
    are no view's, and for values that are none of their keys."""
    return tuple(_checked_key(views, key) for key in keys)


def _checked_key(views: Sequence[FeatureView], key: Mapping[str, str]) -> Mapping[str, str]:
    of = [view for view in views if set(view.keys) == set(key)]
    if not of:
        each = dict.fromkeys(",".join(f"{name}=..." for name in view.keys) for view in views)
        raise UsageError(
            f"{', '.join(key)} are not the keys of view {', '.join(v.name for v in views)}",
            where="--keys",
            expected=" or ".join(each),
        )
    read = [{n: key_text(n, view.types[n], text) for n, text in key.items()} for view in of]
    return read[0]


def condition(
    first: datetime,
    end: datetime | None,
    keys: Sequence[Mapping[str, str]],
    since: datetime | None,
) -> str:
    """Return the SQL condition of the bucket rows to replace from a day on, and before an end where
    there is one."""
    parts = [f"bucket_hour >= {literal(first)}"]
    if end:
        parts.append(f"bucket_hour < {literal(end)}")
    if since:
        parts.append(f"bucket_start >= {literal(since)}")
    if keys:
        parts.append(f"({of_keys(keys)})")
    return " AND ".join(parts)


def of_keys(keys: Sequence[Mapping[str, str]]) -> str:
    """Return the SQL condition of a row to be of one of the keys."""
    each = (
        " AND ".join(f"{name} = {quoted(value)}" for name, value in key.items()) for key in keys
    )
    return " OR ".join(f"({one})" for one in each)


def newest_event_batch(lake: Lake) -> int:
    """Return the newest batch of events, -1 for none."""
    row = lake.spark.table(lake.tables.events.name).agg(F.max("batch")).collect()[0]
    return -1 if row[0] is None else int(row[0])


def state(lake: Lake, name: str, spec: str) -> dict[str, Any]:
    """Return how far the same rebuild came, else its beginning."""
    known = interrupted_rebuilds.state(lake, name)
    beginning = {"spec": spec, "done": 0, "id": creation.new_generation()}
    return known if known.get("spec") == spec else beginning


def aim_at_later(lake: Lake, name: str, state: dict[str, Any], newest: int) -> bool:
    """Return whether there are events that came after the rebuild began, and say to which batch
    they are read: a write that is tried again must hold the same."""
    if state["aim"] > state["to"]:
        return True
    if newest <= state["to"]:
        return False
    state["aim"] = newest
    keep(lake, name, state)
    return True


def keep(lake: Lake, name: str, state: Mapping[str, Any]) -> None:
    """Have the bucket table say how far the rebuild is."""
    evolution.tell(lake.spark, name, {interrupted_rebuilds.STATE: json.dumps(state)})


def end(lake: Lake, view: FeatureView, whole_from: datetime) -> None:
    """Have the bucket table say, in one commit, that it holds what the view declares, from a time
    on, and that no rebuild is under way: gone on with, a rebuild that has ended would count later
    events twice."""
    name = lake.tables.of(view).buckets.name
    said = lake.metadata(name).properties
    besides = {interrupted_rebuilds.STATE: ""}
    if whole_from > expired_before.of_table(lake, name):
        besides |= expired_before.properties(whole_from)
    evolution.hold(lake.spark, name, view, said, besides)
    table_properties.delete(lake.spark, name, interrupted_rebuilds.STATE)
