"""MERGEs of few rows into a folder's table, by the driver with `deltalake`, not by Spark.

    the rows of a MERGE ──Arrow──► driver ──► lake/commits/folder_merge: one commit
                        └─ many, or in a catalog, or a table that asks for more ──► None: Spark's

Who asks says what the rows are: each has an `__action`, and no two have the same keys. Why, and
what was measured: decisions 0110 and 0117.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

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


def is_taken(table: Table, keys: Sequence[str]) -> Column:
    """Return the condition of a row that the driver may merge: no null among its keys, which to
    Spark alone is like another, and partitions of plain names."""
    plain = (
        F.coalesce(F.col(name).cast("string").rlike(folder_merge.PLAIN_PARTITION), F.lit(False))
        for name in table.partitioned_by
    )
    return reduce(and_, (*(F.col(key).isNotNull() for key in keys), *plain))


def merge(
    lake: Lake,
    table: Table,
    rows: DataFrame,
    count: int,
    keys: Sequence[str],
    clauses: Collection[str],
    ledger: Mapping[str, Any],
    transaction: Transaction,
    *,
    longest_list: int = LARGE_VALUE,
) -> bool | None:
    """MERGE `count` rows in the driver where it may, by the clauses that their `__action` names;
    each row `is_taken`, and a list of theirs has `longest_list` values at most.

    Return whether it did, False where another came first or no row is another, None where the MERGE
    is Spark's, also as the driver's failed: it commits all or nothing.
    """
    folder = lake.place.folder and lake.place.folder / table.name
    with turns.turn_if_free(folder) as ours:
        if not folder or not ours:
            return None
        try:
            if not _is_of_driver(lake, folder, table, rows, count, longest_list):
                return None
            names = table.column_names
            return folder_merge.merge(
                folder, rows.toArrow(), keys, names, clauses, ledger, transaction
            )
        except LakeError as error:
            log.warning("%s; Spark merges instead", error)
            return None


def _is_of_driver(
    lake: Lake, folder: Path, table: Table, rows: DataFrame, count: int, longest_list: int
) -> bool:
    """Return whether the driver merges, of a table in a folder: some rows and few values of them,
    each of the column's own type, as Spark alone casts them as its SQL does. A commit without rows
    is Spark's, as `deltalake` makes none."""
    if not count or is_connect(lake.spark):
        return False
    types = lake.metadata(table.name).types
    if count * sum(_weight(kind, longest_list) for kind in types.values()) > MOST_VALUES:
        return False
    given = {name: kind.lower() for name, kind in rows.dtypes}
    if any(given.get(name) != kind for name, kind in types.items()):
        return False
    return folder_merge.suits(folder, types, MOST_BYTES, table.partitioned_by)


def _weight(kind: str, longest_list: int) -> int:
    """Return for how many plain values a value of this type counts: a sketch has some thousands of
    bytes."""
    if kind.startswith("array"):
        return longest_list
    return LARGE_VALUE if kind.startswith(("binary", "map", "struct")) else 1
