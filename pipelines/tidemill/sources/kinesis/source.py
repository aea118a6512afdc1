"""A Kinesis stream as a source: its records as a Spark stream, and what is wrong with it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime, timezone

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.sources.kinesis.data_source import FORMAT, register_kinesis
from tidemill.sources.kinesis.read_options import LATEST, ReadOptions
from tidemill.sources.kinesis.service import connect
from tidemill.sources.kinesis.shard_offset import TRIM_HORIZON, time_of

CHECK_PATIENCE = 10.0
"""Seconds for which the check at start waits for an answer."""


@dataclass(frozen=True)
class Kinesis:
    """The records of one stream. On Databricks its own format reads them, elsewhere ours."""

    options: ReadOptions
    patience: float = CHECK_PATIENCE

    def identity(self) -> dict[str, str | int]:
        """Return kind, stream and region; through which endpoint it is reached may change."""
        service = connect(self.options.address)
        return {"kind": "kinesis", "stream": self.options.address.stream, "region": service.region}

    def check(self, *, once: bool) -> None:
        """Raise InputError for a stream that is not there or may not be read, SourceError where
        nothing answers within CHECK_PATIENCE. A stream without records is none."""
        service = connect(self.options.address, self.patience)
        service.summary()
        for shard in service.shards()[:1]:
            service.page(service.iterator(shard.name, TRIM_HORIZON, None), 1)

    def check_new(self, since: datetime) -> None:
        """Accept: the stream's reader itself says what is wrong."""

    def ready(self) -> bool:
        """Return True: an empty stream is read too."""
        return True

    def stream(self, spark: SparkSession) -> DataFrame:
        """Return the stream's records.

        topic is the stream, partition the shard's number, record_id stream, shard and sequence
        number. offset is null: a sequence number has up to 56 digits, more than a BIGINT.
        """
        if "DATABRICKS_RUNTIME_VERSION" in os.environ:
            rows = spark.readStream.format("kinesis").options(**self._of_databricks()).load()
            return _records(rows.withColumn("subSequenceNumber", F.lit(None).cast("bigint")))
        register_kinesis(spark)
        return _records(spark.readStream.format(FORMAT).options(**self.options.to_spark()).load())

    def _of_databricks(self) -> dict[str, str]:
        """Return the options of the format that Databricks Runtime brings; it has its own limits of
        a batch."""
        address, start = self.options.address, self.options.starting_position
        if start not in {TRIM_HORIZON, LATEST}:
            at = time_of(start).astimezone(timezone.utc).isoformat(timespec="seconds")
            start = json.dumps({"at_timestamp": at, "format": "yyyy-MM-dd'T'HH:mm:ssxxx"})
        options = {
            "streamName": address.stream,
            "region": address.region,
            "endpointUrl": address.endpoint,
            "initialPosition": start if "{" in start else start.lower(),
        }
        return {name: value for name, value in options.items() if value is not None}


def _records(rows: DataFrame) -> DataFrame:
    """Return rows of either format as records; data that is no UTF-8 keeps its bytes."""
    place = F.concat_ws("/", "stream", "shardId", "sequenceNumber", "subSequenceNumber")
    return rows.select(
        place.alias("record_id"),
        F.col("data").cast("string").alias("raw_payload"),
        F.col("stream").alias("topic"),
        F.expr("TRY_CAST(regexp_extract(shardId, '(\\\\d+)$') AS INT)").alias("partition"),
        F.lit(None).cast("bigint").alias("offset"),
        F.col("approximateArrivalTimestamp").alias("source_ts"),
    )
