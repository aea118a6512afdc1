"""The options that commands share, and the lake that they open."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any

import typer

import tidemill
from tidemill.cli.output.terminal import VisibleFormatter
from tidemill.config.dataflow import QUERIES
from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.sources.registry import FOLDER

PipelineName = Annotated[str, typer.Argument(help="A shipped pipeline's name, or a YAML file.")]
ViewName = Annotated[str, typer.Argument(help="A feature view's name.")]
Declaring = Annotated[
    str | None,
    typer.Option("--pipeline", help="The pipeline that declares it.  [default: a shipped one]"),
]
Root = Annotated[
    Path | None,
    typer.Option("--root", help="The lake's folder.  [default: $TIDEMILL_ROOT, else ./lake]"),
]
Catalog = Annotated[
    str | None, typer.Option("--catalog", help="The lake's catalog, with --schema.")
]
Schema = Annotated[str | None, typer.Option("--schema", help="The lake's schema, with --catalog.")]
Wait = Annotated[str, typer.Option("--wait", help="How long to wait for another writer.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Memory = Annotated[str, typer.Option("--driver-memory", help="Memory of the local Spark.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show logs, and whole errors.")]
ClockName = Annotated[
    str | None, typer.Option("--clock", help="event or wall.  [default: the pipeline's]")
]
Mode = Annotated[
    str | None,
    typer.Option("--mode", help="auto, incremental or recompute.  [default: the pipeline's]"),
]
Engine = Annotated[
    str | None, typer.Option("--engine", help="buckets or stateful.  [default: the pipeline's]")
]


def example(line: str) -> str:
    """Return the epilog that shows a command in use."""
    return f"[bold]Example:[/bold]  {line}"


def declared(
    definition: PipelineDefinition,
    source: str | None,
    folder: Path | None,
    clock: str | None,
    mode: str | None,
    trigger: str | None,
    engine: str | None = None,
) -> PipelineDefinition:
    """Return the definition with what the command line says instead."""
    said: dict[str, Any] = {}
    if source or folder:
        kind = source or (FOLDER if folder else definition.source.kind)
        if kind == definition.source.kind and not folder:
            said["source"] = definition.source
        else:
            said["source"] = {"kind": kind, **({"input": str(folder.absolute())} if folder else {})}
    if trigger:
        said["triggers"] = dict.fromkeys([query.name for query in QUERIES], trigger)
    words = {"clock": clock, "refresh": mode, "engine": engine}
    said |= {name: word for name, word in words.items() if word}
    return definition.overridden(said)


def lake_of(
    place: tuple[Path | None, str | None, str | None],
    memory: str,
    verbose: bool,
    *,
    pipeline: str | PipelineDefinition | None = None,
    writer: str | None = None,
    wait: str = "0s",
    create: bool = False,
) -> tidemill.Lake:
    """Return the lake that the options name, to read, or for the command `writer`, which writes."""
    if verbose:
        show_logs()
    root, catalog, schema = place
    return tidemill.open_lake(
        root,
        catalog=catalog,
        schema=schema,
        pipeline=pipeline,
        write=writer is not None,
        create=create,
        wait=wait,
        driver_memory=memory,
        verbose=verbose,
        command=f"tidemill {writer}" if writer else None,
    )


def show_logs() -> None:
    """Have the logs shown, control characters as escapes."""
    logging.basicConfig(level=logging.INFO)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(VisibleFormatter("%(asctime)s %(name)s: %(message)s"))
