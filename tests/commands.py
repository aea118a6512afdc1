"""The command line as its parser sees it: words in, options out, nothing run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer

from tidemill.cli import app


def options(name: str) -> set[str]:
    """The options of a command, such as `--root`; of a group, those of all its commands."""
    found = _command([name])[0]
    several = getattr(found, "commands", {"": found}).values()
    return {word for each in several for param in each.params for word in param.opts} | {"--help"}


def parsed(words: Sequence[str]) -> dict[str, Any]:
    """The options of `tidemill <words>`; raises what the command line would refuse."""
    command, name, arguments = _command(words)
    return dict(command.make_context(name, arguments).params)


def _command(words: Sequence[str]) -> tuple[Any, str, list[str]]:
    """The command that the words name, a group's too, its name, and the words after it."""
    found: Any = typer.main.get_command(app)
    name, rest = "", list(words)
    while rest and hasattr(found, "commands"):
        name = rest.pop(0)
        assert name in found.commands, f"no command {name!r}"
        found = found.commands[name]
    return found, name, rest
