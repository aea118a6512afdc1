"""The step `optimize`: few files of many, and rows in the order that they are read by."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial

from tidemill.config.settings import Clock
from tidemill.features.types import bytes_of
from tidemill.lake.catalog import Lake
from tidemill.lake.schema import table_properties
from tidemill.lake.session.temporary_conf import temporary_conf
from tidemill.lake.tables import Table
from tidemill.operations.maintenance import log_retention
from tidemill.operations.maintenance.partitions import files_of, text_of
from tidemill.operations.maintenance.results_lock import beside_others
from tidemill.operations.maintenance.step import Step, many

FILES = 4  # a closed partition may have so many files
UNPARTITIONED_FILES = 16  # of gold, and of replays
CLUSTERED = "tidemill.clustered_files"  # a property of these: files after the last OPTIMIZE
OPEN_FILES = 16  # the day of tidemill_batches that is not over, to which a run appends each minute
_FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"


def optimize(lake: Lake, clock: Clock) -> Iterator[Step]:
    """Yield a step for each table of which a partition has too many files."""
    for table in lake.existing_tables():
        if not table.partitioned_by:
            if table.sorted_by:
                yield from _cluster(lake, table)
            continue
        (column,) = table.partitioned_by
        open_from = text_of(column, clock.now())
        most = _most_bytes(lake, table)
        may_stay_open = OPEN_FILES if table.name == lake.tables.batches.name else math.inf
        crowded = {
            value: files
            for value, files in sorted(files_of(lake, table, below=most and most // 2).items())
            if files > (FILES if value < open_from else may_stay_open)
        }
        if crowded:
            kind = "closed partition" if max(crowded) < open_from else "partition"
            files = f"{sum(crowded.values()):,} files"
            reason = f"{files} in {many(len(crowded), kind)}"
            yield Step(table.name, "optimize", reason, partial(_compact, lake, table, crowded))


def _compact(lake: Lake, table: Table, crowded: Iterable[str]) -> str:
    (column,) = table.partitioned_by
    values = ", ".join(f"'{value}'" for value in crowded)
    order = f" ZORDER BY ({table.sorted_by})" if table.sorted_by else ""
    with beside_others(lake, table), _files_of_at_most(lake, _most_bytes(lake, table)):
        return _optimized(lake, f"OPTIMIZE {table.name} WHERE {column} IN ({values}){order}")


def _most_bytes(lake: Lake, table: Table) -> int | None:
    """Return how large a file may become where a query reads the table as a stream: a file is the
    least that a batch reads."""
    followed = log_retention.readers(lake)
    return bytes_of(lake.pipeline.max_bytes_per_trigger) if table.name in followed else None


def _files_of_at_most(lake: Lake, most: int | None) -> AbstractContextManager[None]:
    """Let OPTIMIZE make files of at most so many bytes, Delta's own limit by default."""
    return temporary_conf(lake.spark, {} if most is None else {_FILE_SIZE: str(most)})


def _cluster(lake: Lake, table: Table) -> Iterator[Step]:
    """Order a table without partitions: rows of gold that changed at the same time, replays of the
    same day, come into the same files. A MERGE writes files of gold again, and those of keys that
    are never seen again then stay as they are; clean reads replays by their day.

    All of the table is written for it, so a table of many files waits until it has twice as many as
    the last time left, which its property says.
    """
    files = _file_count(lake, table)
    left = _clustered_files(lake, table) if files > UNPARTITIONED_FILES else 0

    def run() -> str:
        became = _optimized(lake, f"OPTIMIZE {table.name} ZORDER BY ({table.sorted_by})")
        if (after := _file_count(lake, table)) != left:
            table_properties.tell(lake.spark, table.name, {CLUSTERED: str(after)})
        return became

    if files > max(UNPARTITIONED_FILES, 2 * left):
        yield Step(table.name, "optimize", f"{files:,} files", run)


def _clustered_files(lake: Lake, table: Table) -> int:
    return int(lake.metadata(table.name).properties.get(CLUSTERED, "0"))


def _file_count(lake: Lake, table: Table) -> int:
    return len(lake.files(table.name))


def _optimized(lake: Lake, sql: str) -> str:
    metrics = (
        lake.spark.sql(sql).select("metrics.numFilesRemoved", "metrics.numFilesAdded").collect()[0]
    )
    return f"{many(metrics[0], 'file')} became {metrics[1]:,}"
