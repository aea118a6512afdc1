"""Events of some keys looked up again in their dimensions, in place.

    events of the keys ──lookup──► those that differ ──MERGE──► <pipeline>_events

What a dimension's late rows change is repaired so: the events of the keys that are asked for take
what it says now, and the buckets of those keys are made of them (see `replacement`). So are those
of the keys that the events which take something else have in views of other keys. Where a view's
key is itself taken of a dimension, an event may leave one key for another: the buckets of both are
made again. The commit's ledger names them, so a rebuild that died behind it finds them again.

`feature` passes the commit over; it only follows appends of such events.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.features import FeatureView, attempts
from tidemill.features.expressions import fallible
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger, writer
from tidemill.lake.commits.failpoints import reach
from tidemill.operations.rebuild import backfill_rows
from tidemill.operations.rebuild.wanted import Wanted
from tidemill.operations.rebuild.work import Work
from tidemill.pipeline.row_writes.frame_cache import cached
from tidemill.pipeline.silver import lookup
from tidemill.pipeline.silver.lookup import Readings

LOOKED_UP = "events looked up again"
SOURCE = "tidemill_looked_up"
Keys = tuple[Mapping[str, str], ...]


def look_up_again(work: Work, lake: Lake) -> Wanted:
    """Look the events of the keys that are wanted up again; return what is wanted with the keys of
    any view that those have, and had, which take something else now."""
    asked = work.wanted.keys
    name = lake.tables.events.name
    events = _flagged(lake.spark.table(name), lake)
    views = lake.pipeline.views
    conditions = [_condition(v, keys) for v in views if (keys := work.wanted.keys_of(v))]
    of_keys = " OR ".join(f"({one})" for one in conditions)
    mine = _keyed(events, views).where(of_keys).select(*events.columns)
    found = lookup.enriched(mine, lake, Readings().versions(lake))
    differs = " OR ".join(f"{c} IS DISTINCT FROM __was_{c}" for c in lake.pipeline.enriched)
    known = _moved_before(lake, asked)
    with cached(found.where(differs)) as changed:
        count = changed.count()
        before = changed.withColumns({n: F.col(f"__was_{n}") for n in lake.pipeline.enriched})
        moved = _together(known, *(_keys(rows, v) for v in views for rows in (before, changed)))
        if count:
            _write(lake, changed, asked, moved)
    reach("rebuild.events_looked_up")
    work.say(f"  {name}  {count:,} events take something else of their dimensions")
    return replace(work.wanted, keys=_together(asked, moved))


def _flagged(events: DataFrame, lake: Lake) -> DataFrame:
    """Return the events with what they took, as `__was_<column>`."""
    taken = {f"__was_{name}": F.col(name) for name in lake.pipeline.enriched}
    return events.withColumns(taken)


def _keyed(events: DataFrame, views: Sequence[FeatureView]) -> DataFrame:
    """Return the events with the keys of each view, as `__<view>_<key>`."""
    columns = []
    for view in views:
        sql = {one.name: fallible.or_null(one.sql, view.event_time) for one in _selected(view)}
        columns += [f"{sql.get(key, key)} AS {_name(view, key)}" for key in view.keys]
    return events.selectExpr("*", *columns)


def _selected(view: FeatureView) -> list[attempts.Attempt]:
    return [one for one in attempts.selected(view) if one.name in view.keys]


def _name(view: FeatureView, key: str) -> str:
    return f"__{view.name}_{key}"


def _condition(view: FeatureView, keys: Keys) -> str:
    named = [{_name(view, name): value for name, value in key.items()} for key in keys]
    return backfill_rows.of_keys(named)


def _keys(events: DataFrame, view: FeatureView) -> Keys:
    """Return the keys of a view that events have, as texts, which SQL compares by their type."""
    names = [_name(view, key) for key in view.keys]
    texts = [F.col(name).cast("string").alias(name) for name in names]
    rows = _keyed(events, [view]).select(*texts).distinct().collect()
    found = ({key: row[_name(view, key)] for key in view.keys} for row in rows)
    return tuple(key for key in found if None not in key.values())


def _together(*keys: Keys) -> Keys:
    """Return the keys in the order of their values, each once: a rebuild is known by them."""
    each = {json.dumps(key, sort_keys=True): key for of in keys for key in of}
    return tuple(each[text] for text in sorted(each))


def _moved_before(lake: Lake, asked: Keys) -> Keys:
    """Return the keys that an earlier rebuild of the same ones found their events to have."""
    commits = lake.commits(lake.tables.events.name, None)
    ledgers = (commit.ledger for commit in commits if commit.ledger)
    same = (f for f in ledgers if f.get(ledger.UPKEEP) == LOOKED_UP and f["asked"] == list(asked))
    return tuple(key for fields in same for key in fields["keys"])


def _write(lake: Lake, changed: DataFrame, asked: Keys, moved: Keys) -> None:
    """MERGE what the events take now, in a commit that says so."""
    name = lake.tables.events.name
    fields = {
        "generation": lake.generation,
        "batch": backfill_rows.newest_event_batch(lake),
        ledger.UPKEEP: LOOKED_UP,
        "asked": [dict(key) for key in asked],
        "keys": [dict(key) for key in moved],
    }
    assigned = ", ".join(f"{column} = now.{column}" for column in lake.pipeline.enriched)
    same = "event.event_hour = now.event_hour AND event.record_id = now.record_id"
    changed.createOrReplaceTempView(SOURCE)
    try:
        with writer.carrying(lake.spark, fields):
            lake.spark.sql(
                f"MERGE INTO {name} AS event USING {SOURCE} AS now ON {same} "
                f"WHEN MATCHED THEN UPDATE SET {assigned}"
            ).collect()
    finally:
        lake.spark.catalog.dropTempView(SOURCE)
