"""Rows that a statement reads under a name of their own, and who answers the statement.

    statement, values, {name: Relation} ──► RowReader ──► Answer

Spark answers by default. Who opens a folder to read may give the lake another reader, which answers
what it answers as Spark does, and asks Spark the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from tidemill.lake import times
from tidemill.lake.parameters import ask

Record = Mapping[str, Any]  # a row: times in UTC, a struct as a dict


@dataclass(frozen=True)
class Relation:
    """Rows of a table: of a version, else of the newest; only those of batches before one, where
    that is said; or, with `changes`, its change data feed from a version to another, both
    included."""

    table: str
    version: int | None = None
    before_batch: int | None = None
    changes: tuple[int, int] | None = None

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the rows; the session knows the table by name."""
        reader = spark.read
        if self.version is not None:
            reader = reader.option("versionAsOf", self.version)
        if self.changes is not None:
            first, last = self.changes
            reader = reader.option("readChangeFeed", "true")
            reader = reader.option("startingVersion", first).option("endingVersion", last)
        rows = reader.table(self.table)
        if self.before_batch is not None:
            rows = rows.where(F.col("batch") < self.before_batch)
        return rows


@dataclass(frozen=True)
class Answer:
    """The rows of a statement, and which engine gave them: `spark` or `duckdb`."""

    rows: list[Record]
    engine: str


class RowReader(Protocol):
    """Who answers statements that only read."""

    def answer(
        self, text: str, values: Mapping[str, Any], relations: Mapping[str, Relation]
    ) -> Answer:
        """Return what the statement yields: `:name` stands for `values[name]`, the table `name`
        for the rows of `relations[name]`."""


@dataclass(frozen=True)
class SparkReader:
    """Asks Spark, whose session starts with the first question."""

    session: Callable[[], SparkSession]

    def answer(
        self, text: str, values: Mapping[str, Any], relations: Mapping[str, Relation]
    ) -> Answer:
        """Return what the statement yields."""
        spark = self.session()
        frames = {name: relation.frame(spark) for name, relation in relations.items()}
        rows = times.collect(ask(spark, text, values, frames))
        return Answer([_record(row) for row in rows], "spark")


def _record(row: Row) -> Record:
    return row.asDict(recursive=True)
