"""The lock of the table that the gate writes to beside maintenance."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tidemill.lake import lock
from tidemill.lake.catalog import Lake
from tidemill.lake.tables import Table


@contextmanager
def beside_gate(lake: Lake, table: Table) -> Iterator[None]:
    """Hold the gate's results where the table is theirs: the gate writes them without the lake's
    lock. LockedError where it does so now."""
    if table != lake.tables.quality:
        yield
        return
    with lock.hold_gate(lake.place, f"tidemill maintain {lake.pipeline.pipeline}", wait=0):
        yield
