"""MERGEs of few rows into a folder's table, by the driver with `deltalake`, not by Spark.

    the rows of a MERGE ──Arrow──► driver ──► lake/commits/folder_merge: one commit
                        └─ many, or in a catalog, or a table that asks for more ──► None: Spark's

Who asks says what the rows are: each has an `__action`, and no two have the same keys. How many
there are is known, or found by bringing `few` of them. Why, and what was measured: decisions 0110,
0117 and 0118.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from tidemill.errors import LakeError
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import folder_merge, turns
from tidemill.lake.commits.folder_merge import LARGE_VALUE
from tidemill.lake.commits.writer import Transaction
from tidemill.lake.tables import Table

log = logging.getLogger(__name__)

# What the driver merges: values of rows that come to it, and bytes of a table that it reads and
# writes again.
MOST_VALUES, MOST_BYTES = 2_000_000, 512 << 20


def few(lake: Lake, table: Table, rows: DataFrame, longest_list: int) -> pa.Table | None:
    """Return the rows, where the driver may merge so many of them into such a table; else None."""
    if lake.driver_folder is None:
        return None
    most = MOST_VALUES // _values_of_row(lake, table, longest_list)
    if not most:
        return None
    found = rows.limit(most + 1).toArrow()
    return found if found.num_rows <= most else None


def are_taken(rows: pa.Table, table: Table, keys: Sequence[str]) -> bool:
    """Return whether the driver may merge these rows: no null among their keys, which to Spark
    alone is like another, and partitions of plain names."""
    if any(rows[key].null_count for key in keys):
        return False
    for name in table.partitioned_by:
        texts = pc.unique(rows[name]).cast(pa.string())
        plain = pc.match_substring_regex(texts, folder_merge.PLAIN_PARTITION)
        if not all(plain.to_pylist()):
            return False
    return True


def merge(
    lake: Lake,
    table: Table,
    rows: DataFrame | pa.Table,
    count: int,
    keys: Sequence[str],
    clauses: Collection[str],
    ledger: Mapping[str, Any],
    transaction: Transaction,
    *,
    longest_list: int = LARGE_VALUE,
) -> bool | None:
    """MERGE `count` rows in the driver where it may, by the clauses that their `__action` names;
    the rows `are_taken`, and a list of theirs has `longest_list` values at most.

    Return whether it did, False where another came first or no row is another, None where the MERGE
    is Spark's, also as the driver's failed: it commits all or nothing.
    """
    folder = lake.driver_folder and lake.driver_folder / table.name
    with turns.turn_if_free(folder) as ours:
        if not folder or not ours:
            return None
        try:
            if not _is_of_driver(lake, folder, table, rows, count, longest_list):
                return None
            names = table.column_names
            at_hand = rows if isinstance(rows, pa.Table) else rows.toArrow()
            words = folder, at_hand, keys, names, clauses, ledger, transaction
            return folder_merge.merge(*words, _determined(table))
        except LakeError as error:
            log.warning("%s; Spark merges instead", error)
            return None


def _is_of_driver(
    lake: Lake,
    folder: Path,
    table: Table,
    rows: DataFrame | pa.Table,
    count: int,
    longest_list: int,
) -> bool:
    """Return whether the driver merges, of a table in a folder: some rows and few values of them,
    each of the column's own type, as Spark alone casts them as its SQL does. A commit without rows
    is Spark's, as `deltalake` makes none."""
    if not count or count * _values_of_row(lake, table, longest_list) > MOST_VALUES:
        return False
    types = lake.metadata(table.name).types
    schema = from_arrow_schema(rows.schema) if isinstance(rows, pa.Table) else rows.schema
    given = {field.name: field.dataType.simpleString().lower() for field in schema}
    if any(given.get(name) != kind for name, kind in types.items()):
        return False
    return folder_merge.suits(folder, types, MOST_BYTES, table.partitioned_by)


def _determined(table: Table) -> list[str]:
    """Return the partitions of a table that is merged into, which the keys of a row determine: one
    of them, or the day of another. Of other types than these the driver's conditions were not
    compared."""
    types = {column.name: column.type for column in table.columns}
    return [name for name in table.partitioned_by if types[name] in ("DATE", "STRING")]


def _values_of_row(lake: Lake, table: Table, longest_list: int) -> int:
    """Return for how many plain values a row counts."""
    return folder_merge.values_of_row(lake.metadata(table.name).types.values(), longest_list)
