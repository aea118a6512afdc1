"""Commands for a deployment on Databricks: bundle check, dbx export. Neither talks to a
workspace."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tidemill.cli.options import Json, Memory, Verbose, example, show_logs
from tidemill.cli.output.answer import print_one
from tidemill.cli.output.terminal import print_lines

commands = typer.Typer()
bundle = typer.Typer(
    name="bundle",
    help="Check the Databricks bundle, without a workspace.",
    epilog=example("tidemill bundle check"),
    no_args_is_help=True,
    rich_markup_mode="rich",
)
dbx = typer.Typer(
    name="dbx",
    help="Files for dbx, the tool before bundles.",
    epilog=example("tidemill dbx export"),
    no_args_is_help=True,
    rich_markup_mode="rich",
)
commands.add_typer(bundle)
commands.add_typer(dbx)
Folder = Annotated[Path, typer.Option("--folder", help="The folder of databricks.yml.")]


@bundle.command(epilog=example("tidemill bundle check --no-sql"))
def check(
    context: typer.Context,
    folder: Folder = Path(),
    no_sql: Annotated[
        bool, typer.Option("--no-sql", help="Leave dashboards and alerts out; needs no Spark.")
    ] = False,
    as_json: Json = False,
    memory: Memory = None,
    verbose: Verbose = False,
) -> None:
    """Find what a deployment would stumble over, each with file and line; exit 1 when there is
    any."""
    from tidemill.databricks import bundle as bundles

    read = bundles.read(folder)
    findings = bundles.check(read, partial(refused, context.find_root().command))
    if not no_sql:
        findings += _sql(read, memory, verbose)
    facts = {
        "files": len(read.documents),
        "targets": list(read.targets),
        "findings": [vars(finding) for finding in findings],
    }
    lines = [str(finding) for finding in findings] or [f"{facts['files']} files are as they should"]
    print_one(as_json, facts, lambda: print_lines(lines))
    if findings:
        raise typer.Exit(1)


@dbx.command(epilog=example("tidemill dbx export"))
def export(
    folder: Folder = Path(),
    only_check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 1 when a file is not up to date.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write conf/deployment.yml and .dbx/project.json as the bundle has it."""
    from tidemill.databricks import bundle as bundles
    from tidemill.databricks import dbx as legacy

    read = bundles.read(folder)
    changed = legacy.stale(read) if only_check else legacy.written(read)
    facts = {"files": [legacy.DEPLOYMENT, legacy.PROJECT], "changed": changed}
    word = "not up to date" if only_check else "written"
    lines = [f"{file} {word}" for file in changed] or ["nothing has changed"]
    print_one(as_json, facts, lambda: print_lines(lines))
    if only_check and changed:
        raise typer.Exit(1)


def refused(command: Any, words: Sequence[str]) -> str | None:
    """Return why a command line refuses these words, None when it takes them."""
    arguments = list(words)
    try:
        while hasattr(command, "commands"):
            name = arguments.pop(0) if arguments else ""
            if name not in command.commands:
                return f"No such command {name!r}."
            command = command.commands[name]
        command.make_context(name, arguments)
    except Exception as error:
        if hasattr(error, "format_message"):  # Typer's own: an unknown option, a missing argument
            return str(error.format_message())
        raise
    return None


def _sql(read: Any, memory: str | None, verbose: bool) -> list[Any]:
    """Return what is wrong with SQL, asked of an empty lake that is made for it."""
    from tidemill.databricks.bundle import sql
    from tidemill.lake.session.session import require_spark

    require_spark()
    if verbose:
        show_logs()
    with tempfile.TemporaryDirectory(prefix="tidemill-bundle-") as root:
        return sql.check_in_new_lake(read, Path(root), memory, verbose)
