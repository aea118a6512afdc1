"""Every table of a pipeline's lake, declared once.

<pipeline>_bronze, _quarantine, _events     every lake of the pipeline has them
<view>_buckets, _features                   ... for each view; _arrivals with engine: stateful
<dimension>_bronze, _quarantine, _dimension ... for each dimension
<stream>                                    ... for each stream, called as it
tidemill_batches                            ... one for all pipelines of a lake
<view>_hours                                made by the first maintenance
<view>_history                              made by the first answers that it keeps (served_history)
<view>_batch, <stream>_batch                made by the first `recompute`
<pipeline>_replays                          made by the first replay of refused records
<pipeline>_alerts                           made by the first look at rules (alerts)
tidemill_quality                            made by the gate's first run; one for all pipelines
tidemill_profiles                           made by the first run with --profile; one for all
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.features import FeatureView
from tidemill.lake.tables.day_tables import days_of_stream
from tidemill.lake.tables.dimension_tables import DimensionTables, dimension_tables
from tidemill.lake.tables.record_tables import bronze_table, quarantine_table
from tidemill.lake.tables.shared_tables import BATCHES, PROFILES, QUALITY
from tidemill.lake.tables.stream_table import stream_table
from tidemill.lake.tables.table import CHANGE_FEED, LEDGER_RETENTION, Column, Table
from tidemill.lake.tables.view_tables import BATCH, ViewTables, view_tables

ALLOWED = "tidemill.allowed"  # of events: the values that a field may have had from the beginning
HISTORY = "tidemill.history"  # of bronze: under which `history` its records were landed
ENRICHED = "tidemill.enriched"  # of events: what its columns were taken of


@dataclass(frozen=True)
class PipelineTables:
    """The tables of a pipeline.

    bronze: raw records; quarantine: refused ones, each with every reason; events: valid, distinct
    events; replays: which refused records were sent through again; alerts: when rules began and
    ceased to hold; quality: what the gate expected
    and found; batches: what each batch did; profiles: where the time of profiled batches went;
    views: the tables of each view, by its name; dimensions: those of each dimension, by its name;
    streams: that of each stream, by its name; stream_days: the rows of each stream that `recompute`
    can make again, by the day.

    `required` are those that a lake of the pipeline has from its first opening on, in the order of
    the flow; `optional` those that are made when they are first needed.
    """

    bronze: Table
    quarantine: Table
    events: Table
    replays: Table
    alerts: Table
    quality: Table
    batches: Table
    profiles: Table
    views: Mapping[str, ViewTables]
    dimensions: Mapping[str, DimensionTables]
    streams: Mapping[str, Table]
    stream_days: Mapping[str, Table]
    required: tuple[Table, ...]
    optional: tuple[Table, ...]

    @property
    def days(self) -> tuple[Table, ...]:
        """The tables of recomputed days, of views and of streams."""
        return (*(view.days for view in self.views.values()), *self.stream_days.values())

    def of(self, view: FeatureView) -> ViewTables:
        """Return the tables of one of the pipeline's views."""
        return self.views[view.name]

    def bronzes(self) -> list[Table]:
        """Return the tables of records as they came: the pipeline's, and each dimension's."""
        return [self.bronze, *(one.bronze for one in self.dimensions.values())]

    @property
    def growing(self) -> tuple[Table, ...]:
        """The tables that a later declaration or version may give columns which they are without
        until then."""
        return (self.events, *(one.rows for one in self.dimensions.values()), self.batches)

    @property
    def shared(self) -> tuple[Table, ...]:
        """The tables that all pipelines of a lake write to."""
        return (self.batches, self.quality, self.profiles)


@lru_cache(maxsize=32)
def of(pipeline: PipelineDefinition) -> PipelineTables:
    """Return the tables of a pipeline; those of an equal definition are computed once."""
    name, events = pipeline.pipeline, _events(pipeline)
    told = {HISTORY: json.dumps({"history": pipeline.history, "before": []})}
    bronze, quarantine = replace(bronze_table(name), properties=told), quarantine_table(name)
    dimensions = {one.name: dimension_tables(one) for one in pipeline.dimensions}
    streams = {one.name: stream_table(one, pipeline.events) for one in pipeline.streams}
    stream_days = {
        one.name: days_of_stream(streams[one.name]) for one in pipeline.streams if one.recomputable
    }
    views = {view.name: view_tables(view) for view in pipeline.views}
    replays, alerts = _replays(pipeline), _alerts(pipeline)
    per_view = [table for view in views.values() for table in (view.buckets, view.gold)]
    if pipeline.engine == "stateful":
        per_view += [view.arrivals for view in views.values()]
    return PipelineTables(
        bronze,
        quarantine,
        events,
        replays,
        alerts,
        QUALITY,
        BATCHES,
        PROFILES,
        views,
        dimensions,
        streams,
        stream_days,
        required=(
            bronze,
            quarantine,
            *(table for one in dimensions.values() for table in one.all),
            events,
            *per_view,
            *streams.values(),
            BATCHES,
        ),
        optional=(
            *(view.hours for view in views.values()),
            *(view.history for view in views.values()),
            *(view.days for view in views.values()),
            *stream_days.values(),
            replays,
            alerts,
            QUALITY,
            PROFILES,
        ),
    )


def _events(pipeline: PipelineDefinition) -> Table:
    view = pipeline.events
    declared = (
        _enriched(pipeline, name)
        if name in pipeline.enriched
        else Column(name, view.types[name], "as the event has it", type_.endswith("?"))
        for name, type_ in view.event_schema.items()
    )
    return Table(
        f"{pipeline.pipeline}_events",
        "Valid, distinct events",
        (
            Column("record_id", "STRING", "the bronze record that was kept", False),
            Column("event_id", "STRING", "the sender's id; null = never a duplicate"),
            *declared,
            Column(view.event_time, "TIMESTAMP", "event time, UTC", False),
            Column("ingested_at", "TIMESTAMP", "when land read the record", False),
            BATCH,
            Column("event_hour", "TIMESTAMP", "event time cut to the hour", False),
        ),
        ("event_hour",),
        (view.event_time, "batch"),
        {
            **LEDGER_RETENTION,
            ALLOWED: json.dumps(pipeline.allowed_values()),
            ENRICHED: json.dumps(pipeline.taken, sort_keys=True),
        },
        sorted_by=view.event_time,
    )


def _enriched(pipeline: PipelineDefinition, name: str) -> Column:
    """Return a column that is taken of a dimension. No digest reads it: a batch that comes again,
    when the dimension has changed, is still the same batch, and what it took first stays."""
    one = next(one for one in pipeline.enrich if name in one.columns)
    what = f"{one.columns[name]} of {one.dimension} when clean looked it up"
    return Column(name, pipeline.events.types[name], what, digested=False, added=True)


def _replays(pipeline: PipelineDefinition) -> Table:
    return Table(
        f"{pipeline.pipeline}_replays",
        "Refused records that were sent through again, repaired",
        (
            Column("record_id", "STRING", "the refused record", False),
            Column("replay_id", "STRING", "the repaired record in bronze", False),
            Column("replayed_at", "TIMESTAMP", "when it was first sent", False),
            Column("ingest_date", "DATE", "the day of both records' ingested_at", False),
        ),
        (),
        ("replayed_at", "ingest_date"),
        generational=False,
        sorted_by="ingest_date",
    )


def _alerts(pipeline: PipelineDefinition) -> Table:
    return Table(
        f"{pipeline.pipeline}_alerts",
        "When a rule began and ceased to hold for a key, append only: a row for each",
        (
            Column("alert", "STRING", "the rule's name", False),
            Column("view", "STRING", "the feature view of which it is, * of no events", False),
            Column("key", "STRING", "the entity key, JSON", False),
            Column("episode", "STRING", "the same where it fired and where it was resolved", False),
            Column("state", "STRING", "fired or resolved", False),
            Column("at", "TIMESTAMP", "as_of of gold's version that made it so", False),
            Column("fired_at", "TIMESTAMP", "at of the row that fired", False),
            Column("features", "STRING", "what the rule reads, as it was then, JSON"),
            Column("version", "BIGINT", "gold's version", False),
            Column("served_at", "TIMESTAMP", "when gold took that version", False),
            Column("look", "BIGINT", "the number of the view's look that found it", False),
            Column("date", "DATE", "the day of served_at", False),
        ),
        ("date",),
        ("at", "version", "served_at"),
        {**LEDGER_RETENTION, CHANGE_FEED: "true"},  # by which its sinks read what is new
        generational=False,
    )
