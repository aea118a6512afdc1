"""An error of Spark's in a batch function, told with the table, the batch and what to do.

A streaming query hands on the text of the error alone (see `failures`), so the sentence is made
where the batch is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from tidemill.errors import QueryError
from tidemill.lake.catalog import Lake
from tidemill.pipeline.failures import explained, sentence


@contextmanager
def of_batch(lake: Lake, query: str, batch: int, table: str) -> Iterator[None]:
    """Have an error of Spark's in a batch function name the table, the batch and what to do."""
    try:
        yield
    except PySparkException as error:
        known = explained(error, query, lake.place)
        if type(known) is not QueryError or known.where:
            raise known from error
        raise QueryError(
            f"batch {batch} of {query} failed: {sentence(error)}",
            where=table,
            expected="what the message asks for, then run again: nothing was lost, and the same "
            "batch comes first; see 'A batch that fails' in docs/operations.md",
        ) from error
