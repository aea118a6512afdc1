"""Events joined with dimensions, each in the row that holds at the event's time.

    accepted events ──keys──► dimension ──► the columns that `enrich` names, null without a row

A dimension that is kept with its history is asked as of the event's time; of another one the newest
row is taken. Small ones are sent to every task. Each batch reads the newest version, or with
`refresh` the one that was read last, until that is so old: no restart is needed to see a new one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.config.dimension import Dimension, Enrichment
from tidemill.features.windows import duration
from tidemill.lake.catalog import Lake
from tidemill.pipeline.row_writes.frame_cache import cached

SMALL = 256 * 2**20  # bytes of a dimension's files that are sent to every task
Versions = Mapping[str, int]


@dataclass
class Readings:
    """Which version of each dimension a query has read last, and when: on Spark Connect beside the
    batch function, in its process. Without one that is young enough the newest is read."""

    now: Callable[[], float] = time.monotonic
    read: dict[str, tuple[int, float]] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, object]:
        """Return nothing of what was read: another process begins with the newest."""
        return {"now": self.now, "read": {}}

    def versions(self, lake: Lake) -> Versions:
        """Return the version of each dimension that a batch is to read."""
        return {one.dimension: self._version(one, lake) for one in lake.pipeline.enrich}

    def _version(self, one: Enrichment, lake: Lake) -> int:
        kept = duration(one.refresh).total_seconds() if one.refresh else 0.0
        version, at = self.read.get(one.dimension, (-1, float("-inf")))
        if self.now() - at >= kept:
            table = lake.tables.dimensions[one.dimension].rows.name
            version = lake.commits(table, 1)[0].version
            self.read[one.dimension] = version, self.now()
        return version


@dataclass(frozen=True)
class Taken:
    """Events with what they took of dimensions, and what the batch's ledger says of that: the
    versions that were read, and how many events found no row, by dimension."""

    rows: DataFrame
    told: Mapping[str, Any] = field(default_factory=dict)


@contextmanager
def taken(events: DataFrame, lake: Lake, readings: Readings | None) -> Iterator[Taken]:
    """Yield accepted events with what they take, kept until they are written; those of a pipeline
    that takes nothing as they are."""
    if not lake.pipeline.enrich:
        yield Taken(events)
        return
    versions = (readings or Readings()).versions(lake)
    with cached(enriched(events, lake, versions)) as rows:
        flags = {one.dimension: F.count_if(missing(one)) for one in lake.pipeline.enrich}
        counted = rows.agg(*(count.alias(name) for name, count in flags.items())).collect()[0]
        yield Taken(rows, {"unmatched": counted.asDict(), "dimensions": dict(versions)})


def enriched(events: DataFrame, lake: Lake, versions: Versions) -> DataFrame:
    """Return the events with what they take of dimensions, and `__no_<dimension>`, whether it has
    no row for the event, for each `enrich`."""
    for one in lake.pipeline.enrich:
        events = _looked_up(events, one, lake, versions[one.dimension])
    return events


def missing(one: Enrichment) -> str:
    """Return the name of the flag that an event found no row in the dimension."""
    return f"__no_{one.dimension}"


def _looked_up(events: DataFrame, one: Enrichment, lake: Lake, version: int) -> DataFrame:
    dimension = lake.pipeline.dimension(one.dimension)
    table = lake.tables.dimensions[dimension.name].rows.name
    rows = lake.spark.read.option("versionAsOf", version).table(table).where("NOT deleted")
    known = rows.select(
        *(F.col(key).alias(f"__on_{column}") for column, key in one.keys.items()),
        *(F.col(name).alias(f"__of_{column}") for column, name in one.columns.items()),
        *(("valid_from", "valid_to") if dimension.has_history else ()),
        F.lit(False).alias(missing(one)),
    )
    if lake.detail(table).bytes <= SMALL:
        known = F.broadcast(known)
    joined = events.join(known, _holds(one, dimension, lake.pipeline.events.event_time), "left")
    taken = {name: F.col(f"__of_{name}") for name in one.columns}
    flag = F.coalesce(missing(one), F.lit(True)).alias(missing(one))
    names = [taken[name].alias(name) if name in taken else F.col(name) for name in events.columns]
    return joined.select(*names, flag)


def _holds(one: Enrichment, dimension: Dimension, event_time: str) -> Column:
    """Return the condition of a row to be of the event's key, and to hold at its time."""
    same = F.expr(" AND ".join(f"{column} = __on_{column}" for column in one.keys))
    if not dimension.has_history:
        return same
    begun = F.col(event_time) >= F.col("valid_from")
    return same & begun & (F.col("valid_to").isNull() | (F.col(event_time) < F.col("valid_to")))
