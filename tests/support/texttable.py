"""Tables as text that people read: a line of names, a line per row, cells between bars.

    gti     | views_1h | as_of
    title-1 |        2 | 2026-11-21 11:00

Lines that begin with # are remarks. A null is `null`, a flag `true` or `false`, a time is UTC, its
seconds left out at :00.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any


@dataclass(frozen=True)
class TextTable:
    """Names, and rows of cells, all text."""

    columns: list[str]
    rows: list[list[str]]

    @classmethod
    def parse(cls, text: str) -> TextTable:
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        columns, *rows = [[cell.strip() for cell in line.split("|")] for line in lines]
        for row in rows:
            assert len(row) == len(columns), f"{len(row)} cells, not {len(columns)}: {row}"
        return cls(columns, rows)

    @classmethod
    def of(cls, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> TextTable:
        """The cells of collected rows, as `parse` would have them."""
        return cls(list(columns), [[cell(value) for value in row] for row in rows])

    def only(self, columns: Sequence[str]) -> TextTable:
        """These columns, in this order."""
        at = [self.columns.index(name) for name in columns]
        return TextTable(list(columns), [[row[i] for i in at] for row in self.rows])

    def sorted(self) -> TextTable:
        return TextTable(self.columns, sorted(self.rows))

    def render(self) -> str:
        """The table with its columns in line, numbers to the right."""
        lines = [self.columns, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        numeric = [all(_is_number(row[i]) for row in self.rows) for i in range(len(self.columns))]
        texts = (
            " | ".join(
                value.rjust(width) if right else value.ljust(width)
                for value, width, right in zip(line, widths, numeric, strict=True)
            ).rstrip()
            for line in lines
        )
        return "\n".join(texts) + "\n"

    def differences(self, expected: TextTable) -> str:
        """Each cell that is not as expected, and both tables; empty when they are equal."""
        if self == expected:
            return ""
        told = [
            f"row {number}, {name}: {found!r}, expected {wanted!r}"
            for number, (mine, other) in enumerate(zip(self.rows, expected.rows, strict=False), 1)
            for name, found, wanted in zip(expected.columns, mine, other, strict=True)
            if found != wanted
        ]
        if len(self.rows) != len(expected.rows):
            told.append(f"{len(self.rows)} rows, expected {len(expected.rows)}")
        both = f"found:\n{self.render()}\nexpected:\n{expected.render()}"
        return "\n".join([*told, "", both])


def cell(value: Any) -> str:
    """A value as a cell."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        text = f"{value.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S}"
        return text.removesuffix(":00")
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def _is_number(text: str) -> bool:
    return text == "null" or text.replace(".", "", 1).lstrip("-").isdigit()
