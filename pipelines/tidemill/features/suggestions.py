"""The "did you mean" of every message."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the nearest of `known`, else the choice, else nothing."""
    choices = list(known)
    near = get_close_matches(word.lower(), [c.lower() for c in choices], n=1, cutoff=0.6)
    if near:
        match = next(c for c in choices if c.lower() == near[0])
        return f"; did you mean {match!r}?"
    return f"; known: {', '.join(choices)}" if choices else ""
