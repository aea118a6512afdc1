"""The views and SQL functions for people, made beside the tables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from pyspark.sql import SparkSession

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.lake import tables
from tidemill.lake.commits.ledger import Reader
from tidemill.lake.schema.verification import difference
from tidemill.lake.statements import functions, statement

_SHIPPED_COUNTS = {"select_count", "highlight_count", "view_count"}


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
        if not difference(spark, tables.of(pipeline).of(view).gold):
            _make_view(spark, f"{view.name}_current", statement("current", view))
        if view.name == "engagement" and _SHIPPED_COUNTS <= {p.name for p in view.partials}:
            _make_view(spark, "engagement_minute_counts", statement("minute_counts", view))


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


def _make_view(spark: SparkSession, name: str, text: str) -> None:
    spark.sql(f"CREATE OR REPLACE VIEW {name} AS\n{text}")
