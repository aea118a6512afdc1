"""Rows of a Spark frame into a store: packed and written a batch at a time, where the rows are.

Few rows come to this process. Many are written by Spark's tasks, each with a client of its own,
which takes its credentials from its own environment.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tidemill.config.settings import micros_of
from tidemill.errors import StoreError
from tidemill.online import packing
from tidemill.online.open_store import open_store
from tidemill.online.published_view import PublishedView
from tidemill.online.store import Entry, OnlineStore
from tidemill.online.store_address import StoreAddress

if TYPE_CHECKING:
    import pyarrow as pa

HERE = 20_000  # rows that this process writes itself: starting tasks of Python takes longer
AT_ONCE = 1_000
_COUNTS = "written BIGINT"


@dataclass(frozen=True)
class RowWriter:
    """Writes rows as those of a state: its version, its as_of, its layout.

    After the `deadline`, a time of `time.time()`, it gives up: a store that answers each call just
    in time would hold up a batch for all of them.
    """

    address: StoreAddress
    state: PublishedView
    deadline: float = math.inf

    def write(self, rows: DataFrame, expected: int) -> int:
        """Write the rows, of which there are about so many; return how many the store took.

        StoreError where it does not answer; the rows that it has by then do no harm.
        """
        if expected <= HERE:
            return self.write_here(rows.toArrow())
        counts = rows.mapInArrow(_task(self), _COUNTS)
        try:
            return int(counts.agg({"written": "sum"}).collect()[0][0] or 0)
        except PySparkException as error:
            if known := store_error(error):
                raise known from error
            raise

    def write_here(self, rows: pa.Table) -> int:
        """Write the rows in this process; return how many the store took."""
        store = open_store(self.address, writes=True)
        try:
            return sum(self._written(store, rows.to_batches()))
        finally:
            store.close()

    def _written(self, store: OnlineStore, batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
        for batch in batches:
            entries = self.entries(batch)
            for start in range(0, len(entries), AT_ONCE):
                if time.time() > self.deadline:
                    raise StoreError(
                        "rows were not written within the time limit of a batch's publish",
                        where=self.address.url,
                        expected="a quicker store, a larger `within`, or `tidemill publish`, which "
                        "has no limit",
                    )
                yield store.write(self.state, entries[start : start + AT_ONCE])

    def entries(self, batch: pa.RecordBatch) -> list[Entry]:
        """Return the rows of a batch, whose columns are keys, features and `deleted`, as a store
        takes them."""
        state, count = self.state, len(self.state.keys)
        head = packing.head(state.epoch, state.gold_version)
        as_of = micros_of(state.as_of)
        columns = [column.to_pylist() for column in batch.columns]
        keys, features, deleted = columns[:count], columns[count:-1], columns[-1]
        return [
            Entry(packing.key_text(key), packing.pack_row(head, as_of, None if gone else values))
            for key, values, gone in zip(
                zip(*keys, strict=True), zip(*features, strict=True), deleted, strict=True
            )
        ]


def _task(
    writer: RowWriter,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what a Spark task does: write its batches, and yield how many rows were taken."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        store = open_store(writer.address, writes=True)
        try:
            written = sum(writer._written(store, batches))
        finally:
            store.close()
        yield pa.RecordBatch.from_pydict({"written": [written]})

    return write


def store_error(error: PySparkException) -> StoreError | None:
    """Return the store's error that a Spark task ended with; None for another error."""
    _, found, rest = str(error).partition("tidemill.errors.StoreError: ")
    if not found:
        return None
    return StoreError(rest.splitlines()[0], expected="the store's own error, in a task of Spark")
