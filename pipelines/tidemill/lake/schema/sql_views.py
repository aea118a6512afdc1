"""The views and SQL functions for people, made beside the tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import date
from functools import partial

from pyspark.sql import SparkSession

from tidemill.config.dimension import Dimension
from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.stream_operators.stream import Stream
from tidemill.features import FeatureView
from tidemill.lake import tables
from tidemill.lake.catalog import Lake
from tidemill.lake.commits.ledger import Reader
from tidemill.lake.schema.verification import difference
from tidemill.lake.statements import functions, statement
from tidemill.lake.tables import Table
from tidemill.lake.tables.day_tables import DAY, PARTITION, ROW

_SHIPPED_COUNTS = {"select_count", "highlight_count", "view_count"}


def make_views(lake: Lake) -> None:
    """Make the views for people in the session's current schema; see `statements`."""
    whole = [n for n, view in lake.tables.views.items() if not difference(lake, view.gold)]
    since = newest_days(lake, lake.pipeline)
    days = [one.name for one in lake.tables.days if _is_whole(lake, one)]
    for name, text in statements(lake.pipeline, since, whole, days).items():
        lake.spark.sql(f"CREATE OR REPLACE VIEW {name} AS\n{text()}")


def statements(
    pipeline: PipelineDefinition,
    since: Mapping[str, date],
    whole: Collection[str],
    days: Collection[str],
) -> dict[str, Callable[[], str]]:
    """Return, by name, what makes the text of each view for people: `tidemill_volumes`,
    `<pipeline>_refused`, for each dimension `<dimension>_current`, for each feature view
    `<view>_status`, `<view>_ticks`, of those in `whole` (their gold has all columns)
    `<view>_current`, and what a shipped view brings; and `<name>_merged` of what has one of `days`,
    the tables of recomputed days that are there with all columns. `since` are the days of the
    newest ledgers in gold, by view, where there is one. A view stands behind those that it
    reads."""
    first, name, declared = pipeline.views[0], pipeline.pipeline, tables.of(pipeline)
    texts: dict[str, Callable[[], str]] = {
        "tidemill_volumes": partial(statement, "volumes", first),
        f"{name}_refused": partial(statement, "refused", first, source=name),
    }
    for dimension in pipeline.dimensions:
        texts[f"{dimension.name}_current"] = partial(_current, dimension)
    for view in pipeline.views:
        day = since.get(view.name, date.min)
        texts[f"{view.name}_status"] = partial(statement, "status", view, since=day)
        texts[f"{view.name}_ticks"] = partial(statement, "ticks", view)
        if view.name in whole:
            texts[f"{view.name}_current"] = partial(statement, "current", view)
        if view.name == "engagement" and _SHIPPED_COUNTS <= {p.name for p in view.partials}:
            texts["engagement_minute_counts"] = partial(statement, "minute_counts", view)
        if declared.of(view).days.name in days:
            texts[f"{view.name}_merged"] = partial(statement, "merged", view)
    for stream in pipeline.streams:
        if stream.name in declared.stream_days and declared.stream_days[stream.name].name in days:
            rows = declared.streams[stream.name]
            texts[f"{stream.name}_merged"] = partial(_merged, stream, rows, pipeline.events)
    return texts


def _merged(stream: Stream, rows: Table, events: FeatureView) -> str:
    """Return a stream's rows: of a day that was recomputed those, of every other as it has them."""
    columns = ", ".join(name for name in rows.column_names if name != "batch")
    day = f"CAST({stream.row_time(events.event_time)} AS DATE)"
    known = f"SELECT {PARTITION} FROM {rows.name}_batch WHERE row_kind = '{DAY}'"
    batch = f"SELECT {columns}, 'batch' AS layer FROM {rows.name}_batch WHERE row_kind = '{ROW}'"
    live = f"SELECT {columns}, 'live' AS layer FROM {rows.name} WHERE {day} NOT IN ({known})"
    return f"{batch}\nUNION ALL\n{live}"


def _current(dimension: Dimension) -> str:
    """Return the keys of a dimension that are not deleted, each as it is now."""
    columns = ", ".join((*dimension.column_types, "changed_at"))
    holds = " AND valid_to IS NULL" if dimension.has_history else ""
    return f"SELECT {columns} FROM {dimension.name}_dimension WHERE NOT deleted{holds}"


def _is_whole(lake: Lake, table: Table) -> bool:
    return lake.has(table.name) and not difference(lake, table)


def newest_days(reader: Reader, pipeline: PipelineDefinition) -> dict[str, date]:
    """Return the day of the newest ledger in gold, by view; of a view whose newest commits have
    none, nothing."""
    gold = {name: view.gold.name for name, view in tables.of(pipeline).views.items()}
    commits = {view: reader.commits(table) for view, table in gold.items()}
    newest_commits = {
        name: next((c for c in history if c.ledger), None) for name, history in commits.items()
    }
    return {name: newest.at.date() for name, newest in newest_commits.items() if newest}


def make_functions(spark: SparkSession) -> None:
    """Make the SQL functions for people known to the session: `bloom_contains`,
    `cuckoo_contains`."""
    for text in functions():
        spark.sql(text)
