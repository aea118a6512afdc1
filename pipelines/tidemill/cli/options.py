"""The options that commands share, and the lake that they open."""

from __future__ import annotations

import functools
import inspect
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

import tidemill
from tidemill.cli.output.terminal import VisibleFormatter
from tidemill.cli.source_options import Said
from tidemill.config.dataflow import QUERIES
from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.lake.visible_text import visible

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
Memory = Annotated[
    str | None,
    typer.Option(
        "--driver-memory", help="Memory of the local Spark.  [default: by the machine, 2g or more]"
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show logs, and whole errors.")]
ClockName = Annotated[
    str | None, typer.Option("--clock", help="event or wall.  [default: the pipeline's]")
]
Mode = Annotated[
    str | None,
    typer.Option("--mode", help="auto, incremental or recompute.  [default: the pipeline's]"),
]
Reading = Annotated[
    str,
    typer.Option(
        "--engine", help="auto, duckdb or spark; auto asks DuckDB where it answers as Spark."
    ),
]
Engine = Annotated[
    str | None, typer.Option("--engine", help="buckets or stateful.  [default: the pipeline's]")
]


@dataclass(frozen=True)
class LakeOptions:
    """Which lake, and how: the options that every command on a lake has."""

    root: Path | None = None
    catalog: str | None = None
    schema: str | None = None
    wait: str = "0s"
    as_json: bool = False
    memory: str | None = None
    verbose: bool = False
    engine: str = "auto"
    _asking_spark: list[str] = field(default_factory=list)

    def open(
        self,
        *,
        pipeline: str | PipelineDefinition | None = None,
        writer: str | None = None,
        create: bool = False,
    ) -> tidemill.Lake:
        """Return the lake, to read, or for the command `writer`, which writes."""
        if self.verbose:
            show_logs()
        return tidemill.open_lake(
            self.root,
            catalog=self.catalog,
            schema=self.schema,
            pipeline=pipeline,
            write=writer is not None,
            create=create,
            wait=self.wait,
            driver_memory=self.memory,
            verbose=self.verbose,
            command=f"tidemill {writer}" if writer else None,
            engine=self.engine,
            on_engine=self._say if sys.stderr.isatty() else self._asking_spark.append,
        )

    def open_at(self, said: str) -> tidemill.Lake:
        """Return the lake of a pipeline, to read: `PIPELINE`, or `PIPELINE@ROOT` in a folder of its
        own."""
        name, at, root = said.rpartition("@")
        if not at or Path(said).exists():
            return self.open(pipeline=said)
        return replace(self, root=Path(root), catalog=None, schema=None).open(pipeline=name)

    def say_why_spark(self) -> None:
        """Say on stderr, beside the answer, why it took longer. Who waits at a terminal was told at
        once; elsewhere an error stays the only line."""
        for why in self._asking_spark:
            self._say(why)

    def _say(self, why: str) -> None:
        print(visible(why), file=sys.stderr)


_OF_LAKE: Mapping[str, Any] = {
    "root": Root,
    "catalog": Catalog,
    "schema": Schema,
    "wait": Wait,
    "as_json": Json,
    "memory": Memory,
    "verbose": Verbose,
    "engine": Reading,
}
_WAIT = "10s"  # for another writer, unless a command does not write


def on_lake(
    *, waits: bool, reads: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a lake behind its own, `--wait` where it may have to,
    `--engine` where another engine than Spark may answer; it gets them as `options`, its last
    parameter."""

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        defaults = {f.name: f.default for f in fields(LakeOptions)} | {"wait": _WAIT}
        left = {name for name, kept in (("wait", waits), ("engine", reads)) if not kept}
        shared = [name for name in _OF_LAKE if name not in left]
        signature = inspect.signature(command, eval_str=True)
        own = [each for each in signature.parameters.values() if each.name != "options"]
        more = [
            Parameter(
                name,
                Parameter.POSITIONAL_OR_KEYWORD,
                default=defaults[name],
                annotation=_OF_LAKE[name],
            )
            for name in shared
        ]

        @functools.wraps(command)
        def run(*arguments: Any, **said: Any) -> None:
            chosen = LakeOptions(**{name: said.pop(name) for name in shared})
            try:
                command(*arguments, **said, options=chosen)
            except typer.Exit:
                chosen.say_why_spark()
                raise
            chosen.say_why_spark()

        run.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        return run

    return with_options


def example(line: str) -> str:
    """Return the epilog that shows a command in use."""
    return f"[bold]Example:[/bold]  {line}"


def declared(
    definition: PipelineDefinition,
    source: Said | None = None,
    *,
    clock: str | None = None,
    mode: str | None = None,
    trigger: str | None = None,
    engine: str | None = None,
) -> PipelineDefinition:
    """Return the definition with what the command line says instead."""
    said: dict[str, Any] = source.over(definition.source) if source else {}
    if trigger:
        said["triggers"] = dict.fromkeys([query.name for query in QUERIES], trigger)
    words = {"clock": clock, "refresh": mode, "engine": engine}
    said |= {name: word for name, word in words.items() if word}
    return definition.overridden(said)


def show_logs() -> None:
    """Have the logs shown, control characters as escapes."""
    logging.basicConfig(level=logging.INFO)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(VisibleFormatter("%(asctime)s %(name)s: %(message)s"))
