"""Which events of a batch are duplicates: of one accepted before, or of another in the batch.

    valid events of the batch ──(event_id, event time)──┐
    accepted events of the same minutes ────────────────┴─► identities that come twice ──► flag

Identities are brought together without the other columns, and only those that come twice go back to
the events, which stay where they are. Of the events table the minutes of the batch are read: the
files, and the pages in them, that hold such times. So late events cost as much as there are of
them, however many events the day has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.lake import times
from tidemill.lake.catalog import Lake
from tidemill.lake.parameters import literal
from tidemill.lake.times import of_epoch
from tidemill.pipeline.silver import validation
from tidemill.pipeline.silver.frame_cache import cached

PLACE = "__place"  # the column that tells rows apart which are the same
# A batch is small up to so many records. The duplicates of a small one are told to its plan as
# places: a condition of many ranges then stands in one query, and not in all that follow.
SMALL, PLACES = 50_000, 1_000
FEW = 500_000  # identities that come twice in a large batch, which a join may broadcast
# By how many ranges of times the events table is read: a small one, which takes less time than
# to plan them; by a large batch; else.
RANGES_OF_FEW, RANGES_OF_LARGE, RANGES = 4, 16, 64
FEW_EVENTS = 32 * 2**20  # bytes


@contextmanager
def flagged(
    valid: DataFrame, records: int, minutes: Sequence[int], batch_id: int, lake: Lake
) -> Iterator[DataFrame]:
    """Yield a batch's valid events with `duplicate`, a flag, in place of their PLACE.

    `records` is how many the batch has at most; `minutes` are those of its event times, since 1970,
    in order.
    """
    small = records <= SMALL
    most = RANGES if small else RANGES_OF_LARGE
    if _has_few_events(lake):
        most = RANGES_OF_FEW
    twice = repeated(valid, minutes, batch_id, lake, most)
    if small:
        yield _flagged(valid, _by_place(valid, _places(twice)))
        return
    with cached(twice.drop("_places")) as identities:
        # Its size is known once it is there; every task is given what is not large.
        few = F.broadcast(identities) if identities.count() <= FEW else identities
        on = [name for name in identities.columns if not name.startswith("_")]
        is_other = F.struct("record_id", PLACE) != F.col("_first")
        yield _flagged(valid.join(few, on, "left"), F.col("_before") | is_other)


def _has_few_events(lake: Lake) -> bool:
    """Return whether the events table is small, which only a folder's log tells without a query."""
    name = lake.tables.events.name
    version = lake.newest_version(name)
    size = None if version is None else lake.size(name, version)
    return size is not None and size <= FEW_EVENTS


def _flagged(events: DataFrame, duplicate: Column) -> DataFrame:
    columns = [name for name in events.columns if not name.startswith("_")]
    flag = F.coalesce(duplicate, F.lit(False)).alias("duplicate")
    return events.select(*columns, flag)


def repeated(
    valid: DataFrame, minutes: Sequence[int], batch_id: int, lake: Lake, most: int = RANGES
) -> DataFrame:
    """Return the identities in the batch that come twice: `_before`, whether one was accepted
    before, `_first`, the record of the batch that is kept where none was, and `_places`, those of
    all of its records. Events without an id are like no other."""
    event_time = lake.pipeline.events.event_time
    identity = [validation.EVENT_ID, event_time]
    has_id = F.col(validation.EVENT_ID).isNotNull()
    mine = valid.where(has_id).select(*identity, F.struct("record_id", PLACE).alias("_record"))
    before = (
        lake.spark.table(lake.tables.events.name)
        .where(_within(minutes, event_time, most) & (F.col("batch") != batch_id) & has_id)
        .select(*identity, F.lit(None).cast(mine.schema["_record"].dataType).alias("_record"))
    )
    # An earlier version could accept one event several times: so many rows, still one identity.
    together = mine.unionByName(before).groupBy(*identity)
    counted = together.agg(
        F.count("_record").alias("_mine"),
        (F.count("*") > F.count("_record")).alias("_before"),
        F.min("_record").alias("_first"),
        F.collect_list(f"_record.{PLACE}").alias("_places"),
    )
    twice = (F.col("_mine") > 0) & (F.col("_before") | (F.col("_mine") > 1))
    return counted.where(twice).drop("_mine")


def _places(twice: DataFrame) -> list[int]:
    """Return the places of the events that are not kept."""
    first = F.col(f"_first.{PLACE}").alias("first")
    rows = twice.select("_before", first, "_places").collect()
    return [p for row in rows for p in row["_places"] if row["_before"] or p != row["first"]]


def _by_place(valid: DataFrame, places: Sequence[int]) -> Column:
    """Return the condition of an event to be at one of the places."""
    if not places:
        return F.lit(False)
    if len(places) <= PLACES:
        return F.col(PLACE).isin(list(places))
    return F.array_contains(F.lit(list(places)), F.col(PLACE))


def _within(minutes: Sequence[int], event_time: str, most: int) -> Column:
    """Return the condition of an accepted event to be of such a minute, or of one between them."""
    if not minutes:
        return F.lit(False)
    hours = sorted({minute // 60 for minute in minutes})
    of_hours = F.col("event_hour").isin([times.at(of_epoch(hour * 3600)) for hour in hours])
    each = (
        f"{event_time} >= {literal(of_epoch(first * 60))} "
        f"AND {event_time} < {literal(of_epoch(last * 60 + 60))}"
        for first, last in ranges(minutes, most)
    )
    return of_hours & F.expr(" OR ".join(f"({one})" for one in each))


def ranges(minutes: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last minute of each range that holds some of the minutes, at most so many
    of them, with the widest gaps left out."""
    gaps = [(after - before, place) for place, (before, after) in enumerate(pairwise(minutes))]
    wide = sorted((gap for gap in gaps if gap[0] > 1), reverse=True)[: most - 1]
    first = 0
    for place in sorted(place for _, place in wide):
        yield minutes[first], minutes[place]
        first = place + 1
    yield minutes[first], minutes[-1]
