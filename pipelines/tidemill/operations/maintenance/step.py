"""One thing to do to a table, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Step:
    """One thing to do to a table, and why; `run` does it and tells what came of it."""

    table: str
    action: str
    reason: str
    run: Callable[[], str]


@dataclass(frozen=True)
class Done:
    """A step that was run."""

    table: str
    action: str
    reason: str
    result: str
    seconds: float


def many(number: int, one: str, more: str = "") -> str:
    """Return a number of things in words: `one`, or `more`, by default `one` with an s."""
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def span(length: timedelta) -> str:
    """Return a length of time in whole days, else in hours."""
    days = length / timedelta(days=1)
    return f"{days:.0f} days" if days == round(days) else f"{length / timedelta(hours=1):.0f} hours"
