"""Commands of training sets: training-set, and audit, which shows that serving agrees."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tidemill.cli.options import LakeOptions, example, on_lake
from tidemill.cli.output.answer import print_one, showing
from tidemill.cli.output.terminal import print_lines
from tidemill.query.json_values import text_of

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


@commands.command(epilog=example("tidemill audit engagement --responses answers.jsonl"))
@on_lake(waits=False)
def audit(
    view: Annotated[str, typer.Argument(help="The feature view.")],
    store: Annotated[
        str | None,
        typer.Option(help="A file or redis://HOST:PORT/0.  [default: the pipeline's, or a file]"),
    ] = None,
    sample: Annotated[int, typer.Option(min=1, help="How many keys, drawn by a hash.")] = 1_000,
    responses: Annotated[
        Path | None, typer.Option(help="The response log of `tidemill serve`, compared too.")
    ] = None,
    pipeline: Annotated[
        str | None, typer.Option(help="Whose view it is.  [default: a shipped pipeline's]")
    ] = None,
    *,
    options: LakeOptions,
) -> None:
    """Prove that training and serving agree: store, gold, recompute, training set, and answers.

    Exit 1 when a value differs.
    """
    show = showing(options.as_json)
    lake = options.open(pipeline=pipeline)
    facts = lake.audit(view, store=store, sample=sample, responses=responses, on_step=show.say)
    print_one(options.as_json, facts, lambda: print_lines(_audit_lines(facts)))
    if facts["different"]:
        raise typer.Exit(1)


def _audit_lines(facts: dict[str, Any]) -> list[str]:
    """Return the rates that are not 0, examples, and a line that sums up."""
    lines = []
    for source in facts["sources"]:
        for each in source["features"]:
            rates = {name: each[name] for name in ("mismatch", "missing", "extra") if each[name]}
            said = ", ".join(f"{name} {rate:.2%}" for name, rate in rates.items())
            if said:
                lines.append(f"  {source['source']}  {each['feature']}: {said}")
    for one in facts["examples"]:
        key = ", ".join(map(text_of, one["key"]))
        expected, found = text_of(one["expected"]), text_of(one["found"])
        lines.append(f"  {one['source']}  {key}  {one['feature']}: {expected} expected, {found}")
    lines += [f"  not compared: {source}, {why}" for source, why in facts["skipped"].items()]
    sources = ", ".join(source["source"] for source in facts["sources"])
    lines.append(
        f"{facts['view']}: {facts['compared']:,} values of {facts['keys']:,} keys compared with "
        f"gold version {facts['gold_version']} ({sources}); {facts['different']:,} differ"
    )
    return lines
