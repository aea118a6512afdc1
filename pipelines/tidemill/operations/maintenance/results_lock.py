"""The locks of tables that are written beside maintenance: by the gate, and by recompute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tidemill.lake import lock
from tidemill.lake.catalog import Lake
from tidemill.lake.tables import Table


@contextmanager
def beside_others(lake: Lake, table: Table) -> Iterator[None]:
    """Hold a table that is written without the lake's lock: the gate's results, recomputed days.
    LockedError where that is done now."""
    folder = lock.GATE if table == lake.tables.quality else lock.RECOMPUTE
    if table != lake.tables.quality and table not in lake.tables.days:
        yield
        return
    command = f"tidemill maintain {lake.pipeline.pipeline}"
    with lock.hold_apart(lake.place, folder, command, wait=0):
        yield
