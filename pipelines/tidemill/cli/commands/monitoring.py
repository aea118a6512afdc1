"""Commands that watch a lake: top, report. They only read, and take no lock."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tidemill.cli.options import LakeOptions, PipelineName, example, on_lake
from tidemill.cli.output.answer import print_one, showing
from tidemill.features.windows import duration

commands = typer.Typer()


@commands.command(epilog=example("tidemill top --interval 5s"))
@on_lake(waits=False)
def top(
    interval: Annotated[str, typer.Option(help="How long a frame stands.")] = "2s",
    once: Annotated[bool, typer.Option("--once", help="Print one frame, then end.")] = False,
    *,
    options: LakeOptions,
) -> None:
    """Watch a running lake: batches, rates, seconds by step, backlog, freshness; q ends it.

    Reads the logs of a folder without Spark. Without a terminal it prints one frame.
    """
    from tidemill.cli.output import top_screen

    every = duration(interval).total_seconds()
    frames = options.open().frames()
    if once or options.as_json or not sys.stdout.isatty():
        frame = next(frames)
        print_one(options.as_json, frame, lambda: top_screen.show_once(frame))
    else:
        top_screen.show_live(lambda: next(frames), every)


@commands.command(epilog=example("tidemill report engagement --output report.html"))
@on_lake(waits=False)
def report(
    pipeline: PipelineName,
    output: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    days: Annotated[int, typer.Option(min=1, help="How many days to tell of.")] = 7,
    *,
    options: LakeOptions,
) -> None:
    """Write one self-contained page: freshness, volumes, latency, refusals, files, batches."""
    lake = options.open(pipeline=pipeline)
    numbers = lake.report(output, days)
    print_one(options.as_json, numbers, lambda: showing(False).say(f"wrote {numbers['output']}"))
