"""The tables of days that were recomputed from the events: of a stream's rows, or of a view's
features at the end of each day.

A day is one partition, replaced in one commit: its rows, and one row that stands for the day itself
and says what came of it. So a day without rows is known to have none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tidemill.features import FeatureView
from tidemill.lake.tables.table import ENTITY_KEY, LEDGER_RETENTION, Column, Table

ROW, DAY = "row", "day"  # kinds of rows
DEFINITION = "tidemill.definition"  # of a view's days: what decides their values
_OF_ROWS = (Column("row_kind", "STRING", "row; day = what is said of the day, no row", False),)
_OF_DAYS = (
    Column("recomputed_at", "TIMESTAMP", "day: when it was recomputed"),
    Column("generation", "STRING", "day: of the events that it was made of"),
    Column("events_batch", "BIGINT", "day: clean's newest batch that counted"),
    Column("row_count", "BIGINT", "day: its rows"),
    Column("different", "BIGINT", "day: what was different where people read until then"),
    Column("causes", "MAP<STRING, BIGINT>", "day: how many of these by cause"),
)
PARTITION = "recomputed_day"
_OF_MERGED = ("day", "layer")  # of the SQL view `<name>_merged` alone
OWN = (*(column.name for column in (*_OF_ROWS, *_OF_DAYS)), PARTITION, *_OF_MERGED)


def days_of_stream(stream: Table) -> Table:
    """Return the table of the days of a stream's rows, which is declared as `stream`."""
    rows = (replace(c, nullable=True) for c in stream.columns if c.name != "batch")
    what = f"Rows of {stream.name}, recomputed from the events by the day"
    return _days(stream.name, what, rows)


def days_of_view(view: FeatureView) -> Table:
    """Return the table of a view's features at the end of each day."""
    keys = (Column(key, view.types[key], ENTITY_KEY) for key in view.keys)
    values = (Column(c.name, c.type, f"{c.what}, in {c.window.bounds()}") for c in view.shown)
    what = f"Features of {view.name} at the end of each day, recomputed from the events"
    days = _days(view.name, what, (*keys, *values))
    return replace(days, properties={**days.properties, DEFINITION: view.definition})


def taken(days: Table) -> list[str]:
    """Return the names of columns that a row has, and that a day has for itself."""
    names = [name.lower() for name in days.column_names]
    return [name for name in OWN if names.count(name) > (name not in _OF_MERGED)]


def _days(name: str, what: str, rows: Iterable[Column]) -> Table:
    day = Column(PARTITION, "DATE", "the day, UTC", False)
    return Table(
        f"{name}_batch",
        what,
        (*rows, *_OF_ROWS, *_OF_DAYS, day),
        (PARTITION,),
        ("events_batch",),
        LEDGER_RETENTION,
        generational=False,
    )
