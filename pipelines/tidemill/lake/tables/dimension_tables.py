"""The tables of a dimension: its records as they came, those refused, and what they made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from tidemill.config.dimension import Dimension
from tidemill.lake.tables.record_tables import bronze_table, quarantine_table
from tidemill.lake.tables.table import LEDGER_RETENTION, Column, Table

FOLLOWS = "tidemill.dimension"  # of its rows: how they follow from the changes


@dataclass(frozen=True)
class DimensionTables:
    """The tables of a dimension.

    bronze: records of changes as they came; quarantine: refused ones; rows: what is known of each
    key, now or at any time.
    """

    bronze: Table
    quarantine: Table
    rows: Table

    @property
    def all(self) -> tuple[Table, ...]:
        """The tables, in the order of the flow."""
        return (self.bronze, self.quarantine, self.rows)


def dimension_tables(dimension: Dimension) -> DimensionTables:
    """Return the tables of a dimension."""
    name = dimension.name
    return DimensionTables(bronze_table(name), quarantine_table(name), _rows(dimension))


def _rows(dimension: Dimension) -> Table:
    grain = "one row per keys and change" if dimension.has_history else "one row per keys"
    return Table(
        f"{dimension.name}_dimension",
        f"What the newest changes say of each key, deleted ones remembered: {grain}",
        (
            *(Column(k, dimension.type_of(k), "key", False) for k in dimension.keys),
            *_attributes(dimension),
            Column("deleted", "BOOLEAN", "the key was deleted: its attributes are null", False),
            Column("changed_at", "TIMESTAMP", "the source's own time of the change", False),
            *(_VALID if dimension.has_history else ()),
            Column("position", "STRING", "where in the source's order the change stands", False),
            Column("batch", "BIGINT", "the batch that wrote the row last", False),
        ),
        (),
        ("changed_at", "batch"),
        {
            **LEDGER_RETENTION,
            "delta.enableDeletionVectors": "false",
            FOLLOWS: json.dumps(dimension.follows, sort_keys=True),
        },
        sorted_by="changed_at",
    )


def _attributes(dimension: Dimension) -> Iterator[Column]:
    """Yield the attributes: a deleted row has none, and a later declaration may bring more."""
    for name in dimension.attributes:
        optional = dimension.column_types[name].endswith("?")
        yield Column(name, dimension.type_of(name), "as the change has it", added=optional)


_VALID = (
    Column("valid_from", "TIMESTAMP", "the row holds in [valid_from, valid_to)", False),
    Column("valid_to", "TIMESTAMP", "null: it holds still"),
)
