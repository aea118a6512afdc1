"""Lakes of shopping carts, for valid records that an expression or a sum cannot take."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakes import BRONZE, NOW
from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Clock, Place, iso
from tidemill.features import Feature, FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.open import open_for_writing
from tidemill.operations import reconcile
from tidemill.pipeline.gold import refresh as gold
from tidemill.pipeline.silver import minute_buckets
from tidemill.pipeline.steps import clean_step, feature_step

SCHEMA = {"k": "string", "x": "bigint", "s": "string", "d": "double"}
Row = tuple[str, int, datetime]


def view(name: str, features: Sequence[Feature], **words: Any) -> FeatureView:
    return FeatureView(
        name=name, keys=["k"], event_time="at", schema=SCHEMA, features=features, **words
    )


def payload(k: str, x: int, at: datetime, s: str = "1", d: float = 1.0) -> str:
    return json.dumps({"k": k, "x": x, "at": iso(at), "s": s, "d": d})


@dataclass
class Carts:
    """An open lake, its batches called as the streams would."""

    lake: Lake
    batch: int = -1
    records: int = 0

    @classmethod
    def new(
        cls, spark: SparkSession, root: Path, *views: FeatureView, refresh: str = "incremental"
    ) -> Carts:
        definition = PipelineDefinition(
            pipeline="carts", source={"kind": "files"}, views=views, refresh=refresh
        )
        return cls(open_for_writing(spark, Place(root), definition))

    @property
    def spark(self) -> SparkSession:
        return self.lake.spark

    def step(self, payloads: Iterable[str], batch: int | None = None) -> None:
        """A batch through clean and feature; the same one again where `batch` says so."""
        self.batch = self.batch + 1 if batch is None else batch
        rows = []
        for text in payloads:
            self.records += 1
            rows.append((f"r{self.records:04d}", text, "t", 0, self.records, NOW, NOW, NOW.date()))
        bronze = self.spark.createDataFrame(rows, BRONZE).coalesce(1)
        clean_step.clean_batch(bronze, self.batch, lake=self.lake)
        self.feature(self.batch)

    def feature(self, batch: int) -> None:
        events = self.spark.table("carts_events").where(F.col("batch") == batch)
        clock = Clock(NOW)
        feature_step.feature_batch(events, batch, lake=self.lake, clock=clock, follows="event")

    def refresh(self, as_of: datetime, place: int = 0) -> gold.Refreshed:
        found = self.lake.pipeline.views[place]
        there = minute_buckets.bucketed(self.lake, found)
        return gold.refresh(self.lake, found, as_of=as_of, batch=there.batch, buckets=there.commits)

    def counts(self) -> tuple[int, int, int, int]:
        """Events, accepted, quarantined and duplicates of all batches."""
        names = ("events", "accepted", "quarantined", "duplicates")
        told = [c.ledger for c in self.lake.commits("carts_events", None) if c.ledger]
        return tuple(sum(one[name] for one in told) for name in names)  # type: ignore[return-value]

    def reasons(self) -> list[list[str]]:
        rows = self.spark.table("carts_quarantine").orderBy("record_id").collect()
        return [row["reasons"] for row in rows]

    def gold(self, name: str) -> dict[str, dict[str, Any]]:
        rows = self.spark.table(f"{name}_features").collect()
        return {row["k"]: row.asDict() for row in rows}

    def ledger(self, place: int = 0) -> dict[str, Any]:
        told = self.lake.gold_state(self.lake.pipeline.views[place]).ledger
        assert told is not None
        return dict(told)

    def different(self, place: int = 0) -> int:
        return reconcile.reconcile(self.lake, self.lake.pipeline.views[place]).different
