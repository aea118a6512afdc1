"""Features that the buckets lack: columns, and rows that hold only them, a day at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger, writer
from tidemill.lake.integrity import interrupted_rebuilds
from tidemill.operations.rebuild import backfill_rows, missing_partials
from tidemill.operations.rebuild.work import Work
from tidemill.pipeline.connection import unchecked_lake
from tidemill.pipeline.silver import minute_buckets


def add_features(work: Work) -> tuple[Lake, int]:
    """Add what the buckets lack for the features; return the lake as it is declared."""
    declared = unchecked_lake(work.opening, work.definition)
    lacking = missing_partials.partials(declared, work.wanted.features)
    before = missing_partials.without(work.definition, lacking)
    lake = work.lake(before, work.made_from)
    interrupted_rebuilds.refuse_from_bronze(lake)
    work.catch_up(lake)
    rows = 0
    for view in work.definition.views:
        if partials := lacking[view.name]:
            rows += _backfill(work, replace(lake, pipeline=work.definition), view, partials)
    return work.lake(work.definition, work.made_from), rows


def _backfill(work: Work, lake: Lake, view: FeatureView, partials: tuple[str, ...]) -> int:
    name, generation = lake.tables.of(view).buckets.name, lake.generation
    spec = work.wanted.spec(view, partials, backfill_rows.extent(lake, view))
    state = backfill_rows.state(lake, name, spec)
    newest = backfill_rows.newest_event_batch(lake)
    if "until" not in state:
        work.say(f"{name}: {', '.join(partials)} from the events")
        backfill_rows.make_room(lake, view, partials, state["id"])
        state |= {"until": newest, "to": newest, "aim": newest, "tails": 0}
        backfill_rows.keep(lake, name, state)
    events = lake.spark.table(lake.tables.events.name)
    known = events.where(F.col("batch") <= state["until"])
    batch, rows = minute_buckets.bucketed(lake, view).batch, 0
    ledger_fields = {
        "generation": generation,
        "batch": batch,
        ledger.UPKEEP: "features from events",
        ledger.REBUILD: state["id"],
    }
    app_id = f"{lake.app_id(lake.tables.of(view).buckets)}:{state['id']}"
    days = backfill_rows.days(lake, view, known)
    for place, day in list(enumerate(days.each))[state["done"] :]:
        made = backfill_rows.only(lake, view, backfill_rows.of_day(known, day), batch, partials)
        words = f"{place + 1}/{len(days.each)}  {day:%Y-%m-%d}"
        rows += _written(work, lake, name, made, ledger_fields, words, txn=(app_id, place))
        state |= {"done": place + 1}
        backfill_rows.keep(lake, name, state)
    while backfill_rows.aim_at_later(lake, name, state, newest):
        later = events.where(F.col("batch").between(state["to"] + 1, state["aim"]))
        made = backfill_rows.only(lake, view, later, batch, partials)
        txn = (app_id, backfill_rows.TAILS + state["tails"])
        rows += _written(work, lake, name, made, ledger_fields, "later events", txn=txn)
        state |= {"to": state["aim"], "tails": state["tails"] + 1}
        backfill_rows.keep(lake, name, state)
    backfill_rows.end(lake, view, days.whole_from)
    return rows


def _written(
    work: Work,
    lake: Lake,
    name: str,
    rows: DataFrame,
    ledger_fields: Mapping[str, Any],
    words: str,
    *,
    txn: tuple[str, int],
) -> int:
    """Append a chunk; return its number of rows."""
    work.refuse_stop(name)
    writer.write(rows, name, ledger_fields, txn)
    return work.chunk_written(lake, name, words)
