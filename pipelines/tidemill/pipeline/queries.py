"""The pipeline, as a table of contents.

    source ──land──► bronze ──clean──► events + quarantine ──feature──► buckets ──refresh──► gold
                                        engine: stateful        └──► arrivals ──state──► gold

Three streaming queries, each with its own trigger and checkpoint; the stateful engine has one more
for each view. Whatever dies when, running again repairs it: every table says in its own commits
what it has consumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Clock
from tidemill.features import FeatureView
from tidemill.lake import tables
from tidemill.lake.catalog import Lake
from tidemill.lake.integrity import coverage, progress
from tidemill.pipeline import bronze
from tidemill.pipeline.batch_failures import of_batch
from tidemill.pipeline.gold import refresh as gold
from tidemill.pipeline.gold.refresh import Refreshed
from tidemill.pipeline.silver import clean as silver
from tidemill.pipeline.stateful import engine, state_input
from tidemill.sources import Source

QUERIES = ("land", "clean", "feature")
Trigger = Mapping[str, Any]
ONCE: Trigger = {"availableNow": True}
EVERY_FILE = 2**31 - 1


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

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of the queries, in the order of the flow."""
        return (*QUERIES, *self.states)

    @property
    def states(self) -> Mapping[str, FeatureView]:
        """The view of each query that keeps state; none but with the stateful engine."""
        views = self.definition.views if self.definition.engine == "stateful" else ()
        return {engine.query_of(view): view for view in views}

    def claim(self, queries: Sequence[str] | None = None) -> None:
        """Take the queries' checkpoints; refuse a lost or strange one before any query writes."""
        for query in self.queries if queries is None else queries:
            if query in self.states:
                engine.claim(self.lake, self.states[query])
            else:
                claim(self.lake, query, self.source)

    def start(self, query: str, trigger: Trigger) -> StreamingQuery:
        """Start `land`, `clean`, `feature` or a view's state, on its own checkpoint, claimed
        before."""
        steps: dict[str, Callable[[Trigger], StreamingQuery]] = {
            "land": self._land,
            "clean": self._clean,
            "feature": self._feature,
            **{name: partial(self._state, view) for name, view in self.states.items()},
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

    def _state(self, view: FeatureView, trigger: Trigger) -> StreamingQuery:
        """Arrivals, brought to now, into the state, and what it emits into gold."""
        if self.refreshes:
            arrive_view(self.lake, view.name, self.clock, self.follows)
        step: Any = partial(engine.merge_batch, lake=self.lake, view_name=view.name)
        query, idle = engine.query_of(view), self.follows == "wall" and trigger != ONCE
        with engine.state_kept(self.lake.spark, idle_batches=idle):
            emitted = engine.emitted(self._follow_arrivals(view), view, self.follows)
            writer = emitted.writeStream.outputMode("update").foreachBatch(step)
            return self._named(writer, query, trigger).start()

    def refresh(self) -> list[Refreshed]:
        """Bring each view's gold to now: what a tick does when no batch comes. The stateful
        engine's own query does it."""
        if self.states:
            return []
        return [
            refresh_view(self.lake, name.name, self.clock, self.follows)
            for name in self.definition.views
        ]

    def _follow(self, table: str) -> DataFrame:
        """Follow a table in batches of at most so many files and bytes: upkeep makes few files of
        many, and the number of files then says nothing of what a batch holds."""
        reader = self.lake.spark.readStream
        reader = reader.option("maxFilesPerTrigger", self.definition.max_files_per_trigger)
        return reader.option("maxBytesPerTrigger", self.definition.max_bytes_per_trigger).table(
            table
        )

    def _follow_arrivals(self, view: FeatureView) -> DataFrame:
        """Whole commits, as a batch's rows count together; upkeep may delete what was read."""
        reader = self.lake.spark.readStream.option("maxFilesPerTrigger", EVERY_FILE)
        return reader.option("skipChangeCommits", "true").table(tables.arrivals(view).name)

    def _named(self, writer: DataStreamWriter, query: str, trigger: Trigger) -> DataStreamWriter:
        checkpoint = self.lake.checkpoint(query).folder
        return (
            writer.queryName(checkpoint.name)
            .option("checkpointLocation", str(checkpoint))
            .trigger(**trigger)
        )


def clean_batch(batch: DataFrame, batch_id: int, *, lake: Lake) -> None:
    """One batch of clean; any frame of bronze rows and any id."""
    with of_batch(lake, "clean", batch_id, tables.events(lake.pipeline).name):
        silver.clean(batch, batch_id, lake=lake)


def feature_batch(
    batch: DataFrame, batch_id: int, *, lake: Lake, clock: Clock, follows: str
) -> None:
    """One batch of feature: append each view's buckets, then refresh its gold, or bring the
    arrivals from which the state will."""
    lake = replace(lake, spark=batch.sparkSession)
    bring = arrive_view if lake.pipeline.engine == "stateful" else refresh_view
    with _read_once(batch, lake.pipeline.views) as events:
        for view in lake.pipeline.views:
            with of_batch(lake, "feature", batch_id, tables.buckets(view).name):
                buckets = silver.bucket(events, batch_id, lake=lake, view=view)
            with of_batch(lake, "feature", batch_id, tables.features(view).name):
                bring(lake, view.name, clock, follows, buckets)


def append_batch(batch: DataFrame, batch_id: int, *, lake: Lake) -> None:
    """One batch of feature without the refresh: append each view's buckets."""
    with _read_once(batch, lake.pipeline.views) as events:
        for view in lake.pipeline.views:
            with of_batch(lake, "feature", batch_id, tables.buckets(view).name):
                silver.bucket(events, batch_id, lake=lake, view=view)


def _read_once(batch: DataFrame, views: Sequence[FeatureView]) -> AbstractContextManager[DataFrame]:
    """Keep a batch's events while several views read them; one view keeps what it makes of them."""
    return silver.cached(batch) if len(views) > 1 else nullcontext(batch)


def refresh_view(
    lake: Lake,
    view_name: str,
    clock: Clock,
    follows: str,
    buckets: silver.Bucketed | None = None,
    force: str | None = None,
) -> Refreshed:
    """Bring a view's gold to the newest buckets and to the clock's as_of, never back by the
    wall; by a recompute where `force` says why."""
    view = lake.pipeline.view(view_name)
    buckets = buckets or silver.bucketed(lake, view)
    wall = follows == "wall"
    as_of = clock.end_of(view.bucket_length) if wall else silver.event_as_of(buckets, view)
    spent = {"append": round(buckets.seconds, 3)} if buckets.seconds else {}
    return gold.refresh(
        lake,
        view,
        as_of=as_of,
        batch=buckets.batch,
        buckets=buckets.commits,
        force=force,
        not_below=wall,
        spent=spent,
        appended=buckets.rows,
    )


def arrive_view(
    lake: Lake,
    view_name: str,
    clock: Clock,
    follows: str,
    buckets: silver.Bucketed | None = None,
) -> bool:
    """Bring a view's arrivals to the newest buckets and to the clock's as_of."""
    view = lake.pipeline.view(view_name)
    buckets = buckets or silver.bucketed(lake, view)
    end = clock.end_of(view.bucket_length)
    as_of = end if follows == "wall" else silver.event_as_of(buckets, view)
    return state_input.arrive(lake, view, as_of=as_of, batch=buckets.batch, buckets=buckets.commits)


def claim(lake: Lake, query: str, source: Source) -> None:
    """Take the query's checkpoint, refusing a stranger's, a lost one, and one that was rolled back
    (see `checkpoints`)."""
    pipeline = lake.pipeline
    buckets = [tables.buckets(view) for view in pipeline.views]
    kinds: dict[str, Callable[[], tuple[Mapping[str, Any], str, list[tables.Table]]]] = {
        "land": lambda: (source.identity(), lake.land_generation, [tables.bronze(pipeline)]),
        "clean": lambda: (
            {"kind": "delta", "table": tables.bronze(pipeline).name},
            lake.generation,
            [tables.events(pipeline), tables.quarantine(pipeline)],
        ),
        "feature": lambda: (
            {"kind": "delta", "table": tables.events(pipeline).name},
            lake.generation,
            buckets,
        ),
    }
    kind, generation, written = kinds[query]()
    identity = {"pipeline": pipeline.pipeline, "query": query, **kind, "generation": generation}
    checkpoint = lake.checkpoint(query)

    def has_written() -> bool:
        refreshed = query == "feature" and any(
            lake.gold_state(v).batch >= 0 for v in pipeline.views
        )
        return refreshed or lake.holds(*written)

    def newest() -> int:
        if query == "land":
            return progress.newest_epoch(lake, written[0], checkpoint.query_id)
        return progress.newest_batch(lake, written, generation)

    checkpoint.claim(identity, has_written, newest)
    if query == "feature":
        coverage.take_part(lake)
