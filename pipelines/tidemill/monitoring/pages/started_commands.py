"""What the two buttons do: a command of `tidemill` in a process of its own, one at a time.

    button ──► Commands.start ──► tidemill reconcile ... --json ──► its page, until it has ended

So the pages' own process never starts a JVM, and a command takes the lake's lock as any other does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tidemill.errors import UsageError
from tidemill.monitoring.pages.content import Card, Page, cell
from tidemill.monitoring.report.html import Section, Table

_KEPT = 100  # newest commands whose ends are remembered


@dataclass
class Command:
    """A command that was started: its words, and its exit code and answer once it has ended."""

    words: Sequence[str]
    code: int | None = None
    answer: dict[str, Any] = field(default_factory=dict)


class Commands:
    """The commands that were started from the pages, by number."""

    def __init__(self, place: Sequence[str]):
        """`place` are the words that name the lake."""
        self.place = place
        self._commands: dict[int, Command] = {}
        self._running = threading.Lock()

    def start(self, *words: str) -> int:
        """Start a command and return its number; UsageError while another one runs."""
        if not self._running.acquire(blocking=False):
            expected = "one at a time: wait for its end"
            raise UsageError("a command is under way", where="button", expected=expected)
        number = max(self._commands, default=0) + 1
        self._commands[number] = command = Command(words)
        self._commands.pop(number - _KEPT, None)
        threading.Thread(target=self._run, args=(command,), daemon=True).start()
        return number

    def _run(self, command: Command) -> None:
        try:
            words = [sys.executable, "-m", "tidemill.cli", *command.words, *self.place, "--json"]
            ended = subprocess.run(words, capture_output=True, text=True, check=False)
            command.answer = _answer(ended.stdout, ended.stderr)
            command.code = ended.returncode
        finally:
            self._running.release()

    def page(self, number: int) -> Page:
        """Return the page of a command; UsageError for an unknown one."""
        command = self._commands.get(number)
        if command is None:
            raise UsageError("no such command", where=str(number), expected="one of this process")
        title = f"tidemill {' '.join(command.words[:1])}"
        words = f"`tidemill {' '.join(command.words)}`"
        if command.code is None:
            return Page(title, f"{words} is under way; this page looks again.", refresh=2)
        rows = [[name, cell(value)] for name, value in command.answer.items()]
        said = "as expected" if command.code == 0 else "something is to be done"
        return Page(
            title,
            f"{words} has ended.",
            [Card(f"exit {command.code}", said)],
            [Section("Its answer", "As with `--json`.", Table(["", ""], rows))],
        )


def _answer(out: str, err: str) -> dict[str, Any]:
    try:
        found = json.loads(out)
    except ValueError:
        return {"error": err.strip()[-2000:] or out.strip()[-2000:]}
    error = found.get("error") if isinstance(found, dict) else None
    return dict(error) if isinstance(error, dict) else dict(found)
