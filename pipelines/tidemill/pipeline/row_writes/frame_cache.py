"""Frames that are kept while they are read more than once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame

from tidemill.lake.catalog import Lake
from tidemill.lake.parameters import is_connect
from tidemill.lake.session.temporary_conf import temporary_conf

# Spark keeps with a checkpoint what its rows are known to fulfil, in each of its equal forms: of a
# view with hundreds of columns more than the memory holds.
_WITHOUT_CONSTRAINTS = {"spark.sql.constraintPropagation.enabled": "false"}
_PLAIN = {"spark.sql.inMemoryColumnarStorage.compressed": "false"}
_READ_AS_THEY_ARE = {"spark.databricks.delta.merge.materializeSource": "none"}


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


@contextmanager
def checkpointed(frame: DataFrame) -> Iterator[DataFrame]:
    """Keep a frame's rows, as its first reader makes them, and not how they are made: rows that are
    lost, as a cluster's may be, fail who reads them, and are never made again, otherwise.

    They stay where tasks run. Spark Connect removes them when Python has no name for them.
    """
    with temporary_conf(frame.sparkSession, _WITHOUT_CONSTRAINTS):
        rows = frame.localCheckpoint(eager=False)
    try:
        yield rows
    finally:
        if not is_connect(frame.sparkSession):  # `unpersist` is of what `persist` keeps
            plan: Any = rows._jdf.queryExecution().analyzed()
            plan.rdd().unpersist(False)


@contextmanager
def kept_for_merge(frame: DataFrame, lake: Lake) -> Iterator[DataFrame]:
    """Keep the rows that a MERGE reads. Delta would keep them once more, to begin again when a
    machine is lost with some of them; in a folder, where there is one machine, it reads them as
    they are. Rows that are only cached would be planned anew when the table that they come from
    changes."""
    if lake.place.folder is None:
        with cached(frame) as rows:
            yield rows
        return
    with temporary_conf(frame.sparkSession, _READ_AS_THEY_ARE), checkpointed(frame) as rows:
        yield rows
