"""A table's change data feed where the table is a folder, as `deltalake` reads it: no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemill.errors import LakeError

if TYPE_CHECKING:
    import pyarrow
    from deltalake import DeltaTable

# What a table's protocol may ask of who reads it; others hide rows, or name columns otherwise.
_READABLE = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}


def beyond_files(table: DeltaTable) -> set[str]:
    """Return what the table's protocol asks of a reader beyond reading its files, as deletion
    vectors are; such a table is left to Spark."""
    return {*(table.protocol().reader_features or [])} - _READABLE


def of_folder(
    table: Path, first: int, last: int, columns: Sequence[str], predicate: str
) -> pyarrow.Table:
    """Return these columns of the feed's rows that fulfil the predicate, from a version to another,
    both included, of the table in a folder.

    LakeError where the table needs Spark; deltalake has errors of its own.
    """
    from deltalake import DeltaTable

    opened = DeltaTable(str(table))
    if beyond := beyond_files(opened):
        raise LakeError(
            f"deltalake does not read {', '.join(sorted(beyond))}",
            where=table.name,
            expected="Spark in its place",
        )
    return feed(opened, first, last, columns=[*columns], predicate=predicate)


def feed(table: DeltaTable, first: int, last: int | None = None, **of_rows: Any) -> pyarrow.Table:
    """Return a table's change data feed from a version to another, both included, or to the newest;
    `of_rows` are more words of `load_cdf`.

    LakeError for a folder whose name deltalake takes no feed of: one with `[` or `<` in it ends in
    a panic there (1.6), which is no Exception.
    """
    import pyarrow

    try:
        return pyarrow.table(table.load_cdf(starting_version=first, ending_version=last, **of_rows))
    except BaseException as error:
        if not is_panic(error):
            raise
        raise LakeError(
            "deltalake cannot read the change data feed of a folder of this name",
            where=table.table_uri,
            expected="a name of letters, digits, - and _; or `--engine spark`",
        ) from error


def is_panic(error: BaseException) -> bool:
    """Return whether an error is a panic of `deltalake`'s, which is no Exception and has no
    name that could be imported."""
    return type(error).__name__ == "PanicException"
