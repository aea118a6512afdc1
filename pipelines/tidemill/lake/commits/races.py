"""Commits that meet another's: what Delta says then, and how often a write is tried."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.errors import PySparkException

TRIES = 3
# The last one: another commit changed the table's properties, as expiry and log retention do.
_LOST = ("DELTA_CONCURRENT", "DELTA_METADATA_CHANGED")


def past_others(write: Callable[[], None]) -> None:
    """Write, and at most twice more where another commit came first, as maintenance's may, which
    changes no row."""
    for tries in range(TRIES, 0, -1):
        try:
            return write()
        except PySparkException as error:
            if tries == 1 or not lost_race(error):
                raise


def lost_race(error: PySparkException) -> bool:
    """Return whether another commit came first: by its condition, or as Delta's Python words it."""
    condition = error.getCondition() or ""
    return condition.startswith(_LOST) or any(f"[{word}" in str(error) for word in _LOST)
