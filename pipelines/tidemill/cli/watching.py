"""Commands that watch a lake: top, report. They only read, and take no lock."""

from __future__ import annotations

import sys
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
    example,
    opening_of,
)
from tidemill.cli.printing import print_one, showing
from tidemill.features.definition import load
from tidemill.settings import Clock, Place

commands = typer.Typer()


@commands.command(epilog=example("tidemill top --interval 5s"))
def top(
    interval: Annotated[str, typer.Option(help="How long a frame stands.")] = "2s",
    once: Annotated[bool, typer.Option("--once", help="Print one frame, then end.")] = False,
    root: Root = None,
    catalog: Catalog = None,
    schema: Schema = None,
    as_json: Json = False,
    memory: Memory = "2g",
    verbose: Verbose = False,
) -> None:
    """Watch a running lake: batches, rates, seconds by step, backlog, freshness; q ends it.

    Reads the logs of a folder without Spark. Without a terminal it prints one frame.
    """
    from tidemill import screen, watching
    from tidemill.features.windows import duration

    every = duration(interval).total_seconds()
    place = Place.resolve(root, catalog, schema)
    watched = [watching.Watched(flow) for flow in _flows(place, memory, verbose)]
    clock = Clock.from_environment()

    def frame() -> dict[str, Any]:
        return watching.frame(place, watched, clock)

    if once or as_json or not sys.stdout.isatty():
        found = frame()
        print_one(as_json, found, lambda: screen.show_once(found))
    else:
        screen.show_live(frame, every)


def _flows(place: Place, memory: str, verbose: bool) -> Any:
    """Yield the lake's pipelines; a catalog's through Spark."""
    from tidemill.session import require_spark

    require_spark()
    from tidemill import finding, lake

    if place.folder:
        lake.check_root(place)
        return finding.flows(finding.Folder(place.folder), place)
    spark = opening_of(place, "0s", memory, verbose).session()
    lake.register(spark, place)
    return finding.flows(finding.Schema(spark), place)


@commands.command(epilog=example("tidemill report engagement --output report.html"))
def report(
    pipeline: PipelineName,
    output: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    days: Annotated[int, typer.Option(min=1, help="How many days to tell of.")] = 7,
    root: Root = None,
    catalog: Catalog = None,
    schema: Schema = None,
    as_json: Json = False,
    memory: Memory = "2g",
    verbose: Verbose = False,
) -> None:
    """Write one self-contained page: freshness, volumes, latency, refusals, files, batches."""
    from tidemill import page, reporting
    from tidemill.opening import read_lake

    definition = load(pipeline)
    page.check(output)
    opening = opening_of(Place.resolve(root, catalog, schema), "0s", memory, verbose, existing=True)
    lake = read_lake(opening, definition)
    found = reporting.report(lake, opening.clock, days)
    path = page.write(found, output)
    told = {**found, "output": str(path)}
    print_one(as_json, told, lambda: showing(False).say(f"wrote {path}"))
