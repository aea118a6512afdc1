"""Commands for a start: init, schema, doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidemill.cli.options import Json, Root, declared, example
from tidemill.cli.output.answer import print_one, showing
from tidemill.cli.output.terminal import print_lines
from tidemill.cli.source_options import Said, of_source
from tidemill.config.pipeline_file import load
from tidemill.config.settings import Clock, Place
from tidemill.query.json_values import json_of

commands = typer.Typer()


@commands.command(epilog=example("tidemill init shop_signals --folder shop"))
def init(
    name: Annotated[str, typer.Argument(help="The pipeline's name, such as shop_signals.")],
    folder: Annotated[Path, typer.Option(help="Where to write.")] = Path(),
    source: Annotated[
        str, typer.Option(help="What it reads: files, kafka, kinesis, or cdc, with a dimension.")
    ] = "files",
    as_json: Json = False,
) -> None:
    """Write a first pipeline, some events and its test; overwrite nothing."""
    from tidemill.operations.scaffold import begin

    files = [str(path) for path in begin(name, folder, Clock.from_environment(), source)]
    print_one(as_json, {"pipeline": name, "files": files}, lambda: print_lines(files))


@commands.command(epilog=example("tidemill schema > tidemill.schema.json"))
def schema(
    quality: Annotated[bool, typer.Option("--quality", help="Of a quality file instead.")] = False,
    as_json: Json = False,
) -> None:
    """Print the JSON Schema of a pipeline file, for an editor that completes and checks it."""
    from tidemill.config.json_schema import pipeline_schema, quality_schema

    document = quality_schema() if quality else pipeline_schema()
    print_one(as_json, document, lambda: print(json_of(document, indent=2)))


@commands.command(epilog=example("tidemill doctor --root ./lake"))
@of_source
def doctor(
    root: Root = None,
    pipeline: Annotated[
        str | None, typer.Option(help="Check this pipeline's source too: a name, or a YAML file.")
    ] = None,
    warm: Annotated[
        bool,
        typer.Option("--warm", help="Make sessions start sooner: jars, and an archive of classes."),
    ] = False,
    as_json: Json = False,
    *,
    source: Said,
) -> None:
    """Check Java, packages, jars and folders, and print the fix for each that is wrong.

    With --pipeline or --source its source too: jars, whether it answers, whether it lets us read.
    """
    from tidemill.operations.doctor import checks, quicken
    from tidemill.operations.source_checks import checks_of_source, fetch_jars

    named = pipeline or ("engagement" if source.kind or source.words else None)
    definition = declared(load(named), source) if named else None
    if warm:
        quicken()
        if definition:
            fetch_jars(definition)
    place = Place.resolve(root)
    results = checks(place.root or Path())
    if definition and not (warm and not source.words and not pipeline):
        results += checks_of_source(definition, place)
    listed = [
        {name: getattr(c, name) for name in ("name", "ok", "found", "expected", "fix")}
        for c in results
    ]
    print_one(as_json, {"checks": listed}, lambda: showing(False).checks(listed))
    if not all(check.ok for check in results):
        raise typer.Exit(1)
