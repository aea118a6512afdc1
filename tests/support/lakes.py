"""Lakes for tests: events as literal rows in, the gold table as literal rows out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from xxhash import xxh64

from oracle import COLUMNS, Key, Row
from tidemill.config.pipeline_file import SHIPPED, PipelineDefinition, load
from tidemill.config.settings import Clock, Place
from tidemill.lake.catalog import Lake
from tidemill.lake.open import open_for_writing
from tidemill.operations import reconcile
from tidemill.pipeline.silver.known_events import KnownEvents
from tidemill.pipeline.steps import clean_step, feature_step

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)
BRONZE = (
    "record_id STRING, raw_payload STRING, topic STRING, partition INT, offset BIGINT, "
    "source_ts TIMESTAMP, ingested_at TIMESTAMP, ingest_date DATE"
)
Event = tuple[str | None, str, str, str, datetime]


def at(text: str) -> datetime:
    """A time of day on the 21st, or `20T06:30` on the 20th."""
    day, _, time = text.rpartition("T")
    hour, minute, *second = time.split(":")
    seconds = float(second[0]) if second else 0.0
    midnight = datetime(2026, 11, int(day or 21), tzinfo=timezone.utc)
    return midnight + timedelta(hours=int(hour), minutes=int(minute), seconds=seconds)


def payload(event: Event) -> str:
    event_id, profile, gti, kind, time = event
    return json.dumps(
        {
            "event_id": event_id,
            "profile_id": profile,
            "gti": gti,
            "event_type": kind,
            "event_timestamp": time.isoformat(),
        }
    )


@dataclass
class TestLake:
    """An open lake, fed by calling the batch functions."""

    __test__ = False
    lake: Lake
    clock: Clock
    batch: int = -1
    records: int = 0
    known: KnownEvents = field(default_factory=KnownEvents)

    @property
    def spark(self) -> SparkSession:
        return self.lake.spark

    @property
    def view(self):
        return self.lake.pipeline.views[0]

    def bronze(self, payloads: Iterable[str | None], ingested_at: datetime = NOW) -> DataFrame:
        """Rows as land would have written them."""
        rows = []
        for text in payloads:
            self.records += 1
            rows.append(
                (f"r{self.records:06d}", text, "t", 0, self.records, NOW, ingested_at, NOW.date())
            )
        return self.spark.createDataFrame(rows, BRONZE).coalesce(1)

    def clean(self, payloads: Iterable[str | None], batch: int | None = None) -> None:
        """One batch of clean."""
        batch = self.batch + 1 if batch is None else batch
        clean_step.clean_batch(self.bronze(payloads), batch, lake=self.lake, known=self.known)

    def feed(self, events: Sequence[Event], batch: int | None = None) -> int:
        """One batch of feature over events, past clean; yields the batch id."""
        self.batch = self.batch + 1 if batch is None else batch
        frame = events_frame(self.spark, events)
        feature_step.feature_batch(
            frame, self.batch, lake=self.lake, clock=self.clock, follows=self.lake.pipeline.clock
        )
        return self.batch

    def step(self, payloads: Iterable[str | None]) -> None:
        """One batch through clean and feature, as the two streams would carry it."""
        self.batch += 1
        clean_step.clean_batch(self.bronze(payloads), self.batch, lake=self.lake, known=self.known)
        events = self.events().where(F.col("batch") == self.batch)
        feature_step.feature_batch(
            events, self.batch, lake=self.lake, clock=self.clock, follows=self.lake.pipeline.clock
        )

    def table(self, name: str) -> DataFrame:
        return self.spark.table(f"engagement_{name}")

    def events(self) -> DataFrame:
        return self.table("events")

    def gold(self, version: int | None = None) -> dict[Key, Row]:
        """The gold table's non-empty rows."""
        frame = self.table("features")
        if version is not None:
            frame = self.spark.read.option("versionAsOf", version).table("engagement_features")
        found = {}
        for row in frame.collect():
            values = {name: row[name] for name in COLUMNS}
            if any(values.values()):
                found[row["profile_id"], row["gti"]] = values
        return found

    def ledgers(self, table: str = "features") -> list[dict]:
        """The ledgers of a table's commits, newest first, each with its version."""
        from tidemill.lake.commits import ledger

        found = ledger.commits(self.spark, f"engagement_{table}", None)
        return [{**c.ledger, "version": c.version} for c in found if c.ledger]

    def different(self, version: int | None = None) -> int:
        return reconcile.reconcile(self.lake, self.view, version).different


@dataclass
class Lakes:
    """Makes lakes, each in a folder of its own."""

    spark: SparkSession
    folder: Path
    template: (
        Path  # an empty lake as the shipped definition makes it; a copy is quicker than a new one
    )
    made: list[Path] = field(default_factory=list)

    def new(self, clock: Clock | None = None, **words: object) -> TestLake:
        """A new lake of `engagement`, with other words in its definition where given."""
        return self._new(self._root(), clock, words)

    def fed(
        self, *batches: Sequence[Event], clock: Clock | None = None, **words: object
    ) -> TestLake:
        """A new lake that had these batches: a copy of one that is made once for all tests."""

        def feed(lake: TestLake) -> None:
            for events in batches:
                lake.feed(events)

        name = xxh64(repr((batches, clock, words)).encode()).hexdigest()
        return self.begun(name, feed, clock, **words)

    def begun(
        self,
        name: str,
        begin: Callable[[TestLake], None],
        clock: Clock | None = None,
        **words: object,
    ) -> TestLake:
        """A copy of a lake that had this beginning, which is made once for all tests."""
        kept, batch = (self.template.with_name(f"{name}{end}") for end in ("", ".batch"))
        if not kept.exists():
            first = self._new(self.folder / f"first-{name}", clock, words)
            begin(first)
            batch.write_text(str(first.batch))
            shutil.copytree(self.folder / f"first-{name}", kept)
        root = self._root()
        shutil.copytree(kept, root)
        lake = self.open(root, clock, **words)
        lake.batch = int(batch.read_text())
        return lake

    def _new(self, root: Path, clock: Clock | None, words: dict[str, object]) -> TestLake:
        if set(words) <= {"follows", "history"}:
            shutil.copytree(self.template, root)
        return self.open(root, clock, **words)

    def _root(self) -> Path:
        self.made.append(self.folder / f"lake{len(self.made)}")
        return self.made[-1]

    def declared(self) -> dict[str, Any]:
        """The shipped view as its file declares it."""
        words: dict[str, Any] = yaml.safe_load((SHIPPED / "engagement.yaml").read_text())
        return dict(words["views"][0])

    def open(self, root: Path, clock: Clock | None = None, **words: object) -> TestLake:
        if "follows" in words:
            words["clock"] = words.pop("follows")
        if "views" in words:  # the rules of the shipped file are of the shipped fields
            words = {"quality": {}, **words}
        definition: PipelineDefinition = load("engagement").overridden(words)
        lake = open_for_writing(self.spark, Place(root), definition)
        return TestLake(lake, clock or Clock(NOW))


def events_frame(spark: SparkSession, events: Sequence[Event]) -> DataFrame:
    """Rows of the events table, as feature reads them."""
    columns = ("event_id", "profile_id", "gti", "event_type", "event_timestamp")
    schema = ", ".join(
        f"{c} {'TIMESTAMP' if c == 'event_timestamp' else 'STRING'}" for c in columns
    )
    return spark.createDataFrame(list(events), schema).coalesce(1)
