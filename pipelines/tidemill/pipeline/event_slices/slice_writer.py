"""Events as slices into a store: a key's minutes in an hour at once, here or in Spark's tasks.

events ──buckets.sql──► minutes of keys ──by (key, hour)──► KeyHour ──► store
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.lake.times import of_epoch
from tidemill.online import packing
from tidemill.online.open_store import open_store
from tidemill.online.row_writer import store_error
from tidemill.online.slices import slice_records
from tidemill.online.slices.slice_records import KeyHour, Parts
from tidemill.online.slices.slice_state import SliceState
from tidemill.online.slices.slice_values import HOUR, Merger
from tidemill.online.store_address import StoreAddress
from tidemill.pipeline.silver import minute_buckets

if TYPE_CHECKING:
    import pyarrow as pa

AT_ONCE = 1_000
_NEWEST = "newest BIGINT"


@dataclass(frozen=True)
class SliceWriter:
    """Writes slices as those of a state's layout."""

    address: StoreAddress
    state: SliceState

    def add(self, events: DataFrame, batch: int) -> datetime | None:
        """Write, from this process, what a batch's events add; return the start of their newest
        bucket, None where no event has a key."""
        rows = self._rows(events, batch).toArrow()
        store = open_store(self.address, writes=True)
        newest: int | None = None
        try:
            for one in rows.to_batches():
                newest = self._written(store.write_slices, one, batch, False, newest)
        finally:
            store.close()
        return of_epoch(newest)

    def merge(self, events: DataFrame, through: int) -> datetime | None:
        """Write, by Spark's tasks, whole hours of events in the place of what stands of batches up
        to one; return the start of their newest bucket. StoreError where the store does not take
        them."""
        found = self._rows(events, through).mapInArrow(_task(self, through), _NEWEST)
        try:
            newest: int | None = found.agg({"newest": "max"}).collect()[0][0]
        except PySparkException as error:
            if known := store_error(error):
                raise known from error
            raise
        return of_epoch(newest)

    def _rows(self, events: DataFrame, batch: int) -> DataFrame:
        """Return a row for each key and hour, with its minutes in a list."""
        view = self.state.declared
        minutes = minute_buckets.buckets_of(events, batch, view)
        parts = [F.col(p.name).alias(f"part{n}") for n, p in enumerate(view.partials)]
        minute = F.struct(F.unix_seconds("bucket_start").alias("minute"), *parts)
        hour = F.unix_seconds("bucket_hour").alias("hour")
        return minutes.groupBy(*view.keys, hour).agg(F.collect_list(minute).alias("minutes"))

    def _written(
        self,
        write: Callable[[SliceState, Iterable[KeyHour]], None],
        rows: pa.RecordBatch,
        batch: int,
        merges: bool,
        newest: int | None,
    ) -> int | None:
        """Write the rows; return the second of the newest minute, of them and before."""
        hours = self._hours(rows)
        for start in range(0, len(hours), AT_ONCE):
            part = hours[start : start + AT_ONCE]
            merger = Merger(self.state.declared, ())
            write(self.state, [_key_hour(merger, *one, batch, merges) for one in part])
        seconds = [max(minutes) for _, _, minutes in hours]
        return max([*seconds, *([] if newest is None else [newest])], default=None)

    def _hours(self, rows: pa.RecordBatch) -> list[tuple[str, int, dict[int, Parts]]]:
        *keys, hours, minutes = (column.to_pylist() for column in rows.columns)
        merger = Merger(self.state.declared, ())
        return [
            (packing.key_text(key), hour // HOUR, _by_minute(merger, of))
            for key, hour, of in zip(zip(*keys, strict=True), hours, minutes, strict=True)
        ]


def _by_minute(merger: Merger, listed: Iterable[Mapping[str, Any]]) -> dict[int, Parts]:
    """Return the partials of each minute: one has several rows where their sum is too large."""
    found: dict[int, list[Parts]] = {}
    for row in listed:
        minute, *parts = row.values()
        found.setdefault(minute, []).append(parts)
    return {m: rows[0] if len(rows) == 1 else merger.merged(rows) for m, rows in found.items()}


def _key_hour(
    merger: Merger, key: str, hour: int, minutes: dict[int, Parts], batch: int, merges: bool
) -> KeyHour:
    if not merges:
        return slice_records.added(key, hour, batch, minutes)
    whole = merger.merged(list(minutes.values()))
    return slice_records.merged(key, hour, batch, minutes, whole)


def _task(
    writer: SliceWriter, through: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what a Spark task does: write its rows, and yield the newest minute among them."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        store, newest = open_store(writer.address, writes=True), None
        try:
            for rows in batches:
                newest = writer._written(store.write_slices, rows, through, True, newest)
        finally:
            store.close()
        yield pa.RecordBatch.from_pydict({"newest": pa.array([newest], pa.int64())})

    return write
