"""Commands that watch a lake: top, alerts, report, ui. They only read, and take no lock."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tidemill.cli.options import LakeOptions, PipelineName, example, on_lake
from tidemill.cli.output.answer import print_one, showing
from tidemill.cli.output.terminal import print_lines
from tidemill.features.windows import duration
from tidemill.query.json_values import json_of

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


@commands.command(epilog=example("tidemill alerts card_fraud --all"))
@on_lake(waits=False)
def alerts(
    pipeline: PipelineName,
    all_of_them: Annotated[bool, typer.Option("--all", help="Also those that are over.")] = False,
    *,
    options: LakeOptions,
) -> None:
    """List for which keys a rule holds, since when, and what it read when it fired."""
    found = options.open(pipeline=pipeline).alerts(all_of_them=all_of_them)
    print_one(options.as_json, {"alerts": found}, lambda: _tell_alerts(found))


def _tell_alerts(found: list[dict[str, Any]]) -> None:
    """Print a line for each episode."""
    if not found:
        print_lines(["no alert"])
        return
    names = ("alert", "fired_at", "resolved_at")
    rows = [
        [*(row[name] or "" for name in names), json_of(row["key"]), json_of(row["features"])]
        for row in found
    ]
    showing(False).table([*names, "key", "features"], rows)


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


@commands.command(
    epilog=example("tidemill ui engagement orders.yaml@../orders-lake --root tidemill-demo")
)
@on_lake(waits=False)
def ui(
    pipelines: Annotated[
        list[str],
        typer.Argument(
            metavar="PIPELINE[@ROOT]",
            help="Shipped pipelines' names, or YAML files, each with its lake's folder if another.",
        ),
    ],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = 8791,
    token_env: Annotated[
        str, typer.Option(help="The environment variable with the token; needed for a network.")
    ] = "TIDEMILL_TOKEN",
    *,
    options: LakeOptions,
) -> None:
    """Show the lake in a browser: views, keys, batches, quality, refused records, files.

    Several pipelines have a first page that shows all at a glance. Reads without Spark. Two
    buttons do something, reconcile and replay. Ctrl-C ends it.
    """
    lake, *beside = map(options.open_at, pipelines)

    def listening(url: str) -> None:
        line = f"the lake is at {url}; Ctrl-C ends it"
        print_one(options.as_json, {"url": url}, lambda: print_lines([line]))
        sys.stdout.flush()

    lake.ui(beside=beside, host=host, port=port, token_env=token_env, on_listening=listening)
