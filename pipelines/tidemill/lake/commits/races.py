"""Commits that meet another's: what Delta says then, and how often a write is tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark.errors import PySparkException

T = TypeVar("T")
TRIES = 3
# The last one: another commit changed the table's properties, as expiry and log retention do.
_LOST = ("DELTA_CONCURRENT", "DELTA_METADATA_CHANGED")


def past_others(write: Callable[[], T]) -> T:
    """Write, and at most twice more where another commit came first, as maintenance's may, which
    changes no row; return what the write that got through returns."""
    for _ in range(TRIES - 1):
        try:
            return write()
        except PySparkException as error:
            if not lost_race(error):
                raise
    return write()


def lost_race(error: PySparkException) -> bool:
    """Return whether another commit came first: by its condition, or as Delta's Python words it."""
    condition = error.getCondition() or ""
    return condition.startswith(_LOST) or any(f"[{word}" in str(error) for word in _LOST)
