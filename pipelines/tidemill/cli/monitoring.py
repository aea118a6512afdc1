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
from tidemill.cli.output.answer import print_one, showing
from tidemill.config.pipeline_file import load
from tidemill.config.settings import Clock, Place

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
    from tidemill.cli.output import top_screen
    from tidemill.features.windows import duration
    from tidemill.monitoring import status

    every = duration(interval).total_seconds()
    place = Place.resolve(root, catalog, schema)
    watched = [status.Watched(flow) for flow in _flows(place, memory, verbose)]
    clock = Clock.from_environment()

    def frame() -> dict[str, Any]:
        return status.frame(place, watched, clock)

    if once or as_json or not sys.stdout.isatty():
        found = frame()
        print_one(as_json, found, lambda: top_screen.show_once(found))
    else:
        top_screen.show_live(frame, every)


def _flows(place: Place, memory: str, verbose: bool) -> Any:
    """Return the lake's pipelines; a catalog's through Spark."""
    from tidemill.lake.session.session import require_spark

    require_spark()
    from tidemill.lake import catalog as lake
    from tidemill.lake import discovery

    if place.folder:
        lake.check_root(place)
        return discovery.flows(discovery.Folder(place.folder), place)
    spark = opening_of(place, "0s", memory, verbose).session()
    lake.register(spark, place)
    return discovery.flows(discovery.Schema(spark), place)


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
    from tidemill.monitoring.report import measurements, page
    from tidemill.pipeline.connection import read_lake

    definition = load(pipeline)
    page.check(output)
    opening = opening_of(Place.resolve(root, catalog, schema), "0s", memory, verbose, existing=True)
    lake = read_lake(opening, definition)
    found = measurements.report(lake, opening.clock, days)
    path = page.write(found, output)
    told = {**found, "output": str(path)}
    print_one(as_json, told, lambda: showing(False).say(f"wrote {path}"))
