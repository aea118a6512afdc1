"""The command line as its parser sees it: words in, options out, nothing run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer

from tidemill.cli import app


def options(name: str) -> set[str]:
    """The options of a command, such as `--root`."""
    return {word for param in _command(name).params for word in param.opts} | {"--help"}


def parsed(words: Sequence[str]) -> dict[str, Any]:
    """The options of `tidemill <words>`; raises what the command line would refuse."""
    name, *arguments = words
    return dict(_command(name).make_context(name, arguments).params)


def _command(name: str) -> Any:
    group: Any = typer.main.get_command(app)
    assert name in group.commands, f"no command {name!r}"
    return group.commands[name]
