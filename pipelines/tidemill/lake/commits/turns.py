"""Who of this process may commit to a folder's table: Spark, or `deltalake` beside it.

Either refuses a version that is there. Spark's local log looks for the file, then writes it: what
`deltalake` writes between the two would be lost. So what commits by `deltalake` takes the table's
turn, and so does what Spark may commit to that table meanwhile, which is maintenance. Another
process is kept out by the lake's lock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TURNS: dict[Path, threading.Lock] = {}
_NEW = threading.Lock()


@contextmanager
def turn(table: Path | None) -> Iterator[None]:
    """Hold the turn of the table in a folder, waiting for it; None, of a catalog, has none."""
    if table is None:
        yield
        return
    with _of(table):
        yield


@contextmanager
def turn_if_free(table: Path | None) -> Iterator[bool]:
    """Hold the turn of the table in a folder where nobody holds it; yield whether it is held."""
    if table is None or not (lock := _of(table)).acquire(blocking=False):
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _of(table: Path) -> threading.Lock:
    with _NEW:
        return _TURNS.setdefault(table.resolve(), threading.Lock())
