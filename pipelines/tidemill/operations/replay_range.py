"""A range of a topic's offsets read again, each of its records counted once.

    source.between ──► of those before where land stands ──► not in bronze: landed, by one MERGE
                                                        ├──► in bronze as it is: left
                                                        └──► in bronze undecoded, and readable now:
                                                             sent through again, as repaired

For records from before the first offset that land read, and for payloads whose schema came late. A
record's id is its position, so that whoever brings it brings it once; what land has not finished
is left to land, which would bring it a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.config.settings import Clock
from tidemill.errors import UsageError
from tidemill.lake.catalog import Lake
from tidemill.operations import replay
from tidemill.operations.replay import Repaired
from tidemill.pipeline import bronze
from tidemill.sources import UNDECODED, Source


@runtime_checkable
class Ranged(Protocol):
    """A source whose records have positions, by topic, partition and offset."""

    def between(
        self, spark: SparkSession, topic: str, ranges: Mapping[int, tuple[int, int]]
    ) -> DataFrame:
        """Return the records of a topic in ranges of offsets, by partition."""
        ...

    def read_to(self, offset: str) -> dict[str, dict[int, int]]:
        """Return the offsets before which a checkpoint has read, by topic and partition."""
        ...


@dataclass(frozen=True)
class OffsetRange:
    """Offsets of a topic, from `first` to before `end`, of one partition or of each."""

    topic: str
    first: int
    end: int
    partition: int | None = None

    def __post_init__(self) -> None:
        """Refuse a range of nothing."""
        if not 0 <= self.first < self.end:
            found = f"offsets {self.first} to {self.end} are no range"
            raise UsageError(found, where="--from --to", expected="0 <= from < to; to is not in it")


def replay_range(lake: Lake, source: Source, asked: OffsetRange, clock: Clock) -> dict[str, Any]:
    """Land what bronze does not have of a range, and repair what it could not read; return how many
    records were read, landed, in bronze already, repaired, and refused again."""
    if not isinstance(source, Ranged):
        found = "its records have no offsets"
        raise UsageError(found, where="source", expected="a source of kind kafka")
    ranges = _finished(lake, source, asked)
    stamped = bronze.stamped(
        source.between(lake.spark, asked.topic, ranges), lake.pipeline, clock
    ).persist()
    try:
        known = _known(lake, asked).cache()
        read = stamped.count()
        new = stamped.join(known, "record_id", "left_anti").select(*stamped.columns)
        landed = replay.insert(lake, lake.tables.bronze.name, new)
        repaired = replay.replay(lake, _readable_now(lake, stamped, known), clock)
    finally:
        stamped.unpersist()
    return {
        "pipeline": lake.pipeline.pipeline,
        "topic": asked.topic,
        "ranges": {str(part): list(pair) for part, pair in sorted(ranges.items())},
        "read": read,
        "landed": landed,
        "already": read - landed - repaired["landed"],
        "repaired": repaired["landed"],
        "refused": len(repaired["refused"]),
    }


def _finished(lake: Lake, source: Ranged, asked: OffsetRange) -> dict[int, tuple[int, int]]:
    """Return what of the range land has passed, by partition; UsageError where that is nothing."""
    checkpoint = lake.checkpoint("land")
    text = checkpoint.offset_text(checkpoint.finished())
    ends = source.read_to(text).get(asked.topic, {}) if text else {}
    ranges = {
        part: (asked.first, min(asked.end, end))
        for part, end in ends.items()
        if asked.partition in (None, part) and asked.first < end
    }
    if not ranges:
        stands = ", ".join(f"{part} to {end}" for part, end in sorted(ends.items()))
        raise UsageError(
            f"land has not read these offsets: it has {stands or 'nothing'}",
            where=asked.topic,
            expected="offsets before that; what comes after is read by `tidemill run`",
        )
    return ranges


def _known(lake: Lake, asked: OffsetRange) -> DataFrame:
    """Return the records of the range that bronze has: ids, and payloads that it could not read."""
    undecoded = F.col("raw_payload").startswith(UNDECODED)
    position = F.col("offset").between(asked.first, asked.end)
    return (
        lake.spark.table(lake.tables.bronze.name)
        .where((F.col("topic") == asked.topic) & position)
        .select("record_id", F.when(undecoded, F.col("raw_payload")).alias("undecoded"))
    )


def _readable_now(lake: Lake, stamped: DataFrame, known: DataFrame) -> list[Repaired]:
    """Return the records that were refused undecoded and that can be decoded by now."""
    refused = lake.spark.table(lake.tables.quarantine.name).select("record_id")
    rows = (
        stamped.join(known, "record_id")
        .where(F.col("undecoded").isNotNull() & ~F.col("raw_payload").startswith(UNDECODED))
        .join(refused, "record_id", "left_semi")
    )
    pairs = rows.select("record_id", "raw_payload").collect()
    return [Repaired(row["record_id"], row["raw_payload"]) for row in pairs]
