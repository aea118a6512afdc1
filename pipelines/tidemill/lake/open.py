"""How a pipeline's lake is opened: its tables made or checked against what is declared.

For writing, missing tables are made and those of a changed view settled as far as they hold what it
needs; for reading, nothing but views is made. What would give other values than the declaration
says is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache

from pyspark.sql import SparkSession

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Place
from tidemill.errors import LakeError
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake, check_root, prepare_root, register
from tidemill.lake.integrity import coverage, interrupted_rebuilds, interrupted_swaps
from tidemill.lake.schema import (
    accepted_values,
    enrichment,
    evolution,
    landed_history,
    log_properties,
)
from tidemill.lake.schema.creation import conform, create, new_generation
from tidemill.lake.schema.evolution import Change
from tidemill.lake.schema.sql_views import make_views
from tidemill.lake.schema.table_properties import GENERATION
from tidemill.lake.schema.verification import MADE_IT, absent_of, check_owner, refuse_difference


def open_for_reading(spark: SparkSession, place: Place, pipeline: PipelineDefinition) -> Lake:
    """Return the pipeline's lake as it is, known to the session by name, views included; LakeError
    when tables are missing or declared otherwise."""
    check_root(place)
    interrupted_swaps.refuse(place, pipeline)
    register(spark, place)
    lake = _as_declared(Lake(lambda: spark, place, pipeline))
    if not place.catalog:
        make_views(lake)
    return lake


def open_folder(
    session: Callable[[], SparkSession], place: Place, pipeline: PipelineDefinition
) -> Lake:
    """Return what `open_for_reading` does, of a folder, whose logs tell whether it is as declared:
    the session starts where rows are asked of Spark."""
    check_root(place)
    interrupted_swaps.refuse(place, pipeline)

    @cache
    def registered() -> SparkSession:
        spark = session()
        register(spark, place)
        make_views(Lake(lambda: spark, place, pipeline))
        return spark

    return _as_declared(Lake(registered, place, pipeline))


def _as_declared(lake: Lake) -> Lake:
    """Return the lake, of which nothing is known yet, after every check that reading needs."""
    missing = absent_of(lake)
    _refuse_incomplete(lake, missing)
    if missing:
        raise LakeError(
            f"has no table {missing[0]}",
            where=str(lake.place),
            expected=f"a lake of pipeline {lake.pipeline.pipeline!r}: run `tidemill run` first",
        )
    lake, late = _opened(lake, _properties(lake))
    coverage.refuse(lake.pipeline, late)
    name, views = lake.pipeline.command_name, lake.pipeline.views
    for view, change in zip(views, evolution.changes(lake, views), strict=True):
        evolution.refuse(name, change)
        way = change.way(name) if change.kind == "gold" else MADE_IT
        refuse_difference(lake, lake.tables.of(view).gold, way)
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
    fills (see `settle_filled`), or leaves alone. In a folder the views for people are made where
    they are going to be `asked`: they are this session's alone, and cost it seconds.
    """
    prepare_root(place)
    interrupted_swaps.refuse(place, pipeline)
    register(spark, place)
    lake = Lake(lambda: spark, place, pipeline)
    missing = absent_of(lake)
    _refuse_incomplete(lake, missing, filled)
    enrichment.settle(lake, missing)
    _make_missing(replace(lake, generation=_shared_generation(lake, missing)), missing)
    said = _properties(lake)
    lake, late = _opened(lake, said)
    coverage.refuse(pipeline, {name: why for name, why in late.items() if name not in filled})
    accepted_values.settle(lake)
    lake = landed_history.settle(lake, said[lake.tables.bronze.name])
    for table in lake.existing_tables() if place.folder else []:
        if table != lake.tables.quality:  # the gate may write to it now, and makes it settled
            log_properties.settle(
                lake, table, said.get(table.name) or lake.metadata(table.name).properties
            )
    whole = [view for view in pipeline.views if view.name not in late]
    changes = evolution.changes(lake, whole)
    for change in changes:
        evolution.refuse(pipeline.command_name, change, filled_from)
    for view, change in zip(whole, changes, strict=True):
        _settle(lake, view, change)
    if asked or place.catalog:
        make_views(lake)
    return lake


def as_found(lake: Lake) -> Lake:
    """Return the lake of the generation that its events table says; nothing is checked against
    it."""
    said = lake.metadata(lake.tables.events.name).properties
    return replace(lake, generation=said.get(GENERATION, ""))


def late_as_found(lake: Lake, absent: Collection[str]) -> dict[str, str]:
    """Return, by view, why its buckets lack events, of a lake that nothing was checked of; its
    bucket table may be among those that are absent."""
    late = _late_absent(lake, absent)
    if lake.tables.events.name in absent:
        return late
    there = [v for v in lake.pipeline.views if lake.tables.of(v).buckets.name not in absent]
    return late | coverage.late(as_found(lake), there)


def _late_absent(lake: Lake, absent: Collection[str]) -> dict[str, str]:
    return coverage.of_absent(lake.pipeline, lake.checkpoint("feature"), absent)


def settle_filled(lake: Lake, view: FeatureView) -> None:
    """Bring the tables of a view to its declaration, whatever its buckets hold of it: all of them
    are about to be made, and until then it counts as one that lacks events. LakeError where only a
    rebuild from bronze helps."""
    buckets, change = lake.tables.of(view).buckets, evolution.change(lake, view)
    if change.kind == "bronze":
        evolution.refuse(lake.pipeline.command_name, change)
    if view.name not in coverage.late(lake, [view]):
        coverage.uncover(lake, view)
    if lake.metadata(buckets.name).properties.get(GENERATION, "") != lake.generation:
        create(lake, buckets, replace=True)
        change = evolution.change(lake, view)
    names = lake.metadata(buckets.name).types
    missing = [column for column in buckets.columns if column.name not in names]
    evolution.append_columns(lake.spark, buckets.name, missing)
    evolution.settle(lake, view, change)
    interrupted_rebuilds.forget_features(lake, view)
    _settle(lake, view, evolution.change(lake, view))


def _refuse_incomplete(lake: Lake, absent: Collection[str], filled: Collection[str] = ()) -> None:
    """Refuse a lake that has lost a table, or lacks the buckets of a view, before it is touched."""
    if not absent:
        return
    coverage.refuse_lost(lake, absent)
    late = _late_absent(lake, absent)
    coverage.refuse(lake.pipeline, {name: why for name, why in late.items() if name not in filled})


def _settle(lake: Lake, view: FeatureView, change: Change) -> None:
    """Bring the tables of a view to its declaration, from which they differ by a change that was
    not refused."""
    declared = lake.tables.of(view)
    evolution.add_columns(lake, declared.gold)
    evolution.allow_nulls(lake, declared.gold)
    if change.kind in ("since", "views"):  # the next opening, when the buckets are there
        evolution.let_go(lake, view, change)
        return
    evolution.settle(lake, view, change)
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
    for table in lake.tables.growing:
        evolution.add_columns(lake, table)
    if lake.pipeline.engine == "stateful":
        for view in lake.pipeline.views:
            table = lake.tables.of(view).arrivals
            if lake.metadata(table.name).properties.get(GENERATION) != lake.generation:
                create(lake, table, replace=True)


def _shared_generation(lake: Lake, absent: Collection[str]) -> str:
    """Return the generation of the tables that are there, else a new one."""
    for table in lake.tables.required:
        if table.generational and table.name not in absent:
            return lake.metadata(table.name).properties.get(GENERATION, "")
    return new_generation()


def _properties(lake: Lake) -> dict[str, Mapping[str, str]]:
    """Return the properties of the pipeline's tables, by name."""
    return {table.name: lake.metadata(table.name).properties for table in lake.tables.required}


def _opened(lake: Lake, said: Mapping[str, Mapping[str, str]]) -> tuple[Lake, Mapping[str, str]]:
    """Return the lake after checking each table against what is declared and against the others;
    and, by view, why its buckets lack events."""
    declared = lake.tables
    settled = [t for view in declared.views.values() for t in (view.buckets, view.gold)]
    for table in declared.required:
        check_owner(lake.place, lake.pipeline, table, said[table.name])
        if table not in settled:
            refuse_difference(lake, table)
    lake = replace(
        lake,
        generation=said[declared.events.name].get(GENERATION, ""),
        longer=landed_history.longer(lake, said[declared.bronze.name]),
    )
    late = coverage.late(lake)
    refuse_other_generations(lake, late)
    return lake, late


def refuse_other_generations(lake: Lake, late: Collection[str]) -> None:
    """Raise LakeError when tables are of another generation than the lake's, but for those of the
    views that are `late`; all tables exist."""
    declared = lake.tables
    buckets = {name: view.buckets for name, view in declared.views.items()}
    always = [declared.quarantine, *buckets.values()]
    besides = [t for one in declared.dimensions.values() for t in (one.quarantine, one.rows)]
    others = [
        table
        for table in (*always, *besides, *declared.streams.values())
        if table not in [buckets[name] for name in late]
        and lake.metadata(table.name).properties.get(GENERATION, "") != lake.generation
    ]
    if not others:
        return
    what = "a rebuild was interrupted: its tables are of different generations"
    if lake.checkpoint("feature").finished() >= 0 and not any(table in always for table in others):
        what = f"a rebuild from bronze left out {', '.join(table.name for table in others)}"
    raise LakeError(
        what,
        where=str(lake.place),
        expected=f"run `tidemill rebuild {lake.pipeline.command_name} --from bronze` again",
    )
