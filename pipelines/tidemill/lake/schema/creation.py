"""Making a lake's tables, views and SQL functions as they are declared, and telling how a table
that is there differs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import date

from pyspark.sql import SparkSession

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Place
from tidemill.lake import tables
from tidemill.lake.commits.ledger import Reader
from tidemill.lake.schema import ddl, log_properties
from tidemill.lake.session.session import on_databricks
from tidemill.lake.statements import functions, statement
from tidemill.lake.tables import FORMAT, Table

GENERATION = "tidemill.generation"
OWNER = "tidemill.pipeline"
_SHIPPED_COUNTS = {"select_count", "highlight_count", "view_count"}


def new_generation() -> str:
    """Return a name for a new set of tables and checkpoints."""
    return uuid.uuid4().hex


def create(
    spark: SparkSession,
    place: Place,
    pipeline: PipelineDefinition,
    table: Table,
    generation: str,
    *,
    replace: bool = False,
) -> None:
    """Make the table as declared; with `replace`, empty and in one commit, its history kept."""
    root = place.folder
    folder = root and root / table.name
    properties = {
        "tidemill.format": FORMAT,
        GENERATION: generation if table.generational else new_generation(),
        OWNER: pipeline.pipeline,
        **log_properties.declared(place, pipeline),
    }
    keyed = bool(place.catalog) and on_databricks()
    spark.sql(ddl.create(table, properties, folder=folder, replace=replace, keyed=keyed))


def make_views(
    spark: SparkSession, pipeline: PipelineDefinition, since: Mapping[str, date]
) -> None:
    """Make the views for people: `tidemill_volumes`, `<pipeline>_refused`, for each feature view
    `<view>_current`, `<view>_status` and `<view>_ticks`, and what a shipped view brings.

    `since` are the days of the newest ledgers in gold, by view, where there is one.
    """
    first, name = pipeline.views[0], pipeline.pipeline
    _make_view(spark, "tidemill_volumes", statement("volumes", first))
    _make_view(spark, f"{name}_refused", statement("refused", first, source=name))
    for view in pipeline.views:
        _make_view(
            spark,
            f"{view.name}_status",
            statement("status", view, since=since.get(view.name, date.min)),
        )
        _make_view(spark, f"{view.name}_ticks", statement("ticks", view))
        if not difference(spark, tables.features(view)):
            _make_view(spark, f"{view.name}_current", statement("current", view))
        if view.name == "engagement" and _SHIPPED_COUNTS <= {p.name for p in view.partials}:
            _make_view(spark, "engagement_minute_counts", statement("minute_counts", view))


def newest_days(reader: Reader, pipeline: PipelineDefinition) -> dict[str, date]:
    """Return the day of the newest ledger in gold, by view; of a view whose newest commits have
    none, nothing."""
    commits = {v.name: reader.commits(tables.features(v).name) for v in pipeline.views}
    newest_commits = {
        name: next((c for c in history if c.ledger), None) for name, history in commits.items()
    }
    return {name: newest.at.date() for name, newest in newest_commits.items() if newest}


def make_functions(spark: SparkSession) -> None:
    """Make the SQL functions for people known to the session: `bloom_contains`,
    `cuckoo_contains`."""
    for text in functions():
        spark.sql(text)


def _make_view(spark: SparkSession, name: str, text: str) -> None:
    spark.sql(f"CREATE OR REPLACE VIEW {name} AS\n{text}")


def difference(spark: SparkSession, table: Table) -> str:
    """Return how the table's columns differ from the declaration, in words; empty when they do
    not."""
    types = {f.name: f.dataType.simpleString().lower() for f in spark.table(table.name).schema}
    wanted = {column.name: column.type.lower().replace(" ", "") for column in table.columns}
    added = {column.name for column in table.columns if column.added}
    parts = [f"no column {name}" for name in wanted if name not in types and name not in added]
    parts += [f"column {name} is not declared" for name in types if name not in wanted]
    parts += [
        f"column {name} is {types[name]}, declared {type_}"
        for name, type_ in wanted.items()
        if name in types and types[name] != type_
    ]
    return ", ".join(parts)
