"""MERGEs that the driver does, by `deltalake`, in the place of Spark: few rows into a folder's table.

    the rows of a MERGE ──Arrow──► driver ──► lake/commits/folder_merge: one commit
                        └─ many, or in a catalog, or a table that asks for more ──► None: Spark's

Who asks says what the rows are: each has an `__action`, and no two have the same keys. Why, and
what was measured: decisions 0110 and 0117.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from tidemill.errors import LakeError
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import folder_merge, turns
from tidemill.lake.commits.writer import Transaction
from tidemill.lake.parameters import is_connect
from tidemill.lake.tables import Table

log = logging.getLogger(__name__)

# What the driver merges: values of rows that come to it, and bytes of a table that it reads and
# writes again.
MOST_VALUES, MOST_BYTES = 2_000_000, 512 << 20
LARGE_VALUE = 1_000  # plain values


def merge(
    lake: Lake,
    table: Table,
    rows: DataFrame,
    count: int,
    keys: Sequence[str],
    clauses: Collection[str],
    ledger: Mapping[str, Any],
    transaction: Transaction,
) -> bool | None:
    """MERGE `count` rows in the driver where it may, by the clauses that their `__action` names;
    none of their keys is null. Return whether it did, False where another came first, None where
    the MERGE is Spark's, also as the driver's failed: it commits all or nothing."""
    folder = lake.place.folder and lake.place.folder / table.name
    with turns.turn_if_free(folder) as ours:
        if not folder or not ours:
            return None
        try:
            if not _is_of_driver(lake, folder, table, rows, count):
                return None
            names = table.column_names
            return folder_merge.merge(
                folder, rows.toArrow(), keys, names, clauses, ledger, transaction
            )
        except LakeError as error:
            log.warning("%s; Spark merges instead", error)
            return None


def _is_of_driver(lake: Lake, folder: Path, table: Table, rows: DataFrame, count: int) -> bool:
    """Return whether the driver merges, of a table in a folder: some rows and few values of them,
    each of the column's own type, as Spark alone casts them as its SQL does. A commit without rows
    is Spark's, as `deltalake` makes none."""
    if not count or is_connect(lake.spark):
        return False
    types = lake.metadata(table.name).types
    if count * sum(map(_weight, types.values())) > MOST_VALUES:
        return False
    given = {name: kind.lower() for name, kind in rows.dtypes}
    if any(given.get(name) != kind for name, kind in types.items()):
        return False
    return folder_merge.suits(folder, types, MOST_BYTES)


def _weight(kind: str) -> int:
    """Return for how many plain values a value of this type counts: a sketch or a list has some
    thousands of bytes."""
    return LARGE_VALUE if kind.startswith(("binary", "array", "map", "struct")) else 1
