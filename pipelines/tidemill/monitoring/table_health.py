"""How healthy a pipeline's files are: how many, how large, how many too small, how long the log.

Of a catalog's tables only Delta's own detail is asked; sizes of single files, and of the log, are a
folder's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tidemill.lake.catalog import Lake
from tidemill.lake.commits.metadata import DataFile
from tidemill.lake.tables import Table

SMALL = 16 * 1024 * 1024  # bytes


def tables_of(lake: Lake) -> list[dict[str, Any]]:
    """Return `{table, files, bytes, small_files, log_files, log_bytes}` of each table.

    A file is small under 16 MB beside another such file of its partition: the two could be one.
    None where it cannot be told.
    """
    return [_health(lake, table) for table in lake.existing_tables()]


def _health(lake: Lake, table: Table) -> dict[str, Any]:
    detail = lake.detail(table.name)
    health = {"table": table.name, "files": detail.files, "bytes": detail.bytes}
    root = lake.place.folder
    if root is None:
        return {**health, "small_files": None, "log_files": None, "log_bytes": None}
    folder = root / table.name
    log = [path.stat().st_size for path in (folder / "_delta_log").glob("*.*")]
    small = _small_files(lake.files(table.name))
    return {**health, "small_files": small, "log_files": len(log), "log_bytes": sum(log)}


def _small_files(living: Iterable[DataFile]) -> int:
    """Count the small files that stand beside another one in their folder."""
    folders = (f.path.rpartition("/")[0] for f in living if f.bytes is not None and f.bytes < SMALL)
    return sum(number for number in Counter(folders).values() if number > 1)
