"""The command line: each command parses, calls and prints.

Exit codes: 0 done, 1 a check found something, 2 what was typed or declared cannot be done, 3 it
started and failed, 130 a second Ctrl-C. With --json stdout holds one JSON object, on failure
{"error": ...}.
"""

from __future__ import annotations

import sys

import typer

from tidemill.cli import exit_codes
from tidemill.cli.commands import (
    databricks,
    lake,
    monitoring,
    online,
    operations,
    pipeline,
    quality,
    query,
)

app = typer.Typer(
    name="tidemill",
    help="Exact rolling-window features in Delta tables, touched only when they change.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for kind in (pipeline, lake, query, quality, monitoring, online, operations, databricks):
    app.add_typer(kind.commands)


def main() -> None:
    """Run the command line; the one place where errors become exit codes.

    Done is a return: a notebook or a Databricks task that calls this takes any SystemExit, 0 too,
    for a failure.
    """
    arguments = sys.argv[1:]
    try:
        code = app(arguments, standalone_mode=False)
    except Exception as error:
        code = exit_codes.failed(error, arguments)
    except KeyboardInterrupt:
        code = 130
    sys.stdout.flush()
    if isinstance(code, int) and code:
        raise SystemExit(code)
