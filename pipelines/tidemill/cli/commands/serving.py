"""The command that answers requests for features: serve. It starts no Spark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import tidemill
from tidemill.cli.options import Verbose, example, show_logs
from tidemill.cli.output.terminal import print_lines

commands = typer.Typer()


@commands.command(epilog=example("tidemill serve --store redis://127.0.0.1:6379/0"))
def serve(
    store: Annotated[
        str | None,
        typer.Option(help="A file, or redis://HOST:PORT/0.  [default: the lake's own file]"),
    ] = None,
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
