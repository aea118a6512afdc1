"""How a pipeline's lake is opened: its tables made or checked against what is declared.

For writing, missing tables are made and those of a changed view settled as far as they hold what it
needs; for reading, nothing but views is made. What would give other values than the declaration
says is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from pyspark.sql import SparkSession

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Place
from tidemill.errors import LakeError
from tidemill.features import FeatureView
from tidemill.lake import tables
from tidemill.lake.catalog import Lake, check_root, prepare_root, register
from tidemill.lake.integrity import coverage, interrupted_rebuilds
from tidemill.lake.schema import accepted_values, evolution, log_properties
from tidemill.lake.schema.creation import (
    GENERATION,
    OWNER,
    create,
    difference,
    make_views,
    new_generation,
    newest_days,
)
from tidemill.lake.tables import FORMAT, Table


def open_for_reading(spark: SparkSession, place: Place, pipeline: PipelineDefinition) -> Lake:
    """Return the pipeline's lake as it is; LakeError when tables are missing or declared
    otherwise."""
    check_root(place)
    register(spark, place)
    missing = absent_of(spark, pipeline)
    _refuse_incomplete(spark, place, pipeline, missing)
    if missing:
        raise LakeError(
            f"has no table {missing[0]}",
            where=str(place),
            expected=f"a lake of pipeline {pipeline.pipeline!r}: run `tidemill run` first",
        )
    if not place.catalog:
        make_views(spark, pipeline, newest_days(Lake(spark, place, pipeline, "", ""), pipeline))
    lake = _opened(spark, place, pipeline, _properties(spark, pipeline))
    coverage.refuse(pipeline, coverage.late(lake))
    for view in pipeline.views:
        _refuse_difference(spark, tables.features(view))
        evolution.refuse(pipeline.pipeline, evolution.change(spark, view, pipeline))
    return lake


def open_for_writing(
    spark: SparkSession,
    place: Place,
    pipeline: PipelineDefinition,
    *,
    filled_from: datetime | None = None,
    filled: Collection[str] = (),
) -> Lake:
    """Return the pipeline's lake, its missing tables made.

    Of a view that is declared otherwise than its tables were made, the buckets are settled when
    they hold what it needs, and the next refresh writes gold with its new columns; otherwise
    LakeError says which rebuild is needed. `filled_from`: see `evolution.refuse`. A view whose
    buckets lack events is refused too (see `coverage`), but for those in `filled`, which the caller
    fills.
    """
    prepare_root(place)
    register(spark, place)
    declared = tables.of(pipeline)
    missing = absent_of(spark, pipeline)
    _refuse_incomplete(spark, place, pipeline, missing, filled)
    absent = [table for table in declared if table.name in missing]
    generation = _shared_generation(spark, pipeline, absent)
    for table in absent:
        create(spark, place, pipeline, table, generation)
    evolution.add_columns(spark, tables.batches())
    if pipeline.engine == "stateful":
        _renew_arrivals(spark, place, pipeline, generation)
    said = _properties(spark, pipeline)
    lake = _opened(spark, place, pipeline, said)
    late = coverage.late(lake)
    coverage.refuse(pipeline, {name: why for name, why in late.items() if name not in filled})
    accepted_values.settle(spark, pipeline)
    for table in lake.tables() if place.folder else []:
        log_properties.settle(
            lake, table, said.get(table.name) or evolution.properties(spark, table.name)
        )
    for view in pipeline.views:
        _settle(lake, view, filled_from)
    make_views(spark, pipeline, newest_days(lake, pipeline))
    return lake


def absent_of(spark: SparkSession, pipeline: PipelineDefinition) -> list[str]:
    """Return the names of the pipeline's tables that the session's catalog does not know."""
    names = [table.name for table in tables.of(pipeline)]
    return [name for name in names if not spark.catalog.tableExists(name)]


def as_found(spark: SparkSession, place: Place, pipeline: PipelineDefinition) -> Lake:
    """Return the lake as its events table says whose it is; nothing is checked against it."""
    said = evolution.properties(spark, tables.events(pipeline).name)
    return Lake(spark, place, pipeline, said.get(GENERATION, ""), "")


def late_views(
    spark: SparkSession, place: Place, pipeline: PipelineDefinition, absent: Collection[str]
) -> dict[str, str]:
    """Return, by view, why its bucket table, which is absent, would lack events."""
    feature = Lake(spark, place, pipeline, "", "").checkpoint("feature")
    return coverage.of_absent(pipeline, feature, absent)


def _refuse_incomplete(
    spark: SparkSession,
    place: Place,
    pipeline: PipelineDefinition,
    absent: Collection[str],
    filled: Collection[str] = (),
) -> None:
    """Refuse a lake that has lost a table, or lacks the buckets of a view, before it is touched."""
    if not absent:
        return
    lake = Lake(spark, place, pipeline, "", "")
    coverage.refuse_lost(lake, absent)
    late = late_views(spark, place, pipeline, absent)
    coverage.refuse(pipeline, {name: why for name, why in late.items() if name not in filled})


def _settle(lake: Lake, view: FeatureView, filled_from: datetime | None) -> None:
    """Bring the tables of a view to its declaration as far as they hold what it needs."""
    evolution.add_columns(lake.spark, tables.features(view))
    evolution.allow_nulls(lake.spark, tables.features(view))
    change = evolution.change(lake.spark, view, lake.pipeline)
    evolution.refuse(lake.pipeline.pipeline, change, filled_from)
    if change.kind == "since":  # the next opening, when the buckets are there
        return
    evolution.settle(lake.spark, view, change)
    interrupted_rebuilds.end_replaced_in_place(lake, view)
    again = lake.known([tables.hours(view)])
    if lake.pipeline.engine == "stateful":
        again.append(tables.features(view))
    for table in again:
        if difference(lake.spark, table):
            create(lake.spark, lake.place, lake.pipeline, table, lake.generation, replace=True)


def _renew_arrivals(
    spark: SparkSession, place: Place, pipeline: PipelineDefinition, generation: str
) -> None:
    """Make arrivals again that a rebuild with the other engine left behind."""
    for table in map(tables.arrivals, pipeline.views):
        if evolution.properties(spark, table.name).get(GENERATION) != generation:
            create(spark, place, pipeline, table, generation, replace=True)


def _shared_generation(
    spark: SparkSession, pipeline: PipelineDefinition, absent: list[Table]
) -> str:
    """Return the generation of the tables that are there, else a new one."""
    for table in tables.of(pipeline):
        if table.generational and table not in absent:
            return evolution.properties(spark, table.name).get(GENERATION, "")
    return new_generation()


def _properties(spark: SparkSession, pipeline: PipelineDefinition) -> dict[str, Mapping[str, str]]:
    """Return the properties of the pipeline's tables, by name."""
    return {table.name: evolution.properties(spark, table.name) for table in tables.of(pipeline)}


def _opened(
    spark: SparkSession,
    place: Place,
    pipeline: PipelineDefinition,
    said: Mapping[str, Mapping[str, str]],
) -> Lake:
    """Return the lake after checking each table against what is declared and against the others."""
    per_view = {f(view).name for view in pipeline.views for f in (tables.buckets, tables.features)}
    generations = {}
    for table in tables.of(pipeline):
        properties = said[table.name]
        _check_owner(place, pipeline, table, properties)
        if table.name not in per_view:
            _refuse_difference(spark, table)
        generations[table.name] = properties.get(GENERATION, "")
    land = generations[tables.bronze(pipeline).name]
    events = generations[tables.events(pipeline).name]
    others = [tables.quarantine(pipeline), *map(tables.buckets, pipeline.views)]
    if any(generations[table.name] != events for table in others):
        raise LakeError(
            "a rebuild was interrupted: its tables are of different generations",
            where=str(place),
            expected=f"run `tidemill rebuild {pipeline.pipeline} --from bronze` again",
        )
    return Lake(spark, place, pipeline, events, land)


def check_whose(spark: SparkSession, place: Place, pipeline: PipelineDefinition) -> None:
    """Raise LakeError when a table that stands under a name of the pipeline's is of another
    pipeline or format, or when bronze is not as declared."""
    for table in tables.of(pipeline):
        if spark.catalog.tableExists(table.name):
            _check_owner(place, pipeline, table, evolution.properties(spark, table.name))
    _refuse_difference(spark, tables.bronze(pipeline))


def _check_owner(
    place: Place, pipeline: PipelineDefinition, table: Table, properties: Mapping[str, str]
) -> None:
    owner = properties.get(OWNER, "")
    if owner != pipeline.pipeline and table != tables.batches():
        raise LakeError(
            f"table {table.name} belongs to pipeline {owner!r}",
            where=str(place),
            expected=f"a table of {pipeline.pipeline!r}; rename the view or take another root",
        )
    version = properties.get("tidemill.format", "none")
    if version != FORMAT:
        raise LakeError(
            f"table {table.name} has format {version}",
            where=str(place),
            expected=f"format {FORMAT}",
        )


def _refuse_difference(spark: SparkSession, table: Table) -> None:
    differences = difference(spark, table)
    if differences:
        raise LakeError(
            f"is not as the pipeline declares it: {differences}",
            where=table.name,
            expected="the definition that made the table, or `tidemill rebuild ... --from bronze`",
        )
