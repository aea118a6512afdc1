"""How healthy a pipeline's files are: how many, how large, how many too small, how long the log.

Of a catalog's tables only Delta's own detail is asked; sizes of single files, and of the log, are a
folder's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tidemill.lake.catalog import Lake
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
    small = small_files(folder, lake.spark.table(table.name).inputFiles())
    return {**health, "small_files": small, "log_files": len(log), "log_bytes": sum(log)}


def small_files(folder: Path, living: Iterable[str]) -> int:
    """Count the small files that stand beside another one, of those that live: their names are
    unique in a table, whatever their folders are quoted like."""
    by_name = {path.name: path for path in folder.rglob("*.parquet")}
    files = (by_name.get(name.rpartition("/")[2]) for name in living)
    small = Counter(file.parent for file in files if file and file.stat().st_size < SMALL)
    return sum(number for number in small.values() if number > 1)
