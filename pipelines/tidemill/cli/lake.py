"""Commands that ask a lake: reconcile, plan, sql, explain, describe. Only --repair writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemill.cli.options import (
    Catalog,
    Declaring,
    Json,
    Memory,
    PipelineName,
    Root,
    Schema,
    Verbose,
    ViewName,
    Wait,
    example,
    opening_of,
)
from tidemill.cli.output.answer import print_each, print_one, showing
from tidemill.cli.output.terminal import print_lines, print_text
from tidemill.config.pipeline_file import declaring, load
from tidemill.config.settings import Place, whole_minute
from tidemill.errors import UsageError
from tidemill.features import FeatureView
from tidemill.features.suggestions import did_you_mean

if TYPE_CHECKING:
    from tidemill.lake.catalog import Lake

commands = typer.Typer()


@commands.command(epilog=example("tidemill reconcile engagement"))
def reconcile(
    pipeline: PipelineName,
    repair: Annotated[bool, typer.Option("--repair", help="Recompute what is different.")] = False,
    source: Annotated[
        str, typer.Option("--from", help="What to compute the features from: buckets or events.")
    ] = "buckets",
    root: Root = None,
    catalog: Catalog = None,
    schema: Schema = None,
    wait: Wait = "10s",
    as_json: Json = False,
    memory: Memory = "2g",
    verbose: Verbose = False,
) -> None:
    """Compare the gold table with the recompute from the buckets; exit 1 when any key differs.

    With --from events the buckets are judged too: the features are computed from the accepted
    events that feature had read.
    """
    if source not in ("buckets", "events"):
        hint = did_you_mean(source, ("buckets", "events"))
        raise UsageError(f"cannot reconcile with {source!r}{hint}", where="--from")
    from tidemill.operations import reconcile as reconciling
    from tidemill.pipeline.connection import open_lake, read_lake

    definition = load(pipeline)
    opening = opening_of(Place.resolve(root, catalog, schema), wait, memory, verbose, existing=True)

    def compared(lake: Lake, view: FeatureView) -> dict[str, Any]:
        if source == "events":
            return reconciling.from_events(lake, view, pipeline, repair=repair)
        if repair:
            return reconciling.repaired(lake, view)
        return vars(reconciling.reconcile(lake, view))

    if repair:
        with open_lake(opening, definition, f"tidemill reconcile {pipeline}") as lake:
            results = [compared(lake, view) for view in definition.views]
    else:
        lake = read_lake(opening, definition)
        results = [compared(lake, view) for view in definition.views]
    print_each(as_json, results)
    if any(result["different"] for result in results):
        raise typer.Exit(1)


@commands.command(epilog=example("tidemill plan mine.yaml"))
def plan(
    pipeline: PipelineName,
    root: Root = None,
    catalog: Catalog = None,
    schema: Schema = None,
    as_json: Json = False,
    memory: Memory = "2g",
    verbose: Verbose = False,
) -> None:
    """Say how a changed view differs from its tables, and what that needs. Changes nothing."""
    from tidemill.lake.integrity import interrupted_rebuilds
    from tidemill.pipeline.connection import changes_as_found

    definition = load(pipeline)
    opening = opening_of(Place.resolve(root, catalog, schema), "0s", memory, verbose, existing=True)
    changes = changes_as_found(opening, definition)
    found = [
        (
            change,
            interrupted_rebuilds.of_view(opening.session(), view) if change.kind != "views" else [],
        )
        for change, view in zip(changes, definition.views, strict=True)
    ]
    if as_json:
        listed = [
            {**vars(change), "way": change.way(pipeline), "unfinished": rebuilds}
            for change, rebuilds in found
        ]
        print_each(True, listed)
        return
    for change, rebuilds in found:
        print_lines([f"{change.view}: {change.why}", f"  {change.way(pipeline)}"])
        print_lines(
            [f"  a rebuild of {each['of']} is unfinished: {each['way']}" for each in rebuilds]
        )


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
    from tidemill.lake.statements import statement

    text = statement(name, load(pipeline or view).view(view if pipeline else Path(view).stem))
    print_one(as_json, {"name": name, "view": view, "sql": text}, lambda: print_text(text))


@commands.command(epilog=example("tidemill explain engagement profile-1 title-1"))
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
    root: Root = None,
    catalog: Catalog = None,
    schema: Schema = None,
    as_json: Json = False,
    memory: Memory = "2g",
    verbose: Verbose = False,
) -> None:
    """Show why a key's features have their values: windows, buckets, events, the last refresh."""
    from tidemill.cli.output import explanations
    from tidemill.pipeline.connection import read_lake
    from tidemill.query import explain as explaining

    definition = declaring(view, pipeline)
    wanted = explaining.asked(definition.view(view), key, feature)
    moment = whole_minute(at, where="--at") if at is not None else None
    opening = opening_of(Place.resolve(root, catalog, schema), "0s", memory, verbose, existing=True)
    found = explaining.explain(read_lake(opening, definition), wanted, moment)
    print_one(as_json, found, lambda: explanations.tell_explained(showing(False), found))


@commands.command(epilog=example("tidemill describe engagement"))
def describe(
    view: ViewName,
    pipeline: Declaring = None,
    root: Root = None,
    catalog: Catalog = None,
    schema: Schema = None,
    as_json: Json = False,
    memory: Memory = "2g",
    verbose: Verbose = False,
) -> None:
    """Show a view's features and tables, how fresh gold is, and what the newest ledgers say."""
    from tidemill.cli.output import explanations
    from tidemill.pipeline.connection import read_lake
    from tidemill.query import describe as describing

    definition = declaring(view, pipeline)
    opening = opening_of(Place.resolve(root, catalog, schema), "0s", memory, verbose, existing=True)
    lake = read_lake(opening, definition)
    found = describing.describe(lake, definition.view(view), opening.clock)
    print_one(as_json, found, lambda: explanations.tell_described(showing(False), found))
