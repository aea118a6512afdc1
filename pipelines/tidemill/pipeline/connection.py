"""From what the user names to an open pipeline: definition, lock, session, lake, source."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache

from pyspark.sql import SparkSession

from tidemill.config.dimension import Dimension
from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Clock, Place
from tidemill.errors import LakeError, SetupError
from tidemill.features import FeatureView
from tidemill.lake import catalog as lakes
from tidemill.lake import lock, tables
from tidemill.lake.catalog import Lake
from tidemill.lake.checkpoints import Checkpoint
from tidemill.lake.integrity import interrupted_rebuilds
from tidemill.lake.open import (
    as_found,
    late_as_found,
    open_folder,
    open_for_reading,
    open_for_writing,
    refuse_other_generations,
)
from tidemill.lake.schema import evolution, sql_views
from tidemill.lake.schema.evolution import Change
from tidemill.lake.schema.verification import absent_of
from tidemill.lake.session import ivy
from tidemill.lake.session.session import makes_local, session
from tidemill.pipeline.queries import Pipeline
from tidemill.sources import Source, registry
from tidemill.sources.kafka import KIND as KAFKA
from tidemill.sources.source_kind import SourceContext, SourceKind, SourceWords


@dataclass(frozen=True)
class Opening:
    """How to open: where, by which clock, and with what session."""

    place: Place
    clock: Clock
    wait: float = 10.0
    driver_memory: str | None = None
    verbose: bool = False
    spark_conf: Mapping[str, str] = field(default_factory=dict)

    def session(self) -> SparkSession:
        """Return the session: the platform's, or a local one as it is wished here."""
        return session(
            driver_memory=self.driver_memory, verbose=self.verbose, extra=self.spark_conf
        )


@contextmanager
def writing(opening: Opening, command: str) -> Iterator[lock.WriteLock | None]:
    """Hold the lake for writing; a catalog needs no lock, its commits are safe between
    processes."""
    lakes.prepare_root(opening.place)
    root = opening.place.folder
    if root is None:
        yield None
        return
    with lock.hold(root, command, opening.wait) as held:
        yield held


@contextmanager
def writing_session(opening: Opening, command: str) -> Iterator[SparkSession]:
    """Hold the lake for writing, and yield the session that will: the lock names its JVM too."""
    with writing(opening, command) as held:
        spark = opening.session()
        if held:
            held.name_holder()
        yield spark


@contextmanager
def open_lake(opening: Opening, definition: PipelineDefinition, command: str) -> Iterator[Lake]:
    """Yield the pipeline's lake for writing, made where it is not there, and held against others;
    refuse one that a rebuild from bronze left half-way."""
    with writing_session(opening, command) as spark:
        yield held_lake(spark, opening, definition)


def held_lake(spark: SparkSession, opening: Opening, definition: PipelineDefinition) -> Lake:
    """Return the pipeline's lake as `open_lake` does; the caller holds it already."""
    lake = open_for_writing(spark, opening.place, definition)
    interrupted_rebuilds.refuse_from_bronze(lake)
    return lake


def held_pipeline(
    spark: SparkSession, opening: Opening, definition: PipelineDefinition, source: Source
) -> Pipeline:
    """Return the pipeline with its tables, made where they are not there; the caller holds the
    lake, and has checked the source."""
    feeds = {
        one.name: source_of_dimension(one, definition, opening) for one in definition.dimensions
    }
    lake = open_for_writing(spark, opening.place, definition, asked=False)
    return Pipeline(lake, source, opening.clock, definition.clock, feeds=feeds)


def check_existing(opening: Opening) -> None:
    """Refuse a folder that is no lake, before anything is started."""
    lakes.check_root(opening.place)


def registered(opening: Opening) -> SparkSession:
    """Return the session with every table of the lake known by its plain name."""
    lakes.check_root(opening.place)
    spark = opening.session()
    lakes.register(spark, opening.place)
    return spark


def read_lake(opening: Opening, definition: PipelineDefinition) -> Lake:
    """Return the pipeline's lake for reading: no lock, nothing made; of a folder no session either,
    until Spark is asked for rows."""
    if opening.place.folder is not None:
        return open_folder(opening.session, opening.place, definition)
    return open_for_reading(opening.session(), opening.place, definition)


def unchecked_lake(opening: Opening, definition: PipelineDefinition) -> Lake:
    """Return the pipeline's lake, not checked against what is declared; its session starts where
    Spark is asked."""
    lakes.check_root(opening.place)

    @cache
    def registered() -> SparkSession:
        spark = opening.session()
        lakes.register(spark, opening.place)
        return spark

    return Lake(registered, opening.place, definition)


def changes_as_found(opening: Opening, definition: PipelineDefinition) -> list[Change]:
    """Return how each view differs from its tables as they are; nothing is made or settled.
    LakeError where that is no matter of a view: a table is missing, or of another generation."""
    lake = unchecked_lake(opening, definition)
    absent = absent_of(lake)
    behind = late_as_found(lake, absent)
    if not absent:
        refuse_other_generations(as_found(lake), behind)
    standing = [view for view in definition.views if view.name not in behind]
    for view in standing:
        for table in (lake.tables.of(view).buckets, lake.tables.of(view).gold):
            if table.name in absent:
                raise LakeError(
                    f"has no table {table.name}",
                    where=str(opening.place),
                    expected=f"a lake of pipeline {definition.pipeline!r}: run it first",
                )
    changes = {change.view: change for change in evolution.changes(lake, standing)}
    return [
        changes.get(view.name) or _late(lake, view, absent, behind[view.name])
        for view in definition.views
    ]


def _late(lake: Lake, view: FeatureView, absent: Collection[str], why: str) -> Change:
    """Return what a view needs that lacks events: all of its buckets, or all from bronze."""
    late = Change(view.name, "views", f"its buckets lack events: {why}")
    if {lake.tables.of(view).buckets.name, lake.tables.of(view).gold.name} & {*absent}:
        return late
    change = evolution.change(lake, view)
    return change if change.kind == "bronze" else late


def open_for_questions(opening: Opening, definitions: Iterable[PipelineDefinition]) -> SparkSession:
    """Return the session with the lake's tables, and the views of the pipelines that it holds."""
    lakes.check_root(opening.place)
    spark = opening.session()
    lakes.register(spark, opening.place)
    sql_views.make_functions(spark)
    for definition in definitions:
        required = tables.of(definition).required
        has_tables = all(spark.catalog.tableExists(table.name) for table in required)
        if has_tables and not opening.place.catalog:
            sql_views.make_views(Lake(lambda: spark, opening.place, definition))
    return spark


def with_source(opening: Opening, definition: PipelineDefinition) -> Opening:
    """Return an opening whose session, where one is made here, has on its class path those jars of
    its sources' kinds that are on this machine."""
    paths = [path for kind in kinds_of(definition) for path in ivy.class_path(kind.jars)]
    here = ":".join(str(path) for path in paths if path.is_file())
    if not here:
        return opening
    conf = {**opening.spark_conf, "spark.driver.extraClassPath": here}
    return replace(opening, spark_conf=conf)


def _check_jars(definition: PipelineDefinition) -> None:
    """Refuse a source whose jars a session that is made here would lack."""
    for kind in kinds_of(definition):
        missing = ivy.missing(kind.jars)
        if missing and makes_local():
            raise SetupError(
                f"the jars of {kind.name} sources are not here: {missing[0]} ...",
                where="jars",
                expected=f"`tidemill doctor --warm --source {kind.name}`, which fetches them, once",
            )


def kinds_of(definition: PipelineDefinition) -> list[SourceKind]:
    """Return the kinds of a pipeline's sources, its dimensions' and its sink's too, each once."""
    sources = [definition.source, *(dimension.source for dimension in definition.dimensions)]
    kinds = [*map(registry.kind_of, sources), *([KAFKA] if definition.topics else [])]
    return list({kind.name: kind for kind in kinds}.values())


def checked_source(opening: Opening, definition: PipelineDefinition, *, once: bool) -> Source:
    """Return the source that the definition names; InputError where it, or that of a dimension,
    cannot be read, SetupError where its jars are missing. A dimension's may have nothing yet."""
    _check_jars(definition)
    source = source_of(definition, opening)
    source.check(once=once)
    for dimension in definition.dimensions:
        source_of_dimension(dimension, definition, opening).check(once=False)
    if any(rule.model for rule in definition.alerts):
        from tidemill.pipeline.alerts.scoring import model_checks

        model_checks.check_models(definition)
    if definition.topics or definition.alert_sinks:
        # Not at the top: what sends is not needed by a command that only reads.
        from tidemill.pipeline.sinks import sink_checks

        sink_checks.check_sinks(definition)
    return source


def source_of(definition: PipelineDefinition, opening: Opening) -> Source:
    """Return the source that the definition names; it is given what the land checkpoint says of the
    one before."""
    view = definition.events
    required = {n: t for n, t in view.event_schema.items() if not t.endswith("?")}
    required[view.event_time] = "timestamp"
    return _opened(definition.source, required, "land", definition, opening)


def source_of_dimension(
    dimension: Dimension, definition: PipelineDefinition, opening: Opening
) -> Source:
    """Return the source of a dimension's changes."""
    return _opened(dimension.source, {}, f"land_{dimension.name}", definition, opening)


def _opened(
    words: SourceWords,
    required: Mapping[str, str],
    query: str,
    definition: PipelineDefinition,
    opening: Opening,
) -> Source:
    root = lakes.checkpoint_root(opening.place) / f"{definition.pipeline}_{query}"
    context = SourceContext(
        definition.pipeline,
        required,
        max_files=definition.max_files_per_trigger,
        max_records=definition.max_offsets_per_trigger,
        now=opening.clock.at,
        known=Checkpoint(query, root, "").identity(),
    )
    return registry.kind_of(words).open(words, context)
