"""The tables of a feature view: its buckets, what follows from them, and gold."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.features import FeatureView
from tidemill.features.columns import Partial
from tidemill.lake import provenance
from tidemill.lake.tables.day_tables import days_of_view
from tidemill.lake.tables.table import CHANGE_FEED, ENTITY_KEY, LEDGER_RETENTION, Column, Table

BATCH = Column("batch", "BIGINT", "the query's batch id: since when the row is known", False)
# Parquet's writer takes it from here: what a reader of one minute cannot skip is a page.
SMALL_PAGES = {"parquet.page.row.count.limit": "2000"}


@dataclass(frozen=True)
class ViewTables:
    """The tables of a view.

    buckets: append only, one partial column per aggregate; hours: the same added up by the hour,
    which maintenance makes of them, append only; arrivals: what the stateful engine reads as a
    stream, all that is new to its state; gold: one row per keys; history: what gold answered and
    from when on, append only, where the pipeline keeps it; days: the features at the end of each
    day that was recomputed from the events.
    """

    buckets: Table
    hours: Table
    arrivals: Table
    gold: Table
    history: Table
    days: Table


def view_tables(view: FeatureView) -> ViewTables:
    """Return the tables of a view."""
    return ViewTables(
        _buckets(view),
        _hours(view),
        _arrivals(view),
        _gold(view),
        _history(view),
        days_of_view(view),
    )


def _buckets(view: FeatureView) -> Table:
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
            BATCH,
            *partials,
            Column("bucket_hour", "TIMESTAMP", "bucket_start cut to the hour", False),
        ),
        ("bucket_hour",),
        ("bucket_start", "batch"),
        {**LEDGER_RETENTION, **provenance.told(view), provenance.VERSION: "1", **SMALL_PAGES},
        sorted_by="bucket_start",
    )


def _hours(view: FeatureView) -> Table:
    partials = tuple(c for c in _buckets(view).columns if c.name in {p.name for p in view.partials})
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


def _arrivals(view: FeatureView) -> Table:
    keys = (replace(key, nullable=True) for key in _keys(view))
    partials = (Column(p.name, p.type, _comment(p)) for p in view.partials)
    return Table(
        f"{view.name}_arrivals",
        "For the state: bucket rows as they become known, ticks of live keys, and the clock",
        (
            *keys,
            Column("bucket_start", "TIMESTAMP", "the bucket's start; null in a tick"),
            *partials,
            BATCH,
            Column("as_of", "TIMESTAMP", "the end of the windows when the row came", False),
        ),
        (),
        ("batch",),
        LEDGER_RETENTION,
    )


def _gold(view: FeatureView) -> Table:
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
            CHANGE_FEED: "true",
            "delta.enableDeletionVectors": "false",
        },
        primary_key=tuple(view.keys),
        sorted_by="updated_at",
    )


def _history(view: FeatureView) -> Table:
    keys = (replace(key, nullable=True) for key in _keys(view))
    return Table(
        f"{view.name}_history",
        "What gold answered, append only: a row per changed keys and version, and one per version",
        (
            *keys,
            Column("kind", "STRING", "row; gone = no row any more; version = without keys", False),
            Column("begins", "BOOLEAN", "version: what was answered before is not known", False),
            Column("version", "BIGINT", "gold's version that answers so", False),
            Column("as_of", "TIMESTAMP", "the end of that version's windows", False),
            Column("served_at", "TIMESTAMP", "when gold took that version", False),
            *(Column(c.name, c.type, f"{c.what}, in {c.window.bounds()}") for c in view.shown),
            Column("served_day", "DATE", "the day of served_at", False),
        ),
        ("served_day",),
        ("version", "as_of", "served_at"),
        LEDGER_RETENTION,
        generational=False,
    )


def _comment(partial: Partial) -> str:
    return f"{partial.part.name} of {partial.of}"


def _keys(view: FeatureView) -> tuple[Column, ...]:
    return tuple(Column(key, view.types[key], ENTITY_KEY, False) for key in view.keys)
