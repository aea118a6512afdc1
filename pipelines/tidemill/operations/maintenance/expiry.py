"""The steps `expire` and `empty`: rows that no window reads any more, or only as a lifetime's.

    no lifetimes   buckets older than the history ──DELETE──► gone
    lifetimes      buckets older than the history ──one row per keys──► the keys' base

Before either the bucket table says so (see `expired_before`): dying after that, it says too much.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from tidemill.config.settings import iso
from tidemill.features import FeatureView
from tidemill.features.windows import BEGINNING, duration
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import failpoints, ledger, writer
from tidemill.lake.commits.races import past_others
from tidemill.lake.integrity import interrupted_rebuilds
from tidemill.lake.parameters import ask, literal
from tidemill.lake.schema import expired_before
from tidemill.lake.statements import statement
from tidemill.lake.tables import Table
from tidemill.operations.maintenance.partitions import files_of, text_of
from tidemill.operations.maintenance.step import Step, many
from tidemill.pipeline.gold import empty_rows
from tidemill.pipeline.silver import key_base, minute_buckets


def expire(lake: Lake, view: FeatureView) -> Iterator[Step]:
    """Yield the steps that remove buckets and hours older than the history."""
    before = _expired_before(lake, view)
    if before is None:
        return
    history = lake.pipeline.history
    for table in lake.known([lake.tables.of(view).buckets, lake.tables.of(view).hours]):
        (column,) = table.partitioned_by
        edge = text_of(column, before)
        folds = view.has_lifetimes and table.name == lake.tables.of(view).buckets.name
        first = text_of(column, BEGINNING) if folds else ""
        old = [value for value in files_of(lake, table) if first < value < edge]
        if old:
            reason = f"{many(len(old), 'partition')} older than {history}"
            if folds:
                reason += ", into the keys' base"
                run = partial(_fold, lake, view, table, before)
            else:
                run = partial(_delete, lake, view, table, column, before)
            yield Step(table.name, "expire", reason, run)


def _expired_before(lake: Lake, view: FeatureView) -> datetime | None:
    """Return the hour before which no bucket is kept: `history` before the end of the newest one,
    or of gold's windows where gold was refreshed to an earlier time; not before what is folded
    already, however long the history is now. None without any bucket."""
    newest = minute_buckets.event_as_of(minute_buckets.bucketed(lake, view), view)
    as_of = lake.gold_state(view).as_of
    if newest is None or as_of is None:
        return None
    before = min(newest, as_of) - lake.pipeline.kept_of(view)
    before = before.replace(minute=0, second=0, microsecond=0)
    name = lake.tables.of(view).buckets.name
    folded = expired_before.folded_before(lake.metadata(name).properties)
    return max(before, folded) if folded else before


def _delete(lake: Lake, view: FeatureView, table: Table, column: str, before: datetime) -> str:
    """Delete whole partitions, in a commit that says so: no refresh takes it for another's."""
    limit = before.date() if column == "bucket_day" else before
    if table.name == lake.tables.of(view).buckets.name:
        # first: dying here, it says too much, never too little
        expired_before.note(lake, table.name, before)
    ledger_fields = {
        "generation": lake.generation,
        "batch": minute_buckets.bucketed(lake, view).batch,
        ledger.UPKEEP: f"{expired_before.WORDS}{iso(before)}",
    }
    with writer.carrying(lake.spark, ledger_fields):
        sql = f"DELETE FROM {table.name} WHERE {column} < :before"
        ask(lake.spark, sql, {"before": limit})
    return f"removed what is before {iso(before)}"


def _fold(lake: Lake, view: FeatureView, table: Table, before: datetime) -> str:
    """Put one row per keys in the place of the rows before an hour, in one commit.

    Gold must have seen them: a refresh takes a row of a batch that it has not for a new one. And
    no rebuild may be half-way, whose rows are made as of an earlier batch.
    """
    newest = minute_buckets.bucketed(lake, view).batch
    if lake.gold_state(view).batch < newest:
        return "a refresh comes first"
    if interrupted_rebuilds.of_view(lake, view):
        return "the rebuild that was begun comes first"
    expired_before.note(lake, table.name, before, folded=True)
    failpoints.reach("expiry.noted")
    ledger_fields = {
        "generation": lake.generation,
        "batch": newest,
        ledger.UPKEEP: f"folded before {iso(before)}",
    }
    scope = f"bucket_hour < {literal(before)}"

    def write() -> None:
        rows = key_base.rows(lake, view, before).select(*table.column_names)
        writer.write(rows, table.name, ledger_fields, replaces_where=scope)

    past_others(write)
    failpoints.reach("expiry.folded")
    return f"folded what is before {iso(before)}"


def expire_arrivals(lake: Lake, view: FeatureView) -> Iterator[Step]:
    """Yield the step that removes what the stateful engine has merged into gold: it reads new
    arrivals alone."""
    table, batch = lake.tables.of(view).arrivals, lake.gold_state(view).batch
    if lake.pipeline.engine != "stateful" or batch < 0:
        return
    counted = lake.ask(f"SELECT count(*) AS rows FROM {table.name} WHERE batch < {batch}", {})
    rows = counted.rows[0]["rows"]

    def run() -> str:
        ledger_fields = {
            "generation": lake.generation,
            "batch": batch,
            ledger.UPKEEP: f"removed what was merged before batch {batch}",
        }
        with writer.carrying(lake.spark, ledger_fields):
            lake.spark.sql(f"DELETE FROM {table.name} WHERE batch < {batch}")
        return f"{many(rows, 'row')} removed"

    if rows:
        yield Step(table.name, "expire", f"{many(rows, 'row')} that the state has read", run)


def empty(lake: Lake, view: FeatureView, as_of: datetime) -> Iterator[Step]:
    """Yield the step that removes rows of gold that have been empty for longer than they are
    kept."""
    before = as_of - duration(view.keep_empty)
    counted = lake.ask(
        f"SELECT count(*) AS rows FROM (\n{statement('emptied', view)})", {"before": before}
    )
    rows = counted.rows[0]["rows"]

    def run() -> str:
        removed = empty_rows.remove_empty(lake, view, before)
        return "a refresh comes first" if removed is None else f"{many(removed, 'row')} removed"

    if rows:
        reason = f"{many(rows, 'row')} empty for more than {view.keep_empty}"
        yield Step(lake.tables.of(view).gold.name, "empty", reason, run)
