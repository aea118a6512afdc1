"""A lake of purchases that takes two columns of customers, fed by calling the batch functions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import DataFrame, SparkSession

from lakes import BRONZE, NOW
from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Clock, Place
from tidemill.lake import times
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.open import open_for_writing
from tidemill.pipeline.silver.lookup import Readings
from tidemill.pipeline.steps import clean_step, dimension_step, feature_step

WORDS = yaml.safe_load(
    """
pipeline: purchases
source: {kind: files, input: purchases}
dimensions:
  - name: customer
    keys: [customer_id]
    schema: {customer_id: string, segment: "string?", credit: bigint}
    source: {kind: files, input: changes}
    history: type2
enrich:
  - dimension: customer
    keys: {buyer: customer_id}
    columns: {segment: segment, credit: credit}
views:
  - name: spending
    keys: [buyer]
    event_time: at
    schema: {buyer: string, amount: bigint, segment: "string?", credit: "bigint?"}
    features:
      - count: {by: {segment: [basic, gold]}}
        over: [1h, 1d]
      - sum: {of: amount}
        where: segment = 'gold'
        over: [1d]
        name: gold
      - max: credit
        over: [1d]
  - name: by_segment
    keys: [group]
    event_time: at
    schema: {buyer: string, amount: bigint, segment: "string?", credit: "bigint?"}
    select:
      group: {string: "coalesce(segment, 'unknown')"}
    features:
      - count: {}
        over: [1d]
"""
)


def declared(**words: Any) -> PipelineDefinition:
    return PipelineDefinition.model_validate({**WORDS, **words})


def with_history(kind: str) -> PipelineDefinition:
    return declared(dimensions=[{**WORDS["dimensions"][0], "history": kind}])


def purchase(number: int, buyer: str, at: datetime, amount: int = 1) -> str:
    return json.dumps(
        {"event_id": f"e{number}", "buyer": buyer, "at": at.isoformat(), "amount": amount}
    )


@dataclass
class DimensionLake:
    """An open lake of purchases and customers."""

    lake: Lake
    batch: int = -1
    change_batch: int = -1
    records: int = 0

    @classmethod
    def new(cls, spark: SparkSession, root: Path, definition: PipelineDefinition) -> DimensionLake:
        return cls(open_for_writing(spark, Place(root), definition))

    @property
    def spark(self) -> SparkSession:
        return self.lake.spark

    def bronze(self, payloads: Iterable[str | None]) -> DataFrame:
        rows = []
        for text in payloads:
            self.records += 1
            rows.append((f"r{self.records:06d}", text, "t", 0, self.records, NOW, NOW, NOW.date()))
        return self.spark.createDataFrame(rows, BRONZE).coalesce(1)

    def change(self, records: Iterable[str | None], batch: int | None = None) -> int:
        """One batch of the dimension."""
        self.change_batch = self.change_batch + 1 if batch is None else batch
        rows = self.bronze(records)
        dimension_step.dimension_batch(rows, self.change_batch, lake=self.lake, name="customer")
        return self.change_batch

    def clean(
        self, payloads: Iterable[str], batch: int | None = None, readings: Readings | None = None
    ) -> None:
        """One batch of clean."""
        self.batch = self.batch + 1 if batch is None else batch
        rows = self.bronze(payloads)
        clean_step.clean_batch(rows, self.batch, lake=self.lake, readings=readings)

    def step(self, payloads: Sequence[str]) -> None:
        """One batch of clean and feature."""
        self.clean(payloads)
        events = self.table("purchases_events").where(f"batch = {self.batch}")
        feature_step.feature_batch(
            events, self.batch, lake=self.lake, clock=Clock(NOW), follows="event"
        )

    def table(self, name: str) -> DataFrame:
        return self.spark.table(name)

    def rows(self, name: str) -> list[dict[str, Any]]:
        return [row.asDict() for row in times.collect(self.table(name))]

    def newest(self) -> dict[str, dict[str, Any]]:
        """What the dimension says of each key that is not deleted, now."""
        now = [r for r in self.rows("customer_dimension") if not r["deleted"]]
        live = [r for r in now if r.get("valid_to") is None]
        assert len(live) == len({row["customer_id"] for row in live})
        return {r["customer_id"]: {n: r[n] for n in ("segment", "credit")} for r in live}

    def history(self) -> set[tuple]:
        """Every version that held in some time."""
        names = ("customer_id", "segment", "credit", "valid_from", "valid_to")
        rows = [r for r in self.rows("customer_dimension") if not r["deleted"]]
        return {tuple(r[n] for n in names) for r in rows if r["valid_from"] != r["valid_to"]}

    def ledgers(self, table: str) -> list[dict[str, Any]]:
        """The ledgers of a table's commits, newest first."""
        commits = ledger.commits(self.spark, table, None)
        return [dict(c.ledger) for c in commits if c.ledger]

    def refused(self) -> list[list[str]]:
        rows = self.table("customer_quarantine").orderBy("record_id").collect()
        return [list(row["reasons"]) for row in rows]
