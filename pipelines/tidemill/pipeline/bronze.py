"""The bronze layer: records as they came, and where they came from."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Clock
from tidemill.lake import tables, times

POSITION = frozenset({"partition", "offset"})
"""Columns that a source may leave out: Delta reads null where a file has none of a column, and to
write nulls took a tenth of the time of landing files."""


def stamped(records: DataFrame, pipeline: PipelineDefinition, clock: Clock) -> DataFrame:
    """Return a source's records with `ingested_at`, the batch's time, in the bronze table's
    columns, those of `POSITION` where the source has them.

    Written through Spark's own Delta sink, so the time is written once: a batch that is run again
    after a crash is skipped by Delta, and every age that is checked later is counted from the same
    moment.
    """
    if clock.at:
        now, today = times.at(clock.at), F.to_date(times.at(clock.at))
    else:  # a day of its own: the one of the batch's time would be counted for each record
        now, today = F.current_timestamp(), F.current_date()
    absent = POSITION - set(records.columns)
    names = [name for name in tables.of(pipeline).bronze.column_names if name not in absent]
    return records.withColumns({"ingested_at": now, "ingest_date": today}).select(*names)
