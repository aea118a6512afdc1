"""What a check of the bundle found, and where."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Finding:
    """A mistake in a file of the bundle; `file` is relative to the bundle's folder."""

    file: str
    line: int
    message: str
    expected: str | None = None

    def __str__(self) -> str:
        """Return the finding as editors and people read it: `file:line: message`."""
        text = f"{self.file}:{self.line}: {self.message}"
        return f"{text} (expected: {self.expected})" if self.expected else text
