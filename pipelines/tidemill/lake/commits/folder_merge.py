"""A MERGE of few rows into a folder's table by `deltalake`: one commit, as Spark's would be.

    rows ──► the table's files, read and written again ──┐
         └─► its change data feed ───────────────────────┴─► commit: ledger, transaction ─► checksum

The driver does it alone: no plan, no shuffle and no sort of the rows that stay as they are. Each
commit is made on the version that was read, or not at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemill.errors import LakeError
from tidemill.lake.commits import checksum
from tidemill.lake.commits.change_feed import is_panic
from tidemill.lake.commits.writer import Transaction

if TYPE_CHECKING:
    import pyarrow

# The version whose files, feed and log were compared with Spark's. 1.6.6 writes strings that
# pyarrow cannot compare, so that filters on gold fail.
_COMPARED = "1.5.0"
# `deltalake` reads these in a path as another character.
_READ_OTHERWISE = re.compile(r"[%\\]")
# What a table may ask of who writes it; beyond these, Spark does.
_WRITABLE = {"appendOnly", "invariants", "changeDataFeed"}
# What a partition's value may be as a text, by Java's rules: `deltalake` writes others into a path
# as they are, a space too, and no Spark reads the table any more.
PLAIN_PARTITION = r"^[A-Za-z0-9][A-Za-z0-9_.-]*\z"
_INTERVAL = "delta.checkpointInterval"
STATISTICS = "delta.dataSkippingStatsColumns"
_DELTAS_OWN = "10"  # the interval where a table has none
# Small enough for a reader of two cores to share a file of a few million rows.
_ROW_GROUP = 262_144
# No value of these was compared with what Spark writes.
_LEFT_TO_SPARK = re.compile(r"\b(map|variant|interval|timestamp_ntz|char|varchar)\b", re.IGNORECASE)
# For how many plain values a sketch counts, which has some thousands of bytes, or a list.
LARGE_VALUE = 1_000
_NAME = re.compile(r"[a-z_][a-z0-9_]*")  # `deltalake` takes others for names in lower case


def suits(
    folder: Path, columns: Mapping[str, str], most_bytes: int, partitions: Sequence[str] = ()
) -> bool:
    """Return whether the table in a folder, of columns by name with their types, is written to by
    the driver: one of `most_bytes` at most, in these partitions, that asks its writer for nothing
    more than a change data feed, and is not due for a checkpoint, which Spark writes after a commit
    of its own. LakeError where `deltalake` cannot open it."""
    import deltalake

    if deltalake.__version__ != _COMPARED or _READ_OTHERWISE.search(str(folder)):
        return False
    if not all(map(_NAME.fullmatch, columns)):
        return False
    if any(_LEFT_TO_SPARK.search(kind) for kind in columns.values()):
        return False
    with failing_as_lake_error(folder):
        table = deltalake.DeltaTable(str(folder))
        protocol, said = table.protocol(), table.metadata()
    if {*(protocol.writer_features or [])} - _WRITABLE or protocol.reader_features:
        return False
    if protocol.min_writer_version not in {2, 7} or said.partition_columns != [*partitions]:
        return False
    if _tells_of_lists(said.configuration, columns):
        return False
    version = table.version()
    if (version + 1) % int(said.configuration.get(_INTERVAL, _DELTAS_OWN)) == 0:
        return False
    size = checksum.size(folder / "_delta_log", version)
    return size is not None and size <= most_bytes


def values_of_row(types: Iterable[str], longest_list: int = LARGE_VALUE) -> int:
    """Return for how many plain values a row of columns with these types counts."""
    return sum(_weight(kind, longest_list) for kind in types)


def _weight(kind: str, longest_list: int) -> int:
    if kind.startswith("array"):
        return longest_list
    return LARGE_VALUE if kind.startswith(("binary", "map", "struct")) else 1


def merge(
    folder: Path,
    rows: pyarrow.Table,
    keys: Sequence[str],
    columns: Sequence[str],
    clauses: Collection[str],
    ledger: Mapping[str, Any],
    transaction: Transaction,
    partitions: Sequence[str] = (),
) -> bool:
    """MERGE rows, each of other keys and with `__action`, into the table in a folder, by the
    clauses that there are rows for, at least one: insert, update, delete, and write, which is an
    update of a row that is there and else an insert. None of the keys is null, and the values of
    `partitions`, dates or texts which the keys determine, are `PLAIN_PARTITION`: files of others
    are not read.

    False, and nothing is committed, where the table has seen the transaction's number, another
    commit came first, or nothing changes. LakeError where `deltalake` fails, as on a disk that is
    full; then nothing is committed either.
    """
    from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, WriterProperties
    from deltalake import Transaction as Seen
    from deltalake.exceptions import CommitFailedError

    application, number = transaction
    with failing_as_lake_error(folder):
        table = DeltaTable(str(folder))
        if (seen := table.transaction_version(application)) is not None and seen >= number:
            return False
    properties = CommitProperties(
        custom_metadata={"userMetadata": json.dumps(ledger)},
        max_commit_retries=0,
        app_transactions=[Seen(application, number)],
    )
    values = {name: f"new.{name}" for name in columns}
    with failing_as_lake_error(folder):
        merger = table.merge(
            rows,
            predicate=_predicate(rows, keys, partitions),
            source_alias="new",
            target_alias="old",
            commit_properties=properties,
            post_commithook_properties=PostCommitHookProperties(
                create_checkpoint=False, cleanup_expired_logs=False
            ),
            writer_properties=WriterProperties(compression="SNAPPY", max_row_group_size=_ROW_GROUP),
        )
        changing = {name: value for name, value in values.items() if name not in keys}
        if "delete" in clauses:
            merger = merger.when_matched_delete("new.__action = 'delete'")
        if "update" in clauses:
            merger = merger.when_matched_update(changing, "new.__action = 'update'")
        if "insert" in clauses:
            merger = merger.when_not_matched_insert(values)
        if "write" in clauses:
            merger = merger.when_matched_update(changing, "new.__action = 'write'")
            merger = merger.when_not_matched_insert(values, "new.__action = 'write'")
        before = table.version()
        try:
            merger.execute()
        except CommitFailedError:
            return False
        if table.version() == before:  # no row was found to delete, and there is no other
            return False
    with suppress(OSError):  # it is merged; without a checksum the next MERGE is Spark's
        checksum.follow(folder / "_delta_log", table.version())
    return True


def _predicate(rows: pyarrow.Table, keys: Sequence[str], partitions: Sequence[str]) -> str:
    """Return the condition of a row to be another's. Of a column's equality alone `deltalake` does
    not tell which partitions there are."""
    same = [f"old.{key} = new.{key}" for key in keys]
    for name in partitions:
        values = ", ".join(f"'{value}'" for value in rows[name].unique().to_pylist())
        same.append(f"old.{name} IN ({values})")
    return " AND ".join(same)


def _tells_of_lists(properties: Mapping[str, str], types: Mapping[str, str]) -> bool:
    """Return whether the table has statistics of a list, in which `deltalake` counts an empty one
    as null: who then asks for rows where it is not null would miss them. Where columns are named
    for statistics there is no list among them, as Delta refuses one."""
    lists = any("array" in kind.lower() for kind in types.values())
    return lists and STATISTICS not in properties


@contextmanager
def failing_as_lake_error(folder: Path) -> Iterator[None]:
    """Have the errors of `deltalake` and of the disk be LakeErrors."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except BaseException as error:
        if not isinstance(error, DeltaError | OSError) and not is_panic(error):
            raise
        said = str(error).splitlines() or [type(error).__name__]
        raise LakeError(
            f"the driver could not write: {said[0]}",
            where=folder.name,
            expected="what the message asks for; nothing was committed",
        ) from error
