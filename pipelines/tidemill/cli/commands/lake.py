"""Commands that ask a lake: reconcile, plan, sql, explain, describe. Only --repair writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

import tidemill
from tidemill.cli.options import (
    Declaring,
    Json,
    LakeOptions,
    PipelineName,
    ViewName,
    example,
    on_lake,
)
from tidemill.cli.output.answer import print_each, print_one, showing
from tidemill.cli.output.terminal import print_lines, print_text
from tidemill.config.pipeline_file import declaring, load
from tidemill.config.settings import whole_minute

commands = typer.Typer()


@commands.command(epilog=example("tidemill reconcile engagement"))
@on_lake(waits=True, reads=True)
def reconcile(
    pipeline: PipelineName,
    repair: Annotated[bool, typer.Option("--repair", help="Recompute what is different.")] = False,
    source: Annotated[
        str, typer.Option("--from", help="What to compute the features from: buckets or events.")
    ] = "buckets",
    *,
    options: LakeOptions,
) -> None:
    """Compare the gold table with the recompute from the buckets; exit 1 when any key differs.

    With --from events the buckets are judged too: the features are computed from the accepted
    events that feature had read.
    """
    writer = f"reconcile {pipeline}" if repair else None
    with options.open(pipeline=pipeline, writer=writer) as lake:
        views = [view.name for view in lake.pipeline.views]
        results = [lake.reconcile(view, source=source, repair=repair) for view in views]
    print_each(options.as_json, results)
    if any(result["different"] for result in results):
        raise typer.Exit(1)


@commands.command(epilog=example("tidemill plan mine.yaml --rate 1000"))
@on_lake(waits=False)
def plan(
    pipeline: PipelineName,
    rate: Annotated[
        float | None,
        typer.Option(help="Events a second, by which a stream's state grows.  [default: measured]"),
    ] = None,
    *,
    options: LakeOptions,
) -> None:
    """Say how a changed view differs from its tables, and what that needs; of a stream how many
    rows its state will hold. Changes nothing."""
    lake = options.open(pipeline=pipeline)
    changes, states = lake.plan(), lake.expected_state(rate) if lake.pipeline.streams else []
    if options.as_json:
        print_each(True, [*changes, *states])
        return
    for change in changes:
        print_lines([f"{change['view']}: {change['why']}", f"  {change['way']}"])
        print_lines(
            [
                f"  a rebuild of {each['of']} is unfinished: {each['way']}"
                for each in change["unfinished"]
            ]
        )
    print_lines([line for state in states for line in _expected(state)])


def _expected(state: dict[str, Any]) -> Iterator[str]:
    """Yield what the state of a stream will hold, as lines."""
    if state["rate"] is None:
        yield f"{state['stream']}: --rate EVENTS_PER_SECOND says how much state that makes"
        return
    rate = f"{state['rate']:,g} events a second{', as measured' if state['measured'] else ''}"
    yield f"{state['stream']}: {state['state_rows']:,} rows of state at {rate} for each input"
    for name, each in state["inputs"].items():
        yield f"  {name}: kept for {each['kept_seconds']:,} s, {each['rows']:,} rows"
    limit = state["max_state_rows"]
    if limit and state["state_rows"] > limit:
        yield f"  more than max_state_rows: {limit:,}, where the pipeline stops"


@commands.command(epilog=example("tidemill sql features --view engagement"))
def sql(
    name: Annotated[str, typer.Argument(help="A statement's name, such as features or changes.")],
    view: Annotated[str, typer.Option(help="The feature view to finish it for.")] = "engagement",
    pipeline: Annotated[
        str | None, typer.Option(help="The pipeline that declares the view.  [default: VIEW]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print a finished statement for a SQL editor; values stay named parameters."""
    text = tidemill.statement(
        name, load(pipeline or view).view(view if pipeline else Path(view).stem)
    )
    print_one(as_json, {"name": name, "view": view, "sql": text}, lambda: print_text(text))


@commands.command(epilog=example("tidemill explain engagement profile-1 title-1"))
@on_lake(waits=False, reads=True)
def explain(
    view: ViewName,
    key: Annotated[list[str], typer.Argument(help="The key's values, in the view's order.")],
    feature: Annotated[
        str | None, typer.Option(help="One feature, such as view_count_1h.  [default: all]")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(help="Another time, a whole minute, UTC: recomputed, nothing is written."),
    ] = None,
    pipeline: Declaring = None,
    *,
    options: LakeOptions,
) -> None:
    """Show why a key's features have their values: windows, buckets, events, the last refresh."""
    from tidemill.cli.output import explanations

    moment = whole_minute(at, where="--at") if at is not None else None
    lake = options.open(pipeline=pipeline)
    facts = lake.explain(view, key, feature=feature, at=moment)
    print_one(options.as_json, facts, lambda: explanations.tell_explained(showing(False), facts))


@commands.command(epilog=example("tidemill describe engagement"))
@on_lake(waits=False)
def describe(
    view: ViewName,
    pipeline: Declaring = None,
    *,
    options: LakeOptions,
) -> None:
    """Show a view's features and tables, how fresh gold is, and what the newest ledgers say."""
    from tidemill.cli.output import explanations

    declaring(view, pipeline)  # an unknown view is refused before a lake is looked for
    facts = options.open(pipeline=pipeline).describe(view)
    print_one(options.as_json, facts, lambda: explanations.tell_described(showing(False), facts))
