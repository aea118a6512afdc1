"""The tables of a pipeline: columns, comments, partitions and properties, as data.

Partition columns stand last. Statistics are kept for the columns that queries prune by, never for
identifiers: an erased identifier must not live on in the transaction log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.features import FeatureView
from tidemill.features.columns import Partial
from tidemill.lake import provenance

FORMAT = "1"
ALLOWED = "tidemill.allowed"  # of events: the values that a field may have had from the beginning
LEDGER_RETENTION = {"delta.logRetentionDuration": "interval 90 days"}
# Parquet's writer takes it from here: what a reader of one minute cannot skip is a page.
SMALL_PAGES = {"parquet.page.row.count.limit": "2000"}


@dataclass(frozen=True)
class Column:
    """A column: its SQL type, what it holds, whether it may be null, whether a digest reads it (a
    sketch may come out otherwise from the same events), and whether a table made before may be
    without it until it is opened for writing."""

    name: str
    type: str
    comment: str
    nullable: bool = True
    digested: bool = True
    added: bool = False


@dataclass(frozen=True)
class Table:
    """A Delta table as declared; `generational` ones are made again by a rebuild.

    The rows of a file are in the order of `sorted_by`: who reads minutes skips the rest of an hour.
    """

    name: str
    comment: str
    columns: tuple[Column, ...]
    partitioned_by: tuple[str, ...]
    statistics: tuple[str, ...]
    properties: Mapping[str, str] = field(default_factory=dict)
    generational: bool = True
    primary_key: tuple[str, ...] = ()
    sorted_by: str | None = None

    @property
    def column_names(self) -> list[str]:
        """The columns' names in the table's order."""
        return [column.name for column in self.columns]


_BRONZE = (
    Column(
        "record_id", "STRING", "the record's position, or a uuid where the source has none", False
    ),
    Column("raw_payload", "STRING", "the record as it came"),
    Column("topic", "STRING", "topic, or the file's path"),
    Column("partition", "INT", "partition of the topic; null for files"),
    Column("offset", "BIGINT", "offset in the partition; null for files"),
    Column("source_ts", "TIMESTAMP", "the source's own time of the record"),
    Column("ingested_at", "TIMESTAMP", "when land read the record; ages are counted from here"),
)
_INGEST_DATE = Column("ingest_date", "DATE", "the day of ingested_at")
_BATCH = Column("batch", "BIGINT", "the query's batch id: since when the row is known", False)


def bronze(pipeline: PipelineDefinition) -> Table:
    """Return the table of raw records."""
    return Table(
        f"{pipeline.pipeline}_bronze",
        "Raw records and where they came from",
        (*_BRONZE, _INGEST_DATE),
        ("ingest_date",),
        ("ingested_at",),
        generational=False,
    )


def quarantine(pipeline: PipelineDefinition) -> Table:
    """Return the table of refused records, each with every reason."""
    reasons = Column("reasons", "ARRAY<STRING>", "every rule that the record broke, sorted", False)
    return Table(
        f"{pipeline.pipeline}_quarantine",
        "Refused records, with every reason",
        (*_BRONZE, reasons, _BATCH, _INGEST_DATE),
        ("ingest_date",),
        ("ingested_at", "batch"),
        LEDGER_RETENTION,
    )


def events(pipeline: PipelineDefinition) -> Table:
    """Return the table of valid, distinct events."""
    view = pipeline.events
    declared = (
        Column(name, view.types[name], "as the event has it", type_.endswith("?"))
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
            _BATCH,
            Column("event_hour", "TIMESTAMP", "event time cut to the hour", False),
        ),
        ("event_hour",),
        (view.event_time, "batch"),
        {**LEDGER_RETENTION, ALLOWED: json.dumps(pipeline.allowed_values())},
    )


def buckets(view: FeatureView) -> Table:
    """Return the table of buckets: append only, one partial column per aggregate."""
    partials = (
        Column(p.name, p.type, _comment(p), p.part.empty == "NULL", p.part.reproducible)
        for p in view.partials
    )
    return Table(
        f"{view.name}_buckets",
        "Buckets, append only: one row per keys, bucket_start and batch",
        (
            *_keys(view),
            Column(
                "bucket_start", "TIMESTAMP", f"the bucket is [bucket_start, + {view.bucket})", False
            ),
            _BATCH,
            *partials,
            Column("bucket_hour", "TIMESTAMP", "bucket_start cut to the hour", False),
        ),
        ("bucket_hour",),
        ("bucket_start", "batch"),
        {**LEDGER_RETENTION, **provenance.told(view), provenance.VERSION: "1", **SMALL_PAGES},
        sorted_by="bucket_start",
    )


def hours(view: FeatureView) -> Table:
    """Return the table of hour buckets, which upkeep makes of the minute buckets; append only."""
    partials = tuple(c for c in buckets(view).columns if c.name in {p.name for p in view.partials})
    return Table(
        f"{view.name}_hours",
        "Minute buckets added up by the hour: one row per keys, bucket_hour and upkeep",
        (
            *_keys(view),
            Column("batch", "BIGINT", "the newest batch of feature that is in the row", False),
            *partials,
            Column("bucket_hour", "TIMESTAMP", "the row is [bucket_hour, + 1 hour)", False),
            Column("bucket_day", "DATE", "the day of bucket_hour", False),
        ),
        ("bucket_day",),
        ("bucket_hour", "batch"),
        LEDGER_RETENTION,
    )


def arrivals(view: FeatureView) -> Table:
    """Return the table that the stateful engine reads as a stream: what is new to its state."""
    keys = (replace(key, nullable=True) for key in _keys(view))
    partials = (Column(p.name, p.type, _comment(p)) for p in view.partials)
    return Table(
        f"{view.name}_arrivals",
        "For the state: bucket rows as they become known, ticks of live keys, and the clock",
        (
            *keys,
            Column("bucket_start", "TIMESTAMP", "the bucket's start; null in a tick"),
            *partials,
            _BATCH,
            Column("as_of", "TIMESTAMP", "the end of the windows when the row came", False),
        ),
        (),
        ("batch",),
        LEDGER_RETENTION,
    )


def features(view: FeatureView) -> Table:
    """Return the gold table: one row per keys."""
    values = (
        Column(
            c.name,
            c.type,
            f"{c.what}, in {c.window.bounds()}; exact at as_of, which is the end of a bucket of "
            f"{view.bucket}; at any other time off by at most that bucket",
            c.empty == "NULL" or not c.is_term or bool(c.overflow),
        )
        for c in view.values
    )
    overflowed = (
        Column(c.name, c.type, c.what, added=True) for c in view.columns[len(view.values) :]
    )
    return Table(
        f"{view.name}_features",
        "Rolling-window features, one row per keys, rewritten only when a value changes",
        (
            *_keys(view),
            *values,
            *overflowed,
            Column("updated_at", "TIMESTAMP", "as_of of the row's last change", False),
        ),
        (),
        ("updated_at",),
        {
            **LEDGER_RETENTION,
            "delta.enableChangeDataFeed": "true",
            "delta.enableDeletionVectors": "false",
        },
        primary_key=tuple(view.keys),
    )


def _comment(partial: Partial) -> str:
    return f"{partial.part.name} of {partial.of}"


_COUNTS = "MAP<STRING, BIGINT>"
_ADDED = (
    ("refused", _COUNTS, "clean: refused records by reason; one of two reasons counts in both"),
    ("late", _COUNTS, "clean: accepted events by how late: up to so many seconds"),
    ("late_seconds", "BIGINT", "clean: the sum of their seconds"),
    ("late_most", "BIGINT", "clean: the latest event's seconds"),
    ("merged", _COUNTS, "feature, refresh: rows of gold by what the MERGE did with them"),
    ("backlog", "BIGINT", "clean, feature: rows that waited when the batch was done"),
    ("overflowed", _COUNTS, "feature, refresh: keys whose feature is null, by overflowed feature"),
    ("freshness", "BIGINT", "feature, refresh: seconds from as_of to committed_at"),
)


def batches() -> Table:
    """Return the table of what each batch did; one for all pipelines of a lake."""
    counts = {
        "events": "events of the batch",
        "accepted": "clean: written to the events table",
        "quarantined": "clean: refused",
        "duplicates": "clean: already accepted",
        "buckets": "feature: bucket rows appended",
        "keys_changed": "feature, refresh: rows of gold that changed",
    }
    return Table(
        "tidemill_batches",
        "What each query did in each batch, from the tables' own ledgers",
        (
            Column("pipeline", "STRING", "the pipeline", False),
            Column("query", "STRING", "land, clean, feature; refresh = without a new batch", False),
            Column("generation", "STRING", "the set of tables and checkpoints", False),
            Column(
                "batch", "BIGINT", "the query's batch id; the refresh number for refresh", False
            ),
            Column("view", "STRING", "the feature view, for feature and refresh"),
            Column("committed_at", "TIMESTAMP", "when the table took the commit", False),
            Column("version", "BIGINT", "the table's version after it", False),
            Column("as_of", "TIMESTAMP", "feature, refresh: the end of the windows"),
            Column("ledger", "STRING", "feature, refresh: the ledger of gold's commit, JSON"),
            *(Column(name, "BIGINT", comment) for name, comment in counts.items()),
            Column("seconds", "MAP<STRING, DOUBLE>", "seconds by step"),
            *(Column(name, type_, comment, added=True) for name, type_, comment in _ADDED),
            Column("date", "DATE", "the day of committed_at", False),
        ),
        ("date",),
        ("committed_at", "version"),
        generational=False,
    )


def of(pipeline: PipelineDefinition) -> list[Table]:
    """Return every table of the pipeline, in the order of the flow."""
    per_view = [table for view in pipeline.views for table in (buckets(view), features(view))]
    if pipeline.engine == "stateful":
        per_view += map(arrivals, pipeline.views)
    return [bronze(pipeline), quarantine(pipeline), events(pipeline), *per_view, batches()]


def _keys(view: FeatureView) -> tuple[Column, ...]:
    return tuple(Column(key, view.types[key], "entity key", False) for key in view.keys)
