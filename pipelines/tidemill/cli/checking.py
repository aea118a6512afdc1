"""Commands that check: quality, and quarantine with what becomes of refused records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tidemill.cli.options import (
    Catalog,
    Json,
    Memory,
    PipelineName,
    Root,
    Schema,
    Verbose,
    Wait,
    example,
    opening_of,
)
from tidemill.cli.printing import print_one, showing
from tidemill.features.definition import load
from tidemill.settings import Place

commands = typer.Typer()
quarantine = typer.Typer(
    help="Refused records: list them, show one, send repaired ones through again.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
commands.add_typer(
    quarantine, name="quarantine", epilog=example("tidemill quarantine list engagement")
)
RecordId = Annotated[str, typer.Argument(help="The record's record_id.")]


@commands.command(epilog=example("tidemill quality engagement --docs ./docs-of-today"))
def quality(
    pipeline: PipelineName,
    docs: Annotated[
        Path | None, typer.Option(help="Where to write Data Docs.  [default: <root>/_quality/docs]")
    ] = None,
    root: Root = None,
    catalog: Catalog = None,
    schema: Schema = None,
    wait: Wait = "10s",
    as_json: Json = False,
    memory: Memory = "2g",
    verbose: Verbose = False,
) -> None:
    """Check events, buckets and gold against the quality file; exit 1 when a check fails."""
    definition = load(pipeline)
    opening = opening_of(Place.resolve(root, catalog, schema), wait, memory, verbose, existing=True)
    from tidemill.opening import read_lake
    from tidemill.quality.expectations import gx
    from tidemill.quality.gate import gate

    gx()
    lake = read_lake(opening, definition)
    found = gate(lake, opening.clock, docs, opening.wait)
    print_one(as_json, found, lambda: _tell(found))
    if not found["ok"]:
        raise typer.Exit(1)


def _tell(found: dict[str, Any]) -> None:
    """Print the checks that failed, and how many did not."""
    show = showing(False)
    wrong = [check for check in found["checks"] if not check["ok"]]
    for check in wrong:
        show.say(f"[red]failed[/red]  {check['table']}  {check['check']}: {check['found']}")
        show.say(f"        expected {check['expected']}")
        for one in check["examples"]:
            show.say("        " + ", ".join(f"{name} {value}" for name, value in one.items()))
    good = len(found["checks"]) - len(wrong)
    show.say(f"{found['pipeline']}: {good} checks passed, {len(wrong)} failed")
    if found["docs"]:
        show.say(f"Data Docs: {found['docs']}")
