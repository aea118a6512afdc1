"""Errors become exit codes, in one place."""

from __future__ import annotations

import traceback
from itertools import pairwise

import typer

from tidemill.cli.output.terminal import print_error
from tidemill.errors import SetupError, TidemillError, UsageError
from tidemill.query.json_values import json_of


def failed(error: Exception, arguments: list[str]) -> int:
    """Print the error, as JSON where asked, and return the exit code."""
    if isinstance(error, typer.Exit):
        return error.exit_code
    if "--verbose" in arguments:
        print_error("".join(traceback.format_exception(error)).rstrip())
    ours = _ours(error)
    if _is_for_programs(arguments):
        print(json_of({"error": ours.as_dict()}))
    else:
        print_error(f"error: {ours}")
    return ours.exit_code


def _is_for_programs(arguments: list[str]) -> bool:
    """Return whether stdout is for JSON."""
    asked = "--json" in arguments or "--format=json" in arguments
    return asked or ("--format", "json") in pairwise(arguments)


def _ours(error: Exception) -> TidemillError:
    if isinstance(error, TidemillError):
        return error
    if hasattr(error, "format_message"):  # Typer's own: an unknown option, a missing argument
        return UsageError(error.format_message(), where="command line", expected="see --help")
    if isinstance(error, ModuleNotFoundError) and (missing := _missing_spark()):
        return missing
    from tidemill.pipeline.failures import explained

    return explained(error, "the command")


def _missing_spark() -> SetupError | None:
    """Return the error that names Spark as missing, None when it is there."""
    from tidemill.lake.session.session import require_spark

    try:
        require_spark()
    except SetupError as error:
        return error
    return None
