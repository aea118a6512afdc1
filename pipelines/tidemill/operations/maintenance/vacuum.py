"""The step `vacuum`: files that no version within the retention names."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from functools import partial

from tidemill.config.dataflow import Query
from tidemill.config.pipeline_file import LEAST_RETENTION
from tidemill.config.settings import Clock
from tidemill.features.windows import duration
from tidemill.lake.catalog import Lake
from tidemill.lake.tables import Table
from tidemill.operations.maintenance import log_retention
from tidemill.operations.maintenance.results_lock import beside_others
from tidemill.operations.maintenance.step import Step, span

_SAFELY = timedelta(hours=1)  # added to what a stream still needs


def vacuum(lake: Lake, clock: Clock) -> Iterator[Step]:
    """Yield a step for each table, with how long its files are kept, and for whom."""
    readers = log_retention.readers(lake)
    declared = lake.pipeline.maintenance
    retention = duration(declared.retention) if declared else LEAST_RETENTION
    for table in lake.existing_tables():
        kept, why = retention, "the retention"
        for query in readers.get(table.name, ()):
            needed = needed_age(lake, table, query)
            if needed > kept:
                kept, why = needed, f"the query {query.checkpoint} has read no further"
        reason = f"files that no version of the last {span(kept)} names ({why})"
        yield Step(table.name, "vacuum", reason, partial(_remove_files, lake, table, kept))


def needed_age(lake: Lake, table: Table, query: Query) -> timedelta:
    """Return the age of the oldest version that a running or stopped query will read."""
    version = lake.checkpoint(query.checkpoint).read_to()
    if version is None:
        return timedelta(0)
    newest = lake.commits(table.name, 1)[0].version
    if version > newest:
        return timedelta(0)
    oldest = lake.commits(table.name, newest - version + 1)[-1]
    return datetime.now(timezone.utc) - oldest.at + _SAFELY


def _remove_files(lake: Lake, table: Table, kept: timedelta) -> str:
    hours = math.ceil(kept.total_seconds() / 3600)
    with beside_others(lake, table):
        lake.spark.sql(f"VACUUM {table.name} RETAIN {hours} HOURS")
    return "done"
