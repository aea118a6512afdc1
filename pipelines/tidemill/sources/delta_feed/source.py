"""A Delta table's change data feed as a source: each changed row is a record, as JSON.

A record has the row's columns, `_change_type` (insert, update_preimage, update_postimage, delete),
`_commit_version` and `_commit_timestamp`. The feed is on when the table says
`delta.enableChangeDataFeed`; it is kept as long as the table's old files are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.errors import InputError
from tidemill.sources.files.source import JSON_TIMES

FEED = "delta.enableChangeDataFeed"


@dataclass(frozen=True)
class DeltaFeed:
    """The changes of a table, by its folder or its name; from a version on where one is given."""

    table: str
    from_version: int | None = None

    @property
    def folder(self) -> Path | None:
        """The table's folder; None for a name."""
        return Path(self.table).absolute() if "/" in self.table else None

    def identity(self) -> dict[str, str | int]:
        """Return kind and table."""
        return {"kind": "delta_feed", "table": str(self.folder or self.table)}

    def check(self, *, once: bool) -> None:
        """Raise InputError for a folder that holds no Delta table, or one without the feed; a name
        is asked for when the stream starts."""
        if self.folder is None:
            return
        log = self.folder / "_delta_log"
        if not log.is_dir():
            raise InputError("holds no Delta table", where=str(self.folder), expected="a table")
        if (said := _properties(log)) is not None and said.get(FEED) != "true":
            raise InputError(
                "its change data feed is off",
                where=str(self.folder),
                expected=f"ALTER TABLE ... SET TBLPROPERTIES ({FEED} = true), before its changes",
            )

    def check_new(self, since: datetime) -> None:
        """Accept: the stream itself reads the log."""

    def ready(self) -> bool:
        """Return True: a table has its columns from the beginning."""
        return True

    def stream(self, spark: SparkSession) -> DataFrame:
        """Return the changes as a stream: topic is the table, source_ts the commit's time, offset
        its version, record_id a uuid."""
        reader = spark.readStream.format("delta").option("readChangeFeed", "true")
        if self.from_version is not None:
            reader = reader.option("startingVersion", self.from_version)
        rows = reader.load(str(self.folder)) if self.folder else reader.table(self.table)
        return rows.select(
            F.expr("uuid()").alias("record_id"),
            F.to_json(F.struct("*"), JSON_TIMES).alias("raw_payload"),
            F.lit(str(self.folder or self.table)).alias("topic"),
            F.lit(None).cast("int").alias("partition"),
            F.col("_commit_version").alias("offset"),
            F.col("_commit_timestamp").alias("source_ts"),
        )


def _properties(log: Path) -> dict[str, str] | None:
    """Return the properties that the newest commit to name them says; None where the commits that
    are kept as files do not tell."""
    for commit in sorted(log.glob("[0-9]*.json"), reverse=True):
        for line in commit.read_text(encoding="utf-8").splitlines():
            if "metaData" in (action := json.loads(line)):
                return dict(action["metaData"].get("configuration", {}))
    return None
