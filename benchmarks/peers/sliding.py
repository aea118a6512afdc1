"""Spark's own sliding `window()` in update mode: one stream for each window length.

    events ──window(w, every minute)──► counts per (key, window) ──changed──► MERGE into a table of
                                                                              windows
    reader: the rows whose window ends at as_of

An event of minute m is in every window that ends at m + 1 min ... m + w: in 60 + 720 + 1,440 of
them. Spark counts each window by itself and emits a window when an event comes into it, so the
windows that end later than now, and hold what will not have left by then, are emitted long before
they are asked for. That is why the table must keep them all: where only the newest window of a key
is kept, a key without new events never decays. With all of them a reader gets the exact counts.

So that it finishes, it counts only the keys of `--profiles` profiles (one: 50 keys), and may be
asked for some of the lengths only, by `--windows`; both are told in part.json. The watermark is the
newest event: a late event is dropped only from windows that ended before, which nobody asks for any
more. The result is the Delta tables; picking the rows at as_of, for the comparison, is not
measured.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import peer
import pyarrow as pa
import work
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from tick import COLUMNS, TYPES, WINDOWS

from tidemill.lake.session.session import local_session

SCHEMA = "profile_id STRING, gti STRING, event_type STRING, event_timestamp TIMESTAMP"
KEYS = ("profile_id", "gti")
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROFILE = "CAST(substr(profile_id, 9) AS INT)"  # profile-<number>


@dataclass
class Sliding:
    """Streams over a folder into which a tick puts its file."""

    spark: SparkSession
    events: Path
    folder: Path
    windows: list[str]
    keys: str
    queries: list[StreamingQuery] = field(default_factory=list)

    def start(self) -> None:
        shutil.copytree(self.events, self.folder / "ready")
        (self.folder / "in").mkdir()
        for window in self.windows:
            self.spark.sql(
                f"CREATE TABLE windows_{window} (profile_id STRING, gti STRING, ends TIMESTAMP, "
                f"{', '.join(f'{kind} BIGINT' for kind in TYPES)}) USING delta "
                f"LOCATION '{self.folder}/windows_{window}'"
            )
            counts = counted(self.spark, self.folder / "in", window, self.keys)
            writer = counts.writeStream.outputMode("update").foreachBatch(merge_into(window))
            writer = writer.option("checkpointLocation", f"{self.folder}/checkpoint_{window}")
            self.queries.append(writer.start())

    def bring(self, batch: int) -> dict[str, Any]:
        before = work.so_far(self.spark, self.folder)
        name = f"{batch}.parquet"
        os.link(self.folder / "ready" / name, self.folder / "in" / name)
        for query in self.queries:
            query.processAllAvailable()
        return work.since(self.spark, self.folder, before)

    def result(self, batch: int) -> pa.Table:
        """Return the rows whose window ends at the end of the newest minute of all events."""
        newest = self.spark.read.parquet(str(self.folder / "in")).agg(F.max("event_timestamp"))
        (as_of,) = newest.select(
            F.date_trunc("minute", F.col("max(event_timestamp)")) + F.expr("INTERVAL 1 MINUTE")
        ).collect()[0]
        parts = [
            self.spark.table(f"windows_{window}")
            .where(F.col("ends") == as_of)
            .select(*KEYS, *(F.col(kind).alias(f"{kind}_count_{window}") for kind in TYPES))
            for window in self.windows
        ]
        joined = parts[0]
        for part in parts[1:]:
            joined = joined.join(part, list(KEYS), "full")
        return joined.toArrow()


def counted(spark: SparkSession, folder: Path, window: str, keys: str) -> DataFrame:
    """Return counts per key and window, from a stream of files."""
    events = spark.readStream.schema(SCHEMA).parquet(str(folder)).where(keys)
    return (
        events.withWatermark("event_timestamp", "0 seconds")
        .groupBy(*KEYS, F.window("event_timestamp", f"{WINDOWS[window]} minutes", "1 minute"))
        .agg(*(F.count_if(F.col("event_type") == kind).alias(kind) for kind in TYPES))
        .select(*KEYS, F.col("window.end").alias("ends"), *TYPES)
    )


def merge_into(window: str) -> Any:
    def merge(batch: DataFrame, _: int) -> None:
        batch.createOrReplaceTempView("changed")
        batch.sparkSession.sql(
            f"MERGE INTO windows_{window} AS there USING changed "
            "ON there.profile_id = changed.profile_id AND there.gti = changed.gti "
            "AND there.ends = changed.ends "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ).collect()

    return merge


def main() -> None:
    options = peer.arguments(__doc__ or "")
    options.add_argument("--profiles", type=int, default=1, help="count the keys of so many")
    options.add_argument("--windows", nargs="+", choices=WINDOWS, default=list(WINDOWS))
    asked = options.parse_args()
    keys = f"{PROFILE} BETWEEN 1 AND {asked.profiles}"
    columns = [name for name in COLUMNS if name.rsplit("_", 1)[1] in asked.windows]
    asked.out.mkdir(parents=True, exist_ok=True)
    peer.Part(columns, keys).write(asked.out)
    with tempfile.TemporaryDirectory(prefix="tidemill-peers-") as folder:
        spark = local_session(extra={"spark.sql.streaming.stateStore.providerClass": ROCKSDB})
        sliding = Sliding(spark, asked.events, Path(folder), asked.windows, keys)
        sliding.start()
        peer.run(sliding, asked.ticks, asked.out)
        for query in sliding.queries:
            query.stop()
        spark.stop()


if __name__ == "__main__":
    main()
