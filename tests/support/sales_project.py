"""A pipeline of sales in a folder: its file, and the commands that are called with it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from command_line import Answer, call


def declare(folder: Path, views: Iterable[dict[str, Any]], **more: Any) -> None:
    """Write the pipeline's file, with the words of its views and others besides."""
    words = {
        "pipeline": "sales",
        "source": {"kind": "files", "input": str(folder / "events")},
        "views": [*views],
        **more,
    }
    (folder / "sales.yaml").write_text(yaml.safe_dump(words, sort_keys=False))


def tidemill(folder: Path, command: str, *words: object) -> Answer:
    """Call a command whose first word is the pipeline's file."""
    return call(command, folder / "sales.yaml", *words, "--root", folder / "lake", "--json")


def done(folder: Path, command: str, *words: object) -> Any:
    """Call a command that has to do what it is asked for; return what it says."""
    answer = tidemill(folder, command, *words)
    assert answer.code == 0, answer
    return answer.json
