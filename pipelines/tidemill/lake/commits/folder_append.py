"""An append of few rows to a folder's table by the driver: one commit, as Spark's would be.

    rows ──Arrow──► a file for each partition ──► commit: ledger, transaction, files ──► checksum

Spark takes most of a second to find out whether the table has the transaction, and a job to write.
Arrow writes the files here, with what Delta's statistics tell of them, into the folders that Spark
names. The commit is written as the protocol says: of the two ways that `deltalake` has, one leaves
out the transaction, and the other the zone of a partition's time (decision 0119).
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tidemill.lake.commits import checksum
from tidemill.lake.commits.folder_merge import STATISTICS, failing_as_lake_error
from tidemill.lake.commits.writer import Transaction

if TYPE_CHECKING:
    import pyarrow
    from deltalake import DeltaTable

Action = dict[str, Any]


def append(
    folder: Path,
    rows: pyarrow.Table,
    partition: str,
    ledger: Mapping[str, Any],
    transaction: Transaction,
) -> bool:
    """Append rows, of the columns and in the order that the table in a folder has, a file for each
    value of `partition`, which is a time or a date.

    False, and nothing is committed, where the table has seen the transaction's number, another
    commit came first, a row has a null where the table takes none or as its partition, or the table
    wants statistics of other columns than times and whole numbers. LakeError where `deltalake`
    cannot open it or the disk fails; then nothing is committed either.
    """
    from deltalake import DeltaTable

    application, number = transaction
    with failing_as_lake_error(folder):
        table = DeltaTable(str(folder))
        seen = table.transaction_version(application)
        told_of = _told_of(table, rows)
        if (seen is not None and seen >= number) or told_of is None or rows[partition].null_count:
            return False
        files = [*_written(folder, rows, partition, told_of)]
        now = int(time.time() * 1000)
        txn = {"appId": application, "version": number, "lastUpdated": now}
        info = _commit_info(table.version(), files, rows.num_rows, ledger, now)
        actions = [{"commitInfo": info}, {"txn": txn}, *({"add": file} for file in files)]
        if not _committed(folder / "_delta_log", table.version() + 1, actions):
            return False
    with suppress(OSError):  # it stands; without a checksum the next append is Spark's
        checksum.follow(folder / "_delta_log", table.version() + 1)
    return True


def _told_of(table: DeltaTable, rows: pyarrow.Table) -> list[str] | None:
    """Return the columns that the table has statistics of; None where these rows, or their
    statistics, are Spark's to write."""
    import pyarrow as pa

    schema = table.schema()
    if any(rows[field.name].null_count for field in schema.fields if not field.nullable):
        return None
    said = table.metadata().configuration.get(STATISTICS, "")
    names = [name.strip() for name in said.split(",") if name.strip()]
    kinds = [rows.schema.field(name).type for name in names if name in rows.column_names]
    known = all(pa.types.is_timestamp(kind) or pa.types.is_int64(kind) for kind in kinds)
    return names if names and known and len(kinds) == len(names) else None


def _written(
    folder: Path, rows: pyarrow.Table, partition: str, told_of: Sequence[str]
) -> Iterator[Action]:
    """Write the files of rows; yield what a commit says of each."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    for value in rows[partition].unique().to_pylist():
        of, told = _partition(partition, value)
        part = rows.filter(pc.equal(rows[partition], value)).drop_columns([partition])
        (folder / of).mkdir(exist_ok=True)
        file = folder / of / f"part-00000-{uuid.uuid4()}.c000.snappy.parquet"
        pq.write_table(part, file, compression="snappy")
        yield {
            "path": quote(str(file.relative_to(folder)), safe="/="),  # a URI
            "partitionValues": {partition: told},
            "size": file.stat().st_size,
            "modificationTime": int(time.time() * 1000),
            "dataChange": True,
            "stats": json.dumps(_statistics(part, told_of)),
        }


def _partition(name: str, value: date) -> tuple[str, str]:
    """Return the folder of a partition, as Spark calls it, and its value as a commit tells it."""
    if not isinstance(value, datetime):
        return f"{name}={value.isoformat()}", value.isoformat()
    at = value.astimezone(timezone.utc)
    return f"{name}={at:%Y-%m-%d %H%%3A%M%%3A%S}", f"{at:%Y-%m-%dT%H:%M:%S.%fZ}"


def _statistics(rows: pyarrow.Table, names: Sequence[str]) -> dict[str, Any]:
    """Return what Delta tells of a file's rows."""
    import pyarrow.compute as pc

    ends = {name: pc.min_max(rows[name]).as_py() for name in names}
    ends = {name: each for name, each in ends.items() if each["min"] is not None}
    return {
        "numRecords": rows.num_rows,
        "minValues": {name: _told(each["min"]) for name, each in ends.items()},
        "maxValues": {name: _told(each["max"]) for name, each in ends.items()},
        "nullCount": {name: rows[name].null_count for name in names},
    }


def _told(value: datetime | int) -> str | int:
    """Return a value as statistics tell it: a time in whole milliseconds, of which a reader knows
    that they are cut off."""
    if not isinstance(value, datetime):
        return value
    at = value.astimezone(timezone.utc)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"


def _commit_info(
    version: int, files: Sequence[Action], rows: int, ledger: Mapping[str, Any], now: int
) -> Action:
    """Return what a commit on a version says of itself, by the names that Spark's have."""
    metrics = {
        "numFiles": len(files),
        "numOutputRows": rows,
        "numOutputBytes": sum(file["size"] for file in files),
    }
    return {
        "timestamp": now,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": "[]"},
        "readVersion": version,
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "operationMetrics": {name: str(count) for name, count in metrics.items()},
        "userMetadata": json.dumps(ledger),
        "engineInfo": "Tidemill",
    }


def _committed(log: Path, version: int, actions: Sequence[Action]) -> bool:
    """Write a version's commit, whole or not at all; return whether nobody had written it."""
    made = log / f".{version:020}.{uuid.uuid4()}.json.new"
    with made.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(action)}\n" for action in actions)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(made, log / f"{version:020}.json")
    except FileExistsError:
        return False
    finally:
        made.unlink()
    return True
