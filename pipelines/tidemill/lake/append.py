"""One append per table and batch, whatever died when.

The append carries a Delta transaction (application = pipeline, table, generation; version = batch
id), so Delta skips, in silence, a batch that it has. Its ledger stands in the same commit, so the
skip can be proven ours: the same batch must have written the same rows, by count and xor of row
hashes.
"""

from __future__ import annotations

import hashlib
import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.errors import LakeError, LedgerError
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import folder_append, folder_merge, ledger, turns, writer
from tidemill.lake.commits.ledger import Commit
from tidemill.lake.tables import Table

log = logging.getLogger(__name__)

# Values of rows that come to the driver to be written.
MOST_VALUES = 2_000_000
ANY_SIZE = sys.maxsize
_BY_ONE_TIME = (["TIMESTAMP"], ["DATE"])


@dataclass(frozen=True)
class Appended:
    """An append that stands: its ledger, and whether this call wrote it or found it."""

    ledger: Mapping[str, Any]
    written: bool


def digest(table: Table, where: str = "TRUE") -> Column:
    """Return the aggregate that tells rows apart: `<count>:<xor of row hashes>`, in any order of
    rows."""
    # Cast as the table does: the hash of an INT 0 is another than that of the BIGINT it becomes.
    row = ", ".join(
        f"CAST({column.name} AS {column.type})" for column in table.columns if column.digested
    )
    xor = f"coalesce(bit_xor(CASE WHEN {where} THEN xxhash64({row}) END), 0L)"
    return F.expr(f"concat_ws(':', count_if({where}), hex({xor}))")


def digest_of_all(digests: Iterable[str]) -> str:
    """Return the digest of rows from the digests of their parts."""
    counts, xor = 0, 0
    for text in digests:
        count, _, hashes = text.partition(":")
        counts, xor = counts + int(count), xor ^ int(hashes, 16)
    return f"{counts}:{xor:X}"


def columns(table: Table) -> str:
    """Return a hash of the columns that a digest reads: digests of others cannot be compared."""
    names = ",".join(column.name for column in table.columns if column.digested)
    return hashlib.sha256(names.encode()).hexdigest()[:8]


def found(
    lake: Lake, table: Table, batch: int, rows_digest: str, newest: Commit | None
) -> Mapping[str, Any] | None:
    """Return the ledger by which the table already holds this batch, None when it does not.

    Raises LedgerError when it holds other rows under the same batch id. When the commit itself is
    gone (logs are cleaned), the rows with that batch id are the proof, and the ledger is empty.
    """
    if newest is None:
        return _from_rows(lake, table, batch, rows_digest)
    assert newest.ledger is not None
    if int(newest.ledger["batch"]) < batch:
        return None
    for commit in ledger.appends(lake.commits(table.name, None), lake.generation):
        assert commit.ledger is not None
        if int(commit.ledger["batch"]) == batch:
            if commit.ledger.get("columns") == columns(table):  # else the view changed since
                _same(table, batch, str(commit.ledger["digest"]), rows_digest)
            return commit.ledger
    return _from_rows(lake, table, batch, rows_digest, required=True)


def append(
    lake: Lake,
    table: Table,
    rows: DataFrame,
    batch: int,
    fields: Mapping[str, Any],
    newest: Commit | None,
) -> Appended:
    """Append `rows` as `batch`, once; `fields` (with the rows' digest) becomes the commit's
    ledger. `newest` is the generation's newest append, read before: only a batch up to it can be
    one that Delta would skip. A few rows the driver writes to a folder's table itself."""
    before = found(lake, table, batch, fields["digest"], newest)
    if before is not None:
        log.info("%s holds batch %d already", table.name, batch)
        return Appended(before or fields, written=False)
    metadata = {"generation": lake.generation, "batch": batch, "columns": columns(table), **fields}
    rows, transaction = rows.select(*table.column_names), (lake.app_id(table), batch)
    if not _by_driver(lake, table, rows, metadata, transaction):
        ordered = _in_order(rows, table)
        _past_properties(lambda: writer.write(ordered, table.name, metadata, transaction))
    return Appended(metadata, written=True)


def _by_driver(
    lake: Lake,
    table: Table,
    rows: DataFrame,
    told: Mapping[str, Any],
    transaction: writer.Transaction,
) -> bool:
    """Append in the driver where it may: few rows into a folder's table that is partitioned by a
    time or a date. Return whether it did; else Spark writes, also as the driver's write failed,
    which leaves all or nothing."""
    folder = lake.driver_folder and lake.driver_folder / table.name
    declared = {column.name: column.type for column in table.columns}
    if not folder or [declared[name] for name in table.partitioned_by] not in _BY_ONE_TIME:
        return False
    types, count = lake.metadata(table.name).types, int(told["digest"].partition(":")[0])
    if not 0 < count * folder_merge.values_of_row(types.values()) <= MOST_VALUES:
        return False
    if (typed := _typed(rows, types)) is None:
        return False
    with turns.turn_if_free(folder) as ours:
        try:
            if not ours or not folder_merge.suits(folder, types, ANY_SIZE, table.partitioned_by):
                return False
            at_hand = typed.toArrow()
            if table.sorted_by is not None:
                at_hand = at_hand.sort_by(table.sorted_by)
            (partition,) = table.partitioned_by
            return folder_append.append(folder, at_hand, partition, told, transaction)
        except LakeError as error:
            log.warning("%s; Spark writes instead", error)
            return False


def _typed(rows: DataFrame, types: Mapping[str, str]) -> DataFrame | None:
    """Return rows with the types of their columns: an INT is a BIGINT where the column is. None
    where another type differs, as Spark alone casts as its SQL does."""
    given = {field.name: field.dataType.simpleString() for field in rows.schema}
    wider = [name for name, kind in given.items() if (kind, types.get(name)) == ("int", "bigint")]
    if {**given, **dict.fromkeys(wider, "bigint")} != dict(types):
        return None
    return rows.withColumns({name: F.col(name).cast("bigint") for name in wider})


def _past_properties(write: Callable[[], None]) -> None:
    """Write, and once more when another commit changed the table's properties meanwhile, as expiry
    does; the transaction lets one of two writes through."""
    try:
        write()
    except PySparkException as error:
        if "DELTA_METADATA_CHANGED" not in f"{error.getCondition()} {error}":
            raise
        write()


def _in_order(rows: DataFrame, table: Table) -> DataFrame:
    """Sort each task's rows as the table wishes. The writer sorts them again, by partition, which
    leaves the rows of one in their order: two sorts by a number each take less than one by both."""
    return rows if table.sorted_by is None else rows.sortWithinPartitions(table.sorted_by)


def _from_rows(
    lake: Lake, table: Table, batch: int, rows_digest: str, *, required: bool = False
) -> Mapping[str, Any] | None:
    rows = lake.spark.table(table.name).where(F.col("batch") == batch)
    stored_digest = str(rows.agg(digest(table)).collect()[0][0])
    if stored_digest.startswith("0:") and not required:
        return None
    _same(table, batch, stored_digest, rows_digest)
    return {}


def _same(table: Table, batch: int, stored_digest: str, rows_digest: str) -> None:
    if stored_digest != rows_digest:
        raise other_rows(table, batch, stored_digest, rows_digest)


def other_rows(table: Table, batch: int, stored: object, now: object) -> LedgerError:
    """Return the error of a batch id that comes again with other rows."""
    return LedgerError(
        f"batch {batch} was written before with other rows ({stored}, now {now})",
        where=table.name,
        expected="the same rows; a checkpoint was lost or copied: see docs/operations.md",
    )
