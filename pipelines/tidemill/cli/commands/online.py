"""Commands of the online store: publish."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tidemill.cli.options import LakeOptions, PipelineName, example, on_lake
from tidemill.cli.output.answer import print_one, showing

commands = typer.Typer()


@commands.command(epilog=example("tidemill publish engagement --store redis://127.0.0.1:6379/0"))
@on_lake(waits=False)
def publish(
    pipeline: PipelineName,
    view: Annotated[str | None, typer.Option(help="One view.  [default: each]")] = None,
    store: Annotated[
        str | None,
        typer.Option(help="A file or redis://HOST:PORT/0.  [default: the pipeline's, or a file]"),
    ] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Write every row again.")] = False,
    *,
    options: LakeOptions,
) -> None:
    """Bring the online store to gold: changed keys only, from the version that it remembers.

    Reads the lake and takes no lock. With `publish:` in the pipeline's file each batch does it.
    """
    show = showing(options.as_json)
    lake = options.open(pipeline=pipeline)
    results = lake.publish(
        view, store=store, rebuild=rebuild, on_view=lambda done: show.say(_line(done))
    )
    print_one(options.as_json, {"views": results}, lambda: None)


def _line(done: dict[str, Any]) -> str:
    why = f", as {done['reason']}" if done["reason"] else ""
    if done["gold_version"] is None:
        return f"{done['view']}: nothing to publish yet"
    return (
        f"{done['view']}: {done['mode']}{why}; {done['keys']:,} keys, gold version "
        f"{done['gold_version']}, as of {done['as_of']}, in {done['seconds']} s"
    )
