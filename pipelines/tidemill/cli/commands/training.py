"""The command that makes training sets: training-set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tidemill.cli.options import LakeOptions, example, on_lake
from tidemill.cli.output.answer import print_one, showing
from tidemill.cli.output.terminal import print_lines

commands = typer.Typer()


@commands.command(
    "training-set",
    epilog=example("tidemill training-set --spine orders.csv --out set.parquet --view engagement"),
)
@on_lake(waits=False)
def training_set(
    spine: Annotated[
        Path, typer.Option("--spine", help="Rows with keys and a time: .csv, .jsonl or .parquet.")
    ],
    out: Annotated[
        Path, typer.Option("--out", help="The file to write: .csv, .jsonl or .parquet.")
    ],
    view: Annotated[
        list[str] | None,
        typer.Option(
            "--view", help="A view, or several.  [default: all of --pipeline, else engagement]"
        ),
    ] = None,
    mode: Annotated[
        str,
        typer.Option("--mode", help="event: what was true then; served: what gold answered then."),
    ] = "event",
    time: Annotated[str, typer.Option("--time", help="The spine's column of times.")] = "timestamp",
    outside: Annotated[
        str,
        typer.Option("--outside", help="Times that cannot be answered: error, or null features."),
    ] = "error",
    duplicates: Annotated[
        str, typer.Option("--duplicates", help="Rows of the same keys and time: error, or keep.")
    ] = "error",
    pipeline: Annotated[
        str | None, typer.Option(help="Whose views to know.  [default: the shipped ones]")
    ] = None,
    *,
    options: LakeOptions,
) -> None:
    """Give each row of a file the features of its keys at its time, for training a model."""
    show = showing(options.as_json)
    views = view or []
    if not views and pipeline is None:
        pipeline = "engagement"
    lake = options.open(pipeline=pipeline)
    facts = lake.write_training_set(
        spine,
        out,
        views,
        mode=mode,
        time=time,
        outside=outside,
        duplicates=duplicates,
        on_step=show.say,
    )
    print_one(options.as_json, facts, lambda: print_lines(_lines(facts)))


def _lines(facts: dict[str, Any]) -> list[str]:
    """Return what was written, in words."""
    lines = [f"wrote {facts['output']}: {facts['rows']:,} rows, {len(facts['columns'])} columns"]
    for each in facts["views"]:
        known = f"{each['first']} to {each['last']}"
        outside = f"; {each['outside']:,} rows outside, null" if each["outside"] else ""
        lines.append(f"  {each['view']}: answered from {known}{outside}")
    return lines
