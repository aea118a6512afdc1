"""What a pipeline's source and those of its dimensions need: jars, something that answers, leave to
read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, runtime_checkable

from pyspark.sql import SparkSession

from tidemill.config.dimension import Dimension
from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Clock, Place
from tidemill.errors import TidemillError
from tidemill.lake.session import ivy
from tidemill.lake.session.local_machine import Check
from tidemill.pipeline import connection, failures
from tidemill.pipeline.alerts.scoring.model_checks import check_models
from tidemill.pipeline.connection import Opening
from tidemill.pipeline.sinks import sink_checks
from tidemill.sources import Source
from tidemill.sources.kafka import KIND as KAFKA
from tidemill.sources.registry import kind_of
from tidemill.sources.source_kind import SourceKind

EXPECTED = "what the pipeline's source names"


@runtime_checkable
class Probed(Protocol):
    """A source that can be asked, by a session, whether it lets us read."""

    def probe(self, spark: SparkSession) -> str:
        """Read nothing, with all that reading needs; return what was asked."""
        ...


def fetch_jars(definition: PipelineDefinition) -> None:
    """Fetch the jars of the kinds of its sources, unless they are here; SetupError where they
    cannot be had."""
    for kind in connection.kinds_of(definition):
        if ivy.missing(kind.jars):
            ivy.fetch(kind.jars)


def checks_of_source(definition: PipelineDefinition, place: Place) -> list[Check]:
    """Return the checks of a pipeline's source and of its dimensions' sources, in the order in
    which to repair them; of each source the first that fails is the last one."""
    opening = connection.with_source(Opening(place, Clock.from_environment()), definition)
    found = list(_until_one_fails(_checks(definition, opening)))
    for dimension in definition.dimensions:
        found += _until_one_fails(_checks_of_dimension(dimension, definition, opening))
    found += _until_one_fails(_checks_of_sink(definition))
    found += _until_one_fails(_checks_of_models(definition))
    return list({check.name: check for check in found}.values())


def _until_one_fails(checks: Iterator[Check]) -> Iterator[Check]:
    for check in checks:
        yield check
        if not check.ok:
            return


def _checks(definition: PipelineDefinition, opening: Opening) -> Iterator[Check]:
    kind = kind_of(definition.source)
    return _of_source(kind, "", lambda: connection.source_of(definition, opening), opening)


def _checks_of_dimension(
    dimension: Dimension, definition: PipelineDefinition, opening: Opening
) -> Iterator[Check]:
    def opened() -> Source:
        return connection.source_of_dimension(dimension, definition, opening)

    return _of_source(kind_of(dimension.source), f" of {dimension.name}", opened, opening)


def _checks_of_sink(definition: PipelineDefinition) -> Iterator[Check]:
    if definition.topics:
        yield _jars(KAFKA.name, ivy.missing(KAFKA.jars))
    elif definition.alert_sinks is None:
        return
    try:
        sink_checks.check_sinks(definition)
        found = "kafka: it answers" if definition.topics else "its secrets are set"
        yield Check("sink", True, found, EXPECTED)
    except TidemillError as error:
        yield _failed("sink", error)


def _checks_of_models(definition: PipelineDefinition) -> Iterator[Check]:
    if not any(rule.model for rule in definition.alerts):
        return
    try:
        versions = {version.uri: version.version for _, version in check_models(definition)}
        found = ", ".join(f"{uri}, version {version}" for uri, version in versions.items())
        yield Check("models", True, found, EXPECTED)
    except TidemillError as error:
        yield _failed("models", error)


def _of_source(
    kind: SourceKind, whose: str, opened: Callable[[], Source], opening: Opening
) -> Iterator[Check]:
    if kind.jars:
        yield _jars(kind.name, ivy.missing(kind.jars))
    try:
        source = opened()
        source.check(once=False)
        yield Check(f"source{whose}", True, f"{kind.name}: it answers", EXPECTED)
        if isinstance(source, Probed):
            found = f"{_probed(source, opening)}: may be read"
            yield Check(f"topics{whose}", True, found, EXPECTED)
    except TidemillError as error:
        yield _failed(f"source{whose}", error)


def _failed(name: str, error: TidemillError) -> Check:
    found = f"{error.where}: {error.message}" if error.where else error.message
    return Check(name, False, found, EXPECTED, error.expected or "")


def _jars(kind: str, missing: list[str]) -> Check:
    found = f"{missing[0]} and {len(missing) - 1} more missing" if missing else "all are here"
    fix = f"`tidemill doctor --warm --source {kind}`" if missing else ""
    return Check(f"jars of {kind}", not missing, found, "Spark's connector and its client", fix)


def _probed(source: Probed, opening: Opening) -> str:
    """Return what was asked; our own error for one of Spark's or of py4j's."""
    try:
        return source.probe(opening.session())
    except Exception as error:  # py4j's too
        raise failures.explained(error, "the source") from error
