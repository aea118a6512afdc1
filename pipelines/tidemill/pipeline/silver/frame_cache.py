"""Frames that are kept while they are read more than once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame


@contextmanager
def cached(frame: DataFrame) -> Iterator[DataFrame]:
    """Keep a batch's frame while it is read more than once."""
    frame.persist()
    try:
        yield frame
    finally:
        frame.unpersist()
