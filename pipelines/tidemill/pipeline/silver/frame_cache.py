"""Frames that are kept while they are read more than once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame

from tidemill.lake.session.temporary_conf import temporary_conf

_PLAIN = {"spark.sql.inMemoryColumnarStorage.compressed": "false"}


@contextmanager
def cached(frame: DataFrame) -> Iterator[DataFrame]:
    """Keep a batch's frame while it is read more than once; not compressed, which takes longer than
    to read it thrice."""
    with temporary_conf(frame.sparkSession, _PLAIN):
        frame.persist()
        try:
            yield frame
        finally:
            frame.unpersist()
