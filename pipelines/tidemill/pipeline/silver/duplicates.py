"""Which valid events of a batch are accepted: those that are no duplicate of one accepted before,
nor of another in the batch.

    valid events of the batch ──hash of (event_id, event time)──┐
    accepted events of the same minutes ────────────────────────┴─► suspects: hashes that come twice
    suspects' ids ──► identities that come twice ──► places of the events that are duplicates

Only hashes are brought together, which takes a fraction of the time that ids take; what two events
share by chance is told apart by their ids. Of the events table the hours of the batch are read; of
a large one, for a batch without late events, only the files, and the pages in them, of its minutes.

Of a small batch hashes, ids and times are brought here, and those of what they may be duplicates
of. A run that goes on knows the hashes of hours that it has read (`known_events`): it reads those
hours alone that hold a hash of the batch, mostly none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.lake import times
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.parameters import literal
from tidemill.lake.times import of_epoch
from tidemill.pipeline.row_writes.frame_cache import cached
from tidemill.pipeline.silver import validation
from tidemill.pipeline.silver.judged_batch import PLACE, JudgedBatch, Totals, totals
from tidemill.pipeline.silver.known_events import Hashes, KnownEvents

# A batch is small up to so many records: its hashes, ids and times are brought to the driver.
SMALL = 50_000
PLACES = 1_000  # duplicates that stand in a plan one by one
FEW = 500_000  # hashes or places of a large batch that every task is given
# A large events table is read by ranges of time, at most so many. They stand in the code that
# reads, which each batch then compiles anew, and runs cold: a day of fifty million events is read
# in the time that 64 ranges of it take.
LARGE_EVENTS = 2**30  # bytes
RANGES = 4
_HASH, _RECORD = "__hash", "__record"
_FOUND = ["id", "at", "record", "place"]
_NOTHING = pa.table({name: pa.array([], "int64") for name in (_HASH, "id", "at")})


@dataclass(frozen=True)
class Accepted:
    """The events of a batch that are accepted, their totals, and how many others are duplicates."""

    rows: DataFrame
    totals: Totals
    duplicates: int


@contextmanager
def accepted_events(
    valid: DataFrame,
    batch: JudgedBatch,
    batch_id: int,
    lake: Lake,
    known: KnownEvents | None = None,
) -> Iterator[Accepted]:
    """Yield which of the batch's valid events are accepted; what tells them is kept meanwhile.
    `known` is what the run knows of events that were accepted, if it keeps that."""
    mine = _of_batch(valid, lake)
    if batch.records <= SMALL:
        places = _places_in_small(mine, batch_id, lake, known)
        yield _accepted(_without(valid, places, lake), len(places), batch, lake)
        return
    before = accepted_before(batch.minutes, batch_id, lake)
    with _counted(_suspects(mine, before)) as (suspects, count):
        if not count:
            yield _accepted(valid, 0, batch, lake)
            return
        mine, before = _sharing_hash(mine, suspects), _sharing_hash(before, suspects)
        with _counted(duplicate_places(mine, before, lake)) as (of_duplicates, duplicates):
            rows = valid.join(of_duplicates, PLACE, "left_anti")
            yield _accepted(rows, duplicates, batch, lake)


def _places_in_small(
    mine: DataFrame, batch_id: int, lake: Lake, known: KnownEvents | None
) -> list[int]:
    """Return the places of a small batch's duplicates: of one another, and of events that were
    accepted before, which are read where `known` does not say that there are none."""
    own = _collected(mine, lake)
    hashes, minutes = own[_HASH].to_numpy(), own["minute"].to_numpy()
    asked = np.ones(len(hashes), bool)
    if known is not None:
        known.begin(lake)
        hours = minutes // 60
        known.learn(np.unique(hours).tolist(), partial(_hashes_of, lake), partial(_size, lake))
        asked = known.may_hold(hashes, hours)
        known.add(batch_id, hashes, hours)
    before = _collected_before(hashes[asked], minutes[asked], batch_id, lake)
    _, which, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    suspected = (counts[which] > 1) | np.isin(hashes, before[_HASH].to_numpy())
    return duplicates_among(
        own.filter(pa.array(suspected)).select(_FOUND).to_pylist(),
        {(row["id"], row["at"]) for row in before.select(["id", "at"]).to_pylist()},
    )


def duplicates_among(
    events: Iterable[Mapping[str, Any]], before: Collection[tuple[bytes, int]]
) -> list[int]:
    """Return the places of duplicates, as `duplicate_places` does, of events by `id`, `at`,
    `record` and `place`; `before` are the ids and times of those that were accepted before."""
    alike: dict[tuple[bytes, int], list[tuple[bytes, int]]] = {}
    for event in events:
        identity = event["id"], event["at"]
        alike.setdefault(identity, []).append((event["record"], event["place"]))
    return [
        place
        for identity, each in alike.items()
        for _, place in sorted(each)[0 if identity in before else 1 :]
    ]


def _collected(identified: DataFrame, lake: Lake) -> pa.Table:
    """Bring identified events here: hash and minute, and, byte by byte as Spark compares them, id
    and record, the time in microseconds, and the place."""
    at = lake.pipeline.events.event_time
    return identified.select(
        _HASH,
        F.floor(F.unix_seconds(at) / 60).alias("minute"),
        F.col(validation.EVENT_ID).cast("binary").alias("id"),
        F.unix_micros(at).alias("at"),
        F.col(f"{_RECORD}.record_id").cast("binary").alias("record"),
        F.col(f"{_RECORD}.{PLACE}").alias("place"),
    ).toArrow()


def _collected_before(hashes: Hashes, minutes: Hashes, batch_id: int, lake: Lake) -> pa.Table:
    """Bring here the events of these minutes that were accepted before and have such a hash."""
    if not len(hashes):
        return _NOTHING
    before = accepted_before(np.unique(minutes).tolist(), batch_id, lake)
    asked = lake.spark.createDataFrame(pa.table({_HASH: np.unique(hashes)}))
    return _collected(_sharing_hash(before, F.broadcast(asked)), lake)


def _hashes_of(lake: Lake, hours: Sequence[int], most: int | None) -> pa.Table | None:
    """Read the hashes of the accepted events of some hours; None where they are more than `most`,
    which is counted before."""
    rows = lake.spark.table(lake.tables.events.name)
    rows = rows.where(_of_hours([hour * 60 for hour in hours]))
    if most is not None and rows.count() > most:
        return None
    hour = F.floor(F.unix_seconds(lake.pipeline.events.event_time) / 3600)
    hashes = _identified(rows, lake, F.lit(None)).select(
        F.col(_HASH).alias("hash"), hour.cast("int").alias("hour")
    )
    return hashes.toArrow()


@contextmanager
def _counted(frame: DataFrame) -> Iterator[tuple[DataFrame, int]]:
    """Yield a frame, kept, and its size; every task is given what is not large."""
    with cached(frame) as kept:
        count = kept.count()
        yield F.broadcast(kept) if count <= FEW else kept, count


def _accepted(rows: DataFrame, duplicates: int, batch: JudgedBatch, lake: Lake) -> Accepted:
    accepted = totals(rows, lake) if duplicates else batch.events
    return Accepted(rows.drop(PLACE), accepted, duplicates)


def _without(valid: DataFrame, places: Sequence[int], lake: Lake) -> DataFrame:
    """Return the events that are at none of the places."""
    if not places:
        return valid
    if len(places) <= PLACES:
        return valid.where(~F.col(PLACE).isin(list(places)))
    frame = lake.spark.createDataFrame([(place,) for place in places], f"{PLACE} BIGINT")
    return valid.join(F.broadcast(frame), PLACE, "left_anti")


def _of_batch(valid: DataFrame, lake: Lake) -> DataFrame:
    """Return the identities of the batch's events, and which record has each. Events without an id
    are like no other."""
    return _identified(valid, lake, F.struct("record_id", PLACE))


def accepted_before(minutes: Sequence[int], batch_id: int, lake: Lake) -> DataFrame:
    """Return the identities of the events that other batches accepted: at least those of these
    minutes, since 1970."""
    rows = lake.spark.table(lake.tables.events.name).where(_of_hours(minutes))
    if minutes and not _is_small(lake):
        rows = rows.where(_within(minutes, lake.pipeline.events.event_time))
    if not _is_first_try(batch_id, lake):
        rows = rows.where(F.col("batch") != batch_id)  # compiled in each batch, as the ranges are
    no_record = F.expr(f"CAST(NULL AS STRUCT<record_id: STRING, {PLACE}: BIGINT>)")
    return _identified(rows, lake, no_record)


def _identified(events: DataFrame, lake: Lake, record: Column) -> DataFrame:
    identity = _identity(lake)
    with_id = events.where(F.col(validation.EVENT_ID).isNotNull())
    return with_id.select(*identity, F.xxhash64(*identity).alias(_HASH), record.alias(_RECORD))


def _identity(lake: Lake) -> list[str]:
    return [validation.EVENT_ID, lake.pipeline.events.event_time]


def _sharing_hash(rows: DataFrame, others: DataFrame) -> DataFrame:
    return rows.join(others.select(_HASH), _HASH, "left_semi")


def _suspects(mine: DataFrame, before: DataFrame) -> DataFrame:
    """Return the hashes of the batch that come twice, of two events or of one."""
    sides = (rows.select(_HASH, F.lit(n).alias("_mine")) for n, rows in ((1, mine), (0, before)))
    together = reduce(DataFrame.unionByName, sides).groupBy(_HASH)
    counted = together.agg(F.sum("_mine").alias("_mine"), F.count("*").alias("_all"))
    return counted.where("_mine > 0 AND _all > 1").select(_HASH)


def duplicate_places(mine: DataFrame, before: DataFrame, lake: Lake) -> DataFrame:
    """Return the places of the batch's events that are duplicates: of an identity that was accepted
    before all of them, else all but that of the smallest record."""
    # An earlier version could accept one event several times: so many rows, still one identity.
    together = mine.unionByName(before).groupBy(*_identity(lake))
    counted = together.agg(
        (F.count("*") > F.count(_RECORD)).alias("_before"),
        F.min(_RECORD).alias("_first"),
        F.collect_list(f"{_RECORD}.{PLACE}").alias("_places"),
    )
    is_other = f"_before OR {PLACE} != _first.{PLACE}"
    return counted.select("*", F.explode("_places").alias(PLACE)).where(is_other).select(PLACE)


def _is_first_try(batch_id: int, lake: Lake) -> bool:
    """Return whether the events table has nothing of the batch yet; of a catalog that would take
    a query."""
    if lake.place.folder is None:
        return False
    newest = ledger.newest_append(lake, lake.tables.events.name, lake.generation)
    return newest is not None and int((newest.ledger or {})["batch"]) < batch_id


def _is_small(lake: Lake) -> bool:
    """Return whether the events table is known to be small, which only a folder's log tells without
    a query."""
    size = _size(lake)
    return size is not None and size <= LARGE_EVENTS


def _size(lake: Lake) -> int | None:
    name = lake.tables.events.name
    version = lake.newest_version(name)
    return None if version is None else lake.size(name, version)


def _of_hours(minutes: Sequence[int]) -> Column:
    hours = sorted({minute // 60 for minute in minutes})
    return F.col("event_hour").isin([times.at(of_epoch(hour * 3600)) for hour in hours])


def _within(minutes: Sequence[int], event_time: str) -> Column:
    """Return the condition of an accepted event to be of such a minute, or of one between them."""
    each = (
        f"{event_time} >= {literal(of_epoch(first * 60))} "
        f"AND {event_time} < {literal(of_epoch(last * 60 + 60))}"
        for first, last in ranges(minutes, RANGES)
    )
    return F.expr(" OR ".join(f"({one})" for one in each))


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
