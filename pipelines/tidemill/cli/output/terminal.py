"""What the commands print: every text as it is, styled by us alone.

A text from outside, such as a key, a path or a reason, is never read as markup or as an emoji's
name, and its control characters are shown, not obeyed (`visible`). Commands print with this module.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from tidemill.lake.visible_text import visible

Part = str | tuple[str, str]  # a text, or a text and our style for it


def console(*, quiet: bool = False) -> Console:
    """Return a console for stdout that reads no markup in what it prints."""
    return Console(quiet=quiet, highlight=False, soft_wrap=True, markup=False, emoji=False)


def line(*parts: Part) -> Text:
    """Return the parts as one line; a line break in them is shown as `\\n`."""
    pairs = (part if isinstance(part, tuple) else (part, "") for part in parts)
    return Text.assemble(*((visible(text), style) for text, style in pairs))


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Return the text with blanks up to a width in columns of a terminal."""
    blanks = " " * (width - cell_len(text))
    return blanks + text if right else text + blanks


def print_lines(lines: Iterable[object]) -> None:
    """Print each text as a line."""
    for text in lines:
        print(visible(text))


def print_text(text: str) -> None:
    """Print a text of several lines, such as a statement; it ends as it does."""
    print(visible(text, keep="\n\t"), end="")


def print_error(text: object) -> None:
    """Print what went wrong to stderr."""
    print(visible(text, keep="\n\t"), file=sys.stderr)


class VisibleFormatter(logging.Formatter):
    """Formats log lines for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text without control characters."""
        return visible(super().format(record), keep="\n\t")
