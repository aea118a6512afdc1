"""docs/operations.md as what is to be typed: the command blocks of each section, in order."""

from __future__ import annotations

import re
import shlex
import subprocess
import textwrap
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from command_line import Answer, call

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
START = "First look"  # what stands before the first heading
_PART = re.compile(r"^(#{2,3}) ([^\n]+)$|^( *)```(\w+)\n(.*?)^\3```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """Commands for a shell, or a script for Python."""

    is_script: bool
    text: str

    @property
    def commands(self) -> list[str]:
        """The lines after a prompt."""
        return re.findall(r"^\$ (.+)$", self.text, re.MULTILINE)

    def follow(self) -> list[Answer]:
        """Do what it says in the current folder; return what each of our commands answered."""
        if self.is_script:
            exec(compile(self.text, PAGE.name, "exec"), {"__name__": "__main__"})
            return []
        return [answer for line in self.commands if (answer := _typed(line))]


def _typed(line: str) -> Answer | None:
    program, *words = shlex.split(line)
    if program == "tidemill":
        return call(*words)
    assert program in {"mv", "cp", "rm"}, line
    subprocess.run([program, *words], check=True)
    _forget_tables()
    return None


def _forget_tables() -> None:
    """Let the session know no table: in a shell the next command is a process of its own."""
    spark = SparkSession.getActiveSession()
    assert spark is not None
    schema = spark.catalog.currentDatabase()
    spark.catalog.setCurrentDatabase("default")
    if schema != "default":
        spark.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def blocks() -> dict[str, list[Block]]:
    """The blocks of each section that has one; messages, schedules and settings are none."""
    found: dict[str, list[Block]] = {}
    section = heading = START
    for match in _PART.finditer(PAGE.read_text(encoding="utf-8")):
        level, title, _, kind, text = match.groups()
        if level:
            heading = title if level == "##" else heading
            section = title if level == "##" else f"{heading} / {title}"
        elif kind == "console" or "import tidemill" in text:
            found.setdefault(section, []).append(Block(kind != "console", textwrap.dedent(text)))
    return found
