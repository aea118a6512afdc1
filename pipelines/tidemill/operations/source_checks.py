"""What a pipeline's source needs: its jars, something that answers, leave to read it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from pyspark.sql import SparkSession

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Clock, Place
from tidemill.errors import TidemillError
from tidemill.lake.session import ivy
from tidemill.lake.session.local_machine import Check
from tidemill.pipeline import connection, failures
from tidemill.pipeline.connection import Opening
from tidemill.sources.registry import kind_of

EXPECTED = "what the pipeline's source names"


@runtime_checkable
class Probed(Protocol):
    """A source that can be asked, by a session, whether it lets us read."""

    def probe(self, spark: SparkSession) -> str:
        """Read nothing, with all that reading needs; return what was asked."""
        ...


def fetch_jars(definition: PipelineDefinition) -> None:
    """Fetch the jars of the source's kind, unless they are here; SetupError where they cannot be
    had."""
    jars = kind_of(definition.source).jars
    if ivy.missing(jars):
        ivy.fetch(jars)


def checks_of_source(definition: PipelineDefinition, place: Place) -> list[Check]:
    """Return the checks of a pipeline's source, in the order in which to repair them; the first
    that fails is the last one."""
    found = []
    for check in _checks(definition, place):
        found.append(check)
        if not check.ok:
            break
    return found


def _checks(definition: PipelineDefinition, place: Place) -> Iterator[Check]:
    kind = kind_of(definition.source)
    if kind.jars:
        yield _jars(kind.name, ivy.missing(kind.jars))
    opening = connection.with_source(Opening(place, Clock.from_environment()), definition)
    try:
        source = connection.checked_source(opening, definition, once=False)
        yield Check("source", True, f"{kind.name}: it answers", EXPECTED)
        if isinstance(source, Probed):
            yield Check("topics", True, f"{_probed(source, opening)}: may be read", EXPECTED)
    except TidemillError as error:
        found = f"{error.where}: {error.message}" if error.where else error.message
        yield Check("source", False, found, EXPECTED, error.expected or "")


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
