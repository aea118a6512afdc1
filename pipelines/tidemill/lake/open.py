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
from tidemill.lake.schema.creation import conform, create, new_generation
from tidemill.lake.schema.sql_views import make_views, newest_days
from tidemill.lake.schema.table_properties import GENERATION
from tidemill.lake.schema.verification import absent_of, check_owner, refuse_difference


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
        refuse_difference(spark, lake.tables.of(view).gold)
        evolution.refuse(pipeline.pipeline, evolution.change(spark, view, pipeline))
    return lake


def open_for_writing(
    spark: SparkSession,
    place: Place,
    pipeline: PipelineDefinition,
    *,
    filled_from: datetime | None = None,
    filled: Collection[str] = (),
    asked: bool = True,
) -> Lake:
    """Return the pipeline's lake, its missing tables made.

    Of a view that is declared otherwise than its tables were made, the buckets are settled when
    they hold what it needs, and the next refresh writes gold with its new columns; otherwise
    LakeError says which rebuild is needed. `filled_from`: see `evolution.refuse`. A view whose
    buckets lack events is refused too (see `coverage`), but for those in `filled`, which the caller
    fills. In a folder the views for people are made where they are going to be `asked`: they are
    this session's alone, and cost it seconds.
    """
    prepare_root(place)
    register(spark, place)
    missing = absent_of(spark, pipeline)
    _refuse_incomplete(spark, place, pipeline, missing, filled)
    generation = _shared_generation(spark, pipeline, missing)
    _make_missing(Lake(spark, place, pipeline, generation, ""), missing)
    said = _properties(spark, pipeline)
    lake = _opened(spark, place, pipeline, said)
    late = coverage.late(lake)
    coverage.refuse(pipeline, {name: why for name, why in late.items() if name not in filled})
    accepted_values.settle(spark, pipeline)
    for table in lake.existing_tables() if place.folder else []:
        if table != lake.tables.quality:  # the gate may write to it now, and makes it settled
            log_properties.settle(
                lake, table, said.get(table.name) or evolution.properties(spark, table.name)
            )
    for view in pipeline.views:
        _settle(lake, view, filled_from)
    if asked or place.catalog:
        make_views(spark, pipeline, newest_days(lake, pipeline))
    return lake


def as_found(spark: SparkSession, place: Place, pipeline: PipelineDefinition) -> Lake:
    """Return the lake as its events table says whose it is; nothing is checked against it."""
    said = evolution.properties(spark, tables.of(pipeline).events.name)
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
    declared = lake.tables.of(view)
    evolution.add_columns(lake.spark, declared.gold)
    evolution.allow_nulls(lake.spark, declared.gold)
    change = evolution.change(lake.spark, view, lake.pipeline)
    evolution.refuse(lake.pipeline.pipeline, change, filled_from)
    if change.kind == "since":  # the next opening, when the buckets are there
        return
    evolution.settle(lake.spark, declared.buckets.name, view, change)
    interrupted_rebuilds.end_replaced_in_place(lake, view)
    for table in lake.known([declared.hours]):
        conform(lake, table)
    if lake.pipeline.engine == "stateful":
        conform(lake, declared.gold)


def _make_missing(lake: Lake, missing: Collection[str]) -> None:
    """Make the missing tables, the columns that a later version declared, and arrivals again that a
    rebuild with the other engine left behind."""
    for table in lake.tables.required:
        if table.name in missing:
            create(lake, table)
    evolution.add_columns(lake.spark, lake.tables.batches)
    if lake.pipeline.engine == "stateful":
        for view in lake.pipeline.views:
            table = lake.tables.of(view).arrivals
            if evolution.properties(lake.spark, table.name).get(GENERATION) != lake.generation:
                create(lake, table, replace=True)


def _shared_generation(
    spark: SparkSession, pipeline: PipelineDefinition, absent: Collection[str]
) -> str:
    """Return the generation of the tables that are there, else a new one."""
    for table in tables.of(pipeline).required:
        if table.generational and table.name not in absent:
            return evolution.properties(spark, table.name).get(GENERATION, "")
    return new_generation()


def _properties(spark: SparkSession, pipeline: PipelineDefinition) -> dict[str, Mapping[str, str]]:
    """Return the properties of the pipeline's tables, by name."""
    names = [table.name for table in tables.of(pipeline).required]
    return {name: evolution.properties(spark, name) for name in names}


def _opened(
    spark: SparkSession,
    place: Place,
    pipeline: PipelineDefinition,
    said: Mapping[str, Mapping[str, str]],
) -> Lake:
    """Return the lake after checking each table against what is declared and against the others."""
    declared = tables.of(pipeline)
    settled = [t for view in declared.views.values() for t in (view.buckets, view.gold)]
    generations = {}
    for table in declared.required:
        properties = said[table.name]
        check_owner(place, pipeline, table, properties)
        if table not in settled:
            refuse_difference(spark, table)
        generations[table.name] = properties.get(GENERATION, "")
    land = generations[declared.bronze.name]
    events = generations[declared.events.name]
    others = [declared.quarantine, *(view.buckets for view in declared.views.values())]
    if any(generations[table.name] != events for table in others):
        raise LakeError(
            "a rebuild was interrupted: its tables are of different generations",
            where=str(place),
            expected=f"run `tidemill rebuild {pipeline.pipeline} --from bronze` again",
        )
    return Lake(spark, place, pipeline, events, land)
