"""Commands of the online store: publish, and serve, which starts no Spark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import tidemill
from tidemill.cli.options import (
    LakeOptions,
    PipelineName,
    Root,
    Verbose,
    example,
    on_lake,
    show_logs,
)
from tidemill.cli.output.answer import print_one, showing
from tidemill.cli.output.terminal import print_lines

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


@commands.command(epilog=example("tidemill serve --store redis://127.0.0.1:6379/0"))
def serve(
    store: Annotated[
        str | None,
        typer.Option(help="A file, or redis://HOST:PORT/0.  [default: the lake's own file]"),
    ] = None,
    root: Root = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = 8790,
    token_env: Annotated[
        str, typer.Option(help="The environment variable with the token; needed for a network.")
    ] = "TIDEMILL_TOKEN",
    username_env: Annotated[
        str | None, typer.Option(help="The variable with the user of Redis.")
    ] = None,
    password_env: Annotated[
        str | None, typer.Option(help="The variable with the password of Redis.")
    ] = None,
    ca_file: Annotated[
        str | None, typer.Option(help="Certificates that Redis is known by.")
    ] = None,
    stale_after: Annotated[str, typer.Option(help="From which age on answers are stale.")] = "10m",
    refuse_after: Annotated[str, typer.Option(help="From which age on there are none.")] = "1d",
    timeout: Annotated[str, typer.Option(help="How long an answer may take.")] = "2s",
    concurrent: Annotated[int, typer.Option(min=1, help="Requests at once.")] = 64,
    response_log: Annotated[
        Path | None,
        typer.Option(help="Keep what is answered in this file, for an audit; it holds keys."),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Answer requests for features over HTTP, from the online store, until Ctrl-C.

    Without a token only this machine is served; `docs/serving.md` has requests and answers.
    """
    if verbose:
        show_logs()
    tidemill.serve(
        store,
        root=root,
        username_env=username_env,
        password_env=password_env,
        ca_file=ca_file,
        host=host,
        port=port,
        token_env=token_env,
        limits={
            "stale_after": stale_after,
            "refuse_after": refuse_after,
            "seconds": timeout,
            "concurrent": concurrent,
        },
        response_log=response_log,
        on_listening=_listening,
    )


def _listening(url: str, views: int) -> None:
    print_lines([f"serving {views} views at {url}/v1/features; Ctrl-C ends it"])
    sys.stdout.flush()


def _line(done: dict[str, Any]) -> str:
    why = f", as {done['reason']}" if done["reason"] else ""
    if done["gold_version"] is None:
        return f"{done['view']}: nothing to publish yet"
    return (
        f"{done['view']}: {done['mode']}{why}; {done['keys']:,} keys, gold version "
        f"{done['gold_version']}, as of {done['as_of']}, in {done['seconds']} s"
    )
