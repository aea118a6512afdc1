"""The tables that all pipelines of a lake share: what each batch did, what the gate found, and
where the time of profiled batches went."""

from __future__ import annotations

from tidemill.lake.tables.table import Column, Table

_COUNTS = "MAP<STRING, BIGINT>"
_ADDED = (
    ("refused", _COUNTS, "clean: refused records by reason; one of two reasons counts in both"),
    ("late", _COUNTS, "clean: accepted events by how late: up to so many seconds"),
    ("late_seconds", "BIGINT", "clean: the sum of their seconds"),
    ("late_most", "BIGINT", "clean: the latest event's seconds"),
    ("merged", _COUNTS, "rows of gold, or of a dimension, by what the MERGE did with them"),
    ("backlog", "BIGINT", "clean, feature: rows that waited when the batch was done"),
    ("overflowed", _COUNTS, "feature, refresh: keys whose feature is null, by overflowed feature"),
    ("unmatched", _COUNTS, "clean: accepted events by the dimension that has no row for them"),
    ("freshness", "BIGINT", "feature, refresh: seconds from as_of to committed_at"),
)
_COUNTED = {
    "events": "events of the batch",
    "accepted": "clean: written to the events table",
    "quarantined": "clean: refused",
    "duplicates": "clean: already accepted",
    "buckets": "feature: bucket rows appended",
    "keys_changed": "feature, refresh: rows of gold that changed",
}
BATCHES = Table(
    "tidemill_batches",
    "What each query did in each batch, from the tables' own ledgers",
    (
        Column("pipeline", "STRING", "the pipeline", False),
        Column("query", "STRING", "land, clean, feature ...; refresh = without a new batch", False),
        Column("generation", "STRING", "the set of tables and checkpoints", False),
        Column("batch", "BIGINT", "the query's batch id; the refresh number for refresh", False),
        Column("view", "STRING", "the feature view, or dimension, that it is of"),
        Column("committed_at", "TIMESTAMP", "when the table took the commit", False),
        Column("version", "BIGINT", "the table's version after it", False),
        Column("as_of", "TIMESTAMP", "feature, refresh: the end of the windows"),
        Column("ledger", "STRING", "feature, refresh: the ledger of gold's commit, JSON"),
        *(Column(name, "BIGINT", comment) for name, comment in _COUNTED.items()),
        Column("seconds", "MAP<STRING, DOUBLE>", "seconds by step"),
        *(Column(name, type_, comment, added=True) for name, type_, comment in _ADDED),
        Column("date", "DATE", "the day of committed_at", False),
    ),
    ("date",),
    ("committed_at", "version"),
    generational=False,
)
QUALITY = Table(
    "tidemill_quality",
    "What each run of `tidemill quality` expected and found",
    (
        Column("run", "STRING", "the run's id", False),
        Column("pipeline", "STRING", "the pipeline", False),
        Column("at", "TIMESTAMP", "when the run began", False),
        Column("table_name", "STRING", "the table, or the pipeline as a whole", False),
        Column("check_name", "STRING", "the reason or the check's name", False),
        Column("ok", "BOOLEAN", "whether it was as expected", False),
        Column("expected", "STRING", "what was expected", False),
        Column("found", "STRING", "what was found", False),
        Column("value", "DOUBLE", "the number found, of a check of one number"),
        Column("unexpected", "BIGINT", "how many rows were not as expected", False),
        Column("examples", "STRING", "keys of some of them, JSON", False),
        Column("date", "DATE", "the day of the run", False),
    ),
    ("date",),
    ("at",),
    generational=False,
)
PROFILES = Table(
    "tidemill_profiles",
    "Where the time of batches went that were run with --profile",
    (
        Column("pipeline", "STRING", "the pipeline", False),
        Column("query", "STRING", "the query, by its checkpoint", False),
        Column("batch", "BIGINT", "the batch id; null = before, between and after batches"),
        Column("started_at", "TIMESTAMP", "when it began", False),
        Column(
            "stack", "STRING", "functions and parts, outermost first, between semicolons", False
        ),
        Column("part", "STRING", "what the stack's time is counted to", False),
        Column("seconds", "DOUBLE", "the stack's share of the batch's seconds", False),
        Column("looks", "BIGINT", "how many looks tell of the batch", False),
        Column("date", "DATE", "the day of started_at", False),
    ),
    ("date",),
    ("started_at",),
    generational=False,
)
