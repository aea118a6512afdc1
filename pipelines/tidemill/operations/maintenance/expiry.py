"""The steps `expire` and `empty`: rows that no window reads any more."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from tidemill.config.settings import iso
from tidemill.features import FeatureView
from tidemill.features.windows import duration
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger, writer
from tidemill.lake.parameters import ask
from tidemill.lake.schema import expired_before
from tidemill.lake.statements import statement
from tidemill.lake.tables import Table
from tidemill.operations.maintenance.partitions import files_of, text_of
from tidemill.operations.maintenance.step import Step, many
from tidemill.pipeline.gold import empty_rows
from tidemill.pipeline.silver import minute_buckets


def expire(lake: Lake, view: FeatureView) -> Iterator[Step]:
    """Yield the steps that remove buckets and hours older than the history."""
    before = _expired_before(lake, view)
    if before is None:
        return
    history = lake.pipeline.history
    for table in lake.known([lake.tables.of(view).buckets, lake.tables.of(view).hours]):
        (column,) = table.partitioned_by
        edge = text_of(column, before)
        old = [value for value in files_of(lake, table) if value < edge]
        if old:
            reason = f"{many(len(old), 'partition')} older than {history}"
            run = partial(_delete, lake, view, table, column, before)
            yield Step(table.name, "expire", reason, run)


def _expired_before(lake: Lake, view: FeatureView) -> datetime | None:
    """Return the hour before which no bucket is kept: `history` before the end of the newest one,
    or of gold's windows where gold was refreshed to an earlier time. None without any."""
    newest = minute_buckets.event_as_of(minute_buckets.bucketed(lake, view), view)
    as_of = lake.gold_state(view).as_of
    if newest is None or as_of is None:
        return None
    before = min(newest, as_of) - lake.pipeline.kept_of(view)
    return before.replace(minute=0, second=0, microsecond=0)


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
