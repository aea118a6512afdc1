"""The pipeline as it runs: its queries, each started by its step, each on a checkpoint of its own.

    source ──land──► bronze ──clean──► events + quarantine ──feature──► buckets ──refresh──► gold
                                 ▲      engine: stateful        └──► arrivals ──state──► gold
    changes ──land_changes──► bronze ──dimension──► dimension
    events ──stream──► its rows

Which queries there are is data, `config.dataflow.QUERIES`; what a batch of one does is in its step,
`pipeline.steps`. Whatever dies when, running again repairs it: every table says in its own commits
what it has consumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any, Literal

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidemill.config.dataflow import Query
from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Clock
from tidemill.lake.catalog import Lake
from tidemill.lake.integrity import progress
from tidemill.lake.schema.table_properties import GENERATION
from tidemill.pipeline import view_refresh
from tidemill.pipeline.gold.refresh import Refreshed
from tidemill.pipeline.publication import publish_view
from tidemill.sources import Source

Trigger = Mapping[str, Any]
Refreshes = Literal["each batch", "last batch", "never"]
ONCE: Trigger = {"availableNow": True}


@dataclass(frozen=True)
class Pipeline:
    """An open lake, the sources that feed it and its dimensions, and the clock it goes by."""

    lake: Lake
    source: Source
    clock: Clock
    follows: str  # "event" or "wall"
    refreshes: Refreshes = "each batch"  # a rebuild refreshes once, at its end
    feeds: Mapping[str, Source] = field(default_factory=dict)  # of dimensions, by their names

    @property
    def definition(self) -> PipelineDefinition:
        """What the pipeline's file declares."""
        return self.lake.pipeline

    @property
    def graph(self) -> list[Query]:
        """The queries, in the order of the flow."""
        return self.definition.queries_of(self.definition.engine)

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of the queries, in the order of the flow."""
        return tuple(query.checkpoint for query in self.graph)

    @property
    def states(self) -> tuple[str, ...]:
        """The names of the queries that keep a view's state; none but with the stateful engine."""
        return tuple(query.checkpoint for query in self.graph if query.per_view)

    def query(self, name: str) -> Query:
        """Return one of the queries by its name; KeyError where the pipeline has no such query."""
        return {query.checkpoint: query for query in self.graph}[name]

    def claim(self, names: Sequence[str] | None = None) -> None:
        """Take the queries' checkpoints; refuse a lost or strange one before any query writes."""
        for name in self.queries if names is None else names:
            query = self.query(name)
            take = getattr(_step(query), "claim", claim)
            take(self, query)

    def has_nothing_to_read(self, name: str) -> bool:
        """Tell, from the files of a folder's log and of the checkpoint, that a query has finished
        its last batch and read all that its table holds; False says nothing. A view's state goes by
        the clock too; a source says itself whether there is anything."""
        query = self.query(name)
        if query.is_fed:
            return not self.source_of(query).ready()
        if query.per_view:
            return False
        (table,) = self.lake.tables_of(query, (query.reads,))
        checkpoint = self.lake.checkpoint(query.checkpoint)
        newest, offset = self.lake.newest_version(table), checkpoint.offset()
        if newest is None or offset is None or checkpoint.planned() != checkpoint.finished():
            return False
        return offset.is_past(newest)

    def has_begun(self, name: str) -> bool:
        """Tell whether what a query reads has ever had rows: the source, or a folder's table, of
        which the names of its log's files say so. A view's state goes by the clock, with or
        without rows."""
        query = self.query(name)
        if query.is_fed:
            return self.source_of(query).ready()
        if query.per_view:
            return True
        return not any(map(self.lake.is_as_made, self.lake.tables_of(query, (query.reads,))))

    def fills_gold(self, name: str) -> bool:
        """Tell whether a query refreshes gold, and no view's was ever refreshed. The stateful
        engine's gold is its own query's."""
        query = self.query(name)
        writes = query.ledger == "features" and not self.states
        return writes and not _has_refreshed(self.lake, query)

    def source_of(self, query: Query) -> Source:
        """Return the source that a query lands: the pipeline's, or its dimension's."""
        return self.feeds[query.dimension] if query.dimension else self.source

    def start(self, name: str, trigger: Trigger) -> StreamingQuery:
        """Start a query on its own checkpoint, which was claimed before."""
        query = self.query(name)
        started: StreamingQuery = _step(query).start(self, query, trigger)
        return started

    def watch(self, name: str, running: StreamingQuery) -> None:
        """Raise QueryError when a running query does what it may not: its step says what."""
        query = self.query(name)
        if look := getattr(_step(query), "watch", None):
            look(self, query, running)

    def refresh(self) -> list[Refreshed]:
        """Bring each view's gold to now, and publish it: what a tick does when no batch comes. The
        stateful engine's own query does it."""
        done = []
        for view in () if self.states else self.definition.views:
            done.append(view_refresh.refresh_view(self.lake, view.name, self.clock, self.follows))
            publish_view(self.lake, view)
        return done

    def follow(self, query: Query, most_files: int | None = None) -> DataFrame:
        """Follow the table that a query reads, in batches of at most so many files and bytes:
        maintenance makes few files of many, and the number of files then says nothing of what a
        batch holds. With `most_files` they are of so many files, whatever these hold."""
        (table,) = self.lake.tables_of(query, (query.reads,))
        reader = self.lake.spark.readStream
        if query.reads == "events" and self.definition.enrich:
            # A rebuild of keys looks rows up again in place; their buckets it makes itself.
            reader = reader.option("skipChangeCommits", "true")
        if most_files is not None:
            return reader.option("maxFilesPerTrigger", most_files).table(table)
        reader = reader.option("maxFilesPerTrigger", self.definition.max_files_per_trigger)
        reader = reader.option("maxBytesPerTrigger", self.definition.max_bytes_per_trigger)
        return reader.table(table)

    def named(self, writer: DataStreamWriter, query: Query, trigger: Trigger) -> DataStreamWriter:
        """Return the writer with the query's name, checkpoint and trigger."""
        checkpoint = self.lake.checkpoint(query.checkpoint).folder
        return (
            writer.queryName(checkpoint.name)
            .option("checkpointLocation", str(checkpoint))
            .trigger(**trigger)
        )


def _step(query: Query) -> ModuleType:
    return import_module(query.step)


def claim(pipeline: Pipeline, query: Query) -> None:
    """Take the query's checkpoint, refusing a stranger's, a lost one, and one that was rolled back
    (see `checkpoints`): it may not know less than what the tables that it writes hold."""
    lake = pipeline.lake
    written = lake.tables_of(query, query.writes)
    if query.is_fed:
        kind: Mapping[str, Any] = pipeline.source_of(query).identity()
        generation = lake.metadata(written[0]).properties.get(GENERATION, "")
    else:
        (table,) = lake.tables_of(query, (query.reads,))
        kind, generation = {"kind": "delta", "table": table}, lake.generation
    identity = {
        "pipeline": lake.pipeline.pipeline,
        "query": query.checkpoint,
        **kind,
        "generation": generation,
    }
    checkpoint = lake.checkpoint(query.checkpoint)

    def has_written() -> bool:
        return lake.holds(written) or _has_refreshed(lake, query)

    def newest() -> int:
        if query.is_fed:
            return progress.newest_epoch(lake, written[0], checkpoint.query_id)
        return progress.newest_batch(lake, written, generation)

    checkpoint.claim(identity, has_written, newest)


def _has_refreshed(lake: Lake, query: Query) -> bool:
    """Return whether gold, whose ledgers are the query's, holds one of its batches."""
    refreshes = query.ledger == "features"
    return refreshes and any(lake.gold_state(v).batch >= 0 for v in lake.pipeline.views)
