"""From what the user names to a lake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tidemill.api.holding import Access, ignore
from tidemill.api.public_lake import Lake
from tidemill.config.pipeline_file import PipelineDefinition, load
from tidemill.config.settings import Clock, Place
from tidemill.errors import UsageError
from tidemill.features.windows import duration
from tidemill.pipeline import connection
from tidemill.pipeline.connection import Opening
from tidemill.query.engines import choice


def open_lake(
    root: str | Path | None = None,
    *,
    catalog: str | None = None,
    schema: str | None = None,
    pipeline: str | Path | PipelineDefinition | None = None,
    write: bool = False,
    create: bool = True,
    wait: float | str = "10s",
    clock: Clock | None = None,
    driver_memory: str | None = None,
    verbose: bool = False,
    command: str | None = None,
    engine: str = "auto",
    on_engine: Callable[[str], None] = ignore,
) -> Lake:
    """Return the lake in a folder, or in a schema of a catalog, to read; with `write=True` a with
    statement holds it for writing.

    Without a place it is the one that TIDEMILL_ROOT, or TIDEMILL_CATALOG and TIDEMILL_SCHEMA name,
    else `./lake`. `pipeline` is a shipped name, a YAML file or a definition; to write it must be
    given, to read the shipped pipelines are known. Who writes waits so long for another writer, and
    makes a lake where there is none, but with `create=False`; `command` is how the lock names it.
    `clock` stops the time. A local Spark session, which starts with the first call, has
    `driver_memory`, such as `2g`, by default what fits the machine, and shows its logs if
    `verbose`; a session that is there is taken.

    What only reads, and returns no DataFrame, is answered of a folder without Spark: with
    `engine="auto"` DuckDB is asked what it answers as Spark does, a second instead of a session's
    start, and Spark the rest, of which `on_engine` is told why; `duckdb` and `spark` ask that one
    alone.

    LakeError where the folder is no lake; SetupError where Spark is missing.
    """
    definition = load(str(pipeline)) if isinstance(pipeline, str | Path) else pipeline
    if not (definition is None or isinstance(definition, PipelineDefinition)):
        raise UsageError(f"{pipeline!r} is no pipeline", where="pipeline", expected="a name")
    place = Place.resolve(Path(root) if root is not None else None, catalog, schema)
    seconds = _seconds(wait) if isinstance(wait, str) else float(wait)
    opening = Opening(place, clock or Clock.from_environment(), seconds, driver_memory, verbose)
    if definition is not None:
        opening = connection.with_source(opening, definition)
    chosen = choice.checked(engine)
    if chosen == "duckdb" and place.folder is None:
        raise choice.not_in_a_catalog()
    access = Access(opening, definition, write, create, command, chosen, on_engine)
    if write:
        access.the_pipeline()
    if not (write and create):
        connection.check_existing(opening)
    return Lake(access)


def _seconds(wait: str) -> float:
    return 0.0 if wait in {"0", "0s"} else duration(wait).total_seconds()
