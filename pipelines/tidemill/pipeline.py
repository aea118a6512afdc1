"""The pipeline, as a table of contents.

    source ──land──► bronze ──clean──► events + quarantine ──feature──► buckets ──refresh──► gold

Three streaming queries, each with its own trigger and checkpoint. Whatever dies when, running again
repairs it: every table says in its own commits what it has consumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidemill import bronze, gold, silver, tables
from tidemill.features.definition import PipelineDefinition
from tidemill.gold import Refreshed
from tidemill.lake import Lake
from tidemill.settings import Clock
from tidemill.sources import Source

QUERIES = ("land", "clean", "feature")
Trigger = Mapping[str, Any]
ONCE: Trigger = {"availableNow": True}


@dataclass(frozen=True)
class Pipeline:
    """An open lake, the source that feeds it, and the clock it goes by."""

    lake: Lake
    source: Source
    clock: Clock
    follows: str  # "event" or "wall"
    refreshes: bool = True  # a rebuild refreshes once, at its end

    @property
    def definition(self) -> PipelineDefinition:
        """What the pipeline's file declares."""
        return self.lake.pipeline

    def claim(self, queries: Sequence[str] = QUERIES) -> None:
        """Take the queries' checkpoints; refuse a lost or strange one before any query writes."""
        for query in queries:
            claim(self.lake, query, self.source)

    def start(self, query: str, trigger: Trigger) -> StreamingQuery:
        """Start `land`, `clean` or `feature`, on its own checkpoint, claimed before."""
        steps: dict[str, Callable[[Trigger], StreamingQuery]] = {
            "land": self._land,
            "clean": self._clean,
            "feature": self._feature,
        }
        return steps[query](trigger)

    def _land(self, trigger: Trigger) -> StreamingQuery:
        """Records, as they come, into bronze: Spark's own Delta sink."""
        records = self.source.stream(self.lake.spark)
        stamped = bronze.stamped(records, self.definition, self.clock)
        writer = stamped.writeStream.format("delta").outputMode("append")
        return self._named(writer, "land", trigger).toTable(tables.bronze(self.definition).name)

    def _clean(self, trigger: Trigger) -> StreamingQuery:
        """Bronze into events and quarantine."""
        records = self._follow(tables.bronze(self.definition).name)
        step = partial(clean_batch, lake=self.lake)
        return self._named(records.writeStream.foreachBatch(step), "clean", trigger).start()

    def _feature(self, trigger: Trigger) -> StreamingQuery:
        """Events into buckets, and gold brought up to date."""
        events = self._follow(tables.events(self.definition).name)
        step = partial(append_batch, lake=self.lake)
        if self.refreshes:
            step = partial(feature_batch, lake=self.lake, clock=self.clock, follows=self.follows)
        return self._named(events.writeStream.foreachBatch(step), "feature", trigger).start()

    def refresh(self) -> list[Refreshed]:
        """Bring each view's gold to now: what a tick does when no batch comes."""
        return [
            refresh_view(self.lake, name.name, self.clock, self.follows)
            for name in self.definition.views
        ]

    def _follow(self, table: str) -> DataFrame:
        most = self.definition.max_files_per_trigger
        return self.lake.spark.readStream.option("maxFilesPerTrigger", most).table(table)

    def _named(self, writer: DataStreamWriter, query: str, trigger: Trigger) -> DataStreamWriter:
        checkpoint = self.lake.checkpoint(query).folder
        return (
            writer.queryName(checkpoint.name)
            .option("checkpointLocation", str(checkpoint))
            .trigger(**trigger)
        )


def clean_batch(batch: DataFrame, batch_id: int, *, lake: Lake) -> None:
    """One batch of clean; any frame of bronze rows and any id."""
    silver.clean(batch, batch_id, lake=lake)


def feature_batch(
    batch: DataFrame, batch_id: int, *, lake: Lake, clock: Clock, follows: str
) -> None:
    """One batch of feature: append each view's buckets, then refresh its gold."""
    lake = replace(lake, spark=batch.sparkSession)
    for view in lake.pipeline.views:
        there = silver.bucket(batch, batch_id, lake=lake, view=view)
        refresh_view(lake, view.name, clock, follows, there)


def append_batch(batch: DataFrame, batch_id: int, *, lake: Lake) -> None:
    """One batch of feature without the refresh: append each view's buckets."""
    for view in lake.pipeline.views:
        silver.bucket(batch, batch_id, lake=lake, view=view)


def refresh_view(
    lake: Lake,
    view_name: str,
    clock: Clock,
    follows: str,
    there: silver.Bucketed | None = None,
) -> Refreshed:
    """Bring a view's gold to the newest buckets and to the clock's as_of, never back by the
    wall."""
    view = lake.pipeline.view(view_name)
    there = there or silver.bucketed(lake, view)
    wall = follows == "wall"
    as_of = clock.minute_end() if wall else silver.event_as_of(there)
    spent = {"append": round(there.seconds, 3)} if there.seconds else {}
    return gold.refresh(
        lake,
        view,
        as_of=as_of,
        batch=there.batch,
        buckets=there.commits,
        not_below=wall,
        spent=spent,
    )


def claim(lake: Lake, query: str, source: Source) -> None:
    """Take the query's checkpoint, refusing a stranger's and a lost one (see `checkpoints`)."""
    pipeline = lake.pipeline
    buckets = [tables.buckets(view) for view in pipeline.views]
    kinds: dict[str, tuple[Mapping[str, Any], str, list[tables.Table]]] = {
        "land": (source.identity(), lake.land_generation, [tables.bronze(pipeline)]),
        "clean": (
            {"kind": "delta", "table": tables.bronze(pipeline).name},
            lake.generation,
            [tables.events(pipeline), tables.quarantine(pipeline)],
        ),
        "feature": (
            {"kind": "delta", "table": tables.events(pipeline).name},
            lake.generation,
            buckets,
        ),
    }
    kind, generation, written = kinds[query]
    identity = {"pipeline": pipeline.pipeline, "query": query, **kind, "generation": generation}
    lake.checkpoint(query).claim(identity, lambda: lake.holds(*written))
