"""A table as it is declared: columns, comments, partitions and properties, as data.

Partition columns stand last. Statistics are kept for the columns that queries prune by, never for
identifiers: an erased identifier must not live on in the transaction log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FORMAT = "1"
ENTITY_KEY = "entity key"  # the comment of the columns that say who a row is about
CHANGE_FEED = "delta.enableChangeDataFeed"
LEDGER_RETENTION = {"delta.logRetentionDuration": "interval 90 days"}


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
    OPTIMIZE keeps that order, and orders by it a table that has no partitions.
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
