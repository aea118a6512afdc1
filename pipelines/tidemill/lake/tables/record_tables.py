"""The tables of records as they came: of a pipeline's source, and of each dimension's."""

from __future__ import annotations

from tidemill.lake.tables.table import LEDGER_RETENTION, Column, Table
from tidemill.lake.tables.view_tables import BATCH

_RECORD = (
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


def bronze_table(name: str) -> Table:
    """Return the table of raw records, as a source brought them."""
    return Table(
        f"{name}_bronze",
        "Raw records and where they came from",
        (*_RECORD, _INGEST_DATE),
        ("ingest_date",),
        ("ingested_at",),
        generational=False,
    )


def quarantine_table(name: str) -> Table:
    """Return the table of refused records."""
    reasons = Column("reasons", "ARRAY<STRING>", "every rule that the record broke, sorted", False)
    return Table(
        f"{name}_quarantine",
        "Refused records, with every reason",
        (*_RECORD, reasons, BATCH, _INGEST_DATE),
        ("ingest_date",),
        ("ingested_at", "batch"),
        LEDGER_RETENTION,
    )
