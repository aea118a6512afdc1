"""The Python data source for Spark: `spark.readStream.format("kinesis_py")`.

It needs no other part of Tidemill: register it with `register_kinesis(spark)`. Spark keeps one
reader for each query in a process beside the driver, which plans; tasks have readers of their own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from tidemill.sources.kinesis.batch_plan import BatchPlan, Limits, plan_batch
from tidemill.sources.kinesis.read_options import LATEST, ReadOptions
from tidemill.sources.kinesis.service import Service, StreamSummary, connect
from tidemill.sources.kinesis.shard_offset import TRIM_HORIZON, StreamOffset, time_text
from tidemill.sources.kinesis.shard_range import (
    SCHEMA,
    KeptRecords,
    ShardRange,
    kept,
    ranges,
    read,
)

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = "kinesis_py"
SUMMARY_FOR = 600.0
"""Seconds after which the stream's retention is asked for again."""


def register_kinesis(spark: SparkSession) -> None:
    """Make the formats `kinesis_py` and `tidemill_kinesis`, which are one, known to a session:
    `spark.readStream.format("kinesis_py")` reads an Amazon Kinesis stream, on any Spark 4.2."""
    spark.dataSource.register(KinesisDataSource)
    spark.dataSource.register(TidemillKinesisDataSource)


class KinesisDataSource(DataSource):
    """Spark's entry to Kinesis; its options are those of `ReadOptions.of`."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.readStream.format`."""
        return FORMAT

    def schema(self) -> str:
        """Return the columns of a record: those of Databricks' format `kinesis`, and the number of
        a record that its producer had put together with others."""
        return SCHEMA

    def streamReader(self, schema: StructType) -> KinesisStreamReader:
        """Return the reader; InputError for an option that is wrong."""
        return KinesisStreamReader(ReadOptions.of(self.options))


class TidemillKinesisDataSource(KinesisDataSource):
    """The same by the name that says whose it is."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.readStream.format`."""
        return "tidemill_kinesis"


@dataclass(frozen=True)
class _Planned:
    """The batch that was planned last."""

    start: Mapping[str, Any]
    end: Mapping[str, Any]
    plan: BatchPlan


class KinesisStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches and reads their records; made anew from its options in every process."""

    def __init__(self, options: ReadOptions):
        """Read what the options name; Kinesis is asked nothing yet."""
        self.options = options
        self.until: datetime | None = None
        self._planned: _Planned | None = None
        self._asked: tuple[float, StreamSummary] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Travel to a task as the options alone."""
        return {"options": self.options, "until": None, "_planned": None, "_asked": None}

    @cached_property
    def service(self) -> Service:
        """The stream's service, of this process."""
        return connect(self.options.address)

    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query begins; for `latest`, by the service's clock."""
        return self._first.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return how many records a batch may have; the limit of bytes holds beside it."""
        return ReadMaxRows(self.options.max_records)

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of the run: what has arrived by now, by the service's clock of whole
        seconds."""
        self.until = self.service.summary().at + timedelta(seconds=1)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return where the next batch ends: `start` itself where nothing is new."""
        plan = plan_batch(
            self.service,
            StreamOffset.of(start),
            self._limits(limit),
            self._summary(),
            fails=self.options.fail_on_data_loss,
        )
        end = plan.end.to_json()
        self._planned = _Planned(start, end, plan)
        return end

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return how many milliseconds the planned batch is behind the newest records, of all
        shards and of each, for the query's progress (`sources[].latestOffset`)."""
        if self._planned is None:
            return None
        behind = dict(self._planned.plan.behind)
        return {"millisBehindLatest": max(behind.values(), default=0), "shards": behind}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the batch's tasks: with the records of the plan, if it kept them, else parts of
        shards."""
        planned, self._planned = self._planned, None
        if planned and (planned.start, planned.end) == (start, end) and planned.plan.records:
            return kept(self.options.address.stream, planned.plan.records)
        return ranges(StreamOffset.of(start), StreamOffset.of(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of a task as Arrow batches."""
        if isinstance(partition, KeptRecords):
            return partition.read()
        assert isinstance(partition, ShardRange)
        return read(self.service, partition, fails=self.options.fail_on_data_loss)

    @cached_property
    def _first(self) -> StreamOffset:
        stream = self._summary()
        start = self.options.starting_position
        if start == LATEST:
            start = time_text(stream.at)
        elif start != TRIM_HORIZON:
            start = time_text(datetime.fromisoformat(start.replace("Z", "+00:00")))
        return StreamOffset(start, time_text(stream.created))

    def _limits(self, limit: ReadLimit) -> Limits:
        if isinstance(limit, ReadAllAvailable):
            return Limits(until=self.until)
        if isinstance(limit, ReadMaxRows):
            return Limits(limit.max_rows, self.options.max_bytes, self.until)
        raise TypeError(f"Kinesis is limited by rows, not by {limit}")

    def _summary(self) -> StreamSummary:
        """Return what is known of the stream, asked for seldom: it may be asked 20 times a second
        by all users of an account together."""
        asked, summary = self._asked or (0.0, None)
        age = time.monotonic() - asked
        if summary is None or age > SUMMARY_FOR:
            summary, age = self.service.summary(), 0.0
            self._asked = (time.monotonic(), summary)
        return summary._replace(at=summary.at + timedelta(seconds=age))
