"""A lake with streams, fed by calling clean; its streams run over what there is, one at a time."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import yaml
from pyspark.sql import SparkSession

from lakes import BRONZE, NOW
from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Clock, Place
from tidemill.lake.catalog import Lake
from tidemill.lake.open import open_for_writing
from tidemill.pipeline import runner
from tidemill.pipeline.queries import Pipeline
from tidemill.pipeline.steps import clean_step
from tidemill.sources.null_source import Absent

Event = tuple[str, str, datetime]  # kind, item, time
WORDS = yaml.safe_load(
    """
pipeline: shop
source: {kind: files, input: events}
views:
  - name: items
    keys: [item]
    event_time: at
    schema: {item: string, kind: string, price: "bigint?"}
    features:
      - count: {}
        over: [1h]
"""
)
SIDES: dict[str, Any] = {
    "left": {"name": "ask", "where": "kind = 'ask'", "watermark": "10m", "columns": ["price"]},
    "right": {"name": "buy", "where": "kind = 'buy'", "watermark": "10m", "columns": ["price"]},
    "keys": ["item"],
    "within": "1h",
}


def join(**words: Any) -> dict[str, Any]:
    return {**SIDES, **words}


def declared(streams: Iterable[dict[str, Any]], **words: Any) -> PipelineDefinition:
    return PipelineDefinition.model_validate({**WORDS, **words, "streams": [*streams]})


def records(events: Iterable[Event], before: int = 0) -> list[str]:
    """The events as they come; each has its place among all as its price."""
    return [
        json.dumps({"item": item, "kind": kind, "price": price, "at": time.isoformat()})
        for price, (kind, item, time) in enumerate(events, start=before + 1)
    ]


def drawn(seed: int, start: datetime, minutes: int) -> list[Event]:
    """Two events for every three minutes, in order of these."""
    choose = random.Random(seed)
    return [
        (
            choose.choice(["ask", "buy", "look"]),
            choose.choice("abcdef"),
            start + timedelta(minutes=minute, seconds=choose.randrange(180)),
        )
        for minute in range(0, minutes, 3)
        for _ in range(2)
    ]


@dataclass
class StreamLake:
    """An open lake with streams, and how many batches and records it was fed."""

    lake: Lake
    batch: int = -1
    records: int = 0

    @classmethod
    def new(cls, spark: SparkSession, root: Path, definition: PipelineDefinition) -> StreamLake:
        return cls(open_for_writing(spark, Place(root), definition))

    def reopened(self, definition: PipelineDefinition) -> StreamLake:
        lake = open_for_writing(self.lake.spark, self.lake.place, definition)
        return replace(self, lake=lake)

    def feed(self, *events: Event) -> None:
        """One batch of clean; an event's price is its place among all."""
        self.feed_records(*records(events, self.records))

    def feed_records(self, *texts: str) -> None:
        """One batch of clean, of records as they come."""
        rows = []
        for text in texts:
            self.records += 1
            at = (NOW, NOW, NOW.date())
            rows.append((f"r{self.records:06d}", text, "t", 0, self.records, *at))
        self.batch += 1
        frame = self.lake.spark.createDataFrame(rows, BRONZE).coalesce(1)
        clean_step.clean_batch(frame, self.batch, lake=self.lake)

    @property
    def pipeline(self) -> Pipeline:
        return Pipeline(self.lake, Absent(), Clock(NOW), "event")

    def run(self, *names: str) -> None:
        """Bring all there is through these streams, or every one, as `run --once` does."""
        pipeline = self.pipeline
        queries = [f"stream_{name}" for name in names or self.lake.tables.streams]
        pipeline.claim(queries)
        recorder = runner.Recorder(pipeline)
        for query in queries:
            runner.finish(query, pipeline, runner.Stop(), recorder)
        recorder.record()

    def rows(self, name: str) -> list[dict[str, Any]]:
        return [row.asDict() for row in self.lake.spark.table(name).collect()]

    def pairs(self, name: str) -> set[tuple[int | None, int | None]]:
        """The rows of a join: the prices of both sides, which tell an event."""
        rows = self.rows(name)
        found = {(row["ask_price"], row["buy_price"]) for row in rows}
        assert len(found) == len(rows), "a row stands twice"
        assert all(row["matched"] == (None not in pair) for row, pair in _with(rows))
        return found


def _with(rows: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], tuple[Any, Any]]]:
    for row in rows:
        yield row, (row["ask_price"], row["buy_price"])


@contextmanager
def in_duckdb(events: Sequence[Event]) -> Iterator[duckdb.DuckDBPyConnection]:
    table = pa.table(
        {
            "price": pa.array(range(1, len(events) + 1), pa.int64()),
            "kind": [kind for kind, _, _ in events],
            "item": [item for _, item, _ in events],
            "at": pa.array([time for _, _, time in events], pa.timestamp("us", "UTC")),
        }
    )
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("events", table)
        yield connection


def expected(
    events: Sequence[Event], kind: str, watermark: datetime
) -> set[tuple[int | None, int | None]]:
    """What a join of SIDES gives of events of which none came too late, by DuckDB: all pairs, and
    alone those for which the watermark says that no pair can come."""
    text = f"""
        SELECT a.price, b.price
        FROM (SELECT * FROM events WHERE kind = 'ask') a
        {kind} JOIN (SELECT * FROM events WHERE kind = 'buy') b
          ON a.item = b.item AND b.at BETWEEN a.at AND a.at + INTERVAL 1 HOUR
        WHERE (b.price IS NOT NULL OR a.at + INTERVAL 1 HOUR < $watermark)
          AND (a.price IS NOT NULL OR b.at < $watermark)
    """
    with in_duckdb(events) as connection:
        return set(connection.execute(text, {"watermark": watermark}).fetchall())
