"""The command line as its parser sees it: words in, options out, nothing run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer

from tidemill.cli import app


def options(name: str) -> set[str]:
    """The options of a command, such as `--root`."""
    group = _command(name)
    each = getattr(group, "commands", {"": group}).values()
    return {word for one in each for param in one.params for word in param.opts} | {"--help"}


def parsed(words: Sequence[str]) -> dict[str, Any]:
    """The options of `tidemill <words>`; raises what the command line would refuse."""
    name, *arguments = words
    command = _command(name)
    while hasattr(command, "commands"):  # a group, such as quarantine
        name, *arguments = arguments
        assert name in command.commands, f"no command {name!r}"
        command = command.commands[name]
    return dict(command.make_context(name, arguments).params)


def _command(name: str) -> Any:
    group: Any = typer.main.get_command(app)
    assert name in group.commands, f"no command {name!r}"
    return group.commands[name]
