"""The rows of a table in a folder, as its data files have them, for Arrow and DuckDB.

`deltalake` lists the files, Arrow reads them by itself. Left to `deltalake`, Arrow would read
through Python: whoever needs a part of the rows alone, as a LIMIT does, leaves threads behind that
still read, and a process that ends meanwhile crashes or hangs as they call a Python that is gone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb
    from deltalake import DeltaTable
    from pyarrow.dataset import Dataset


def rows(table: DeltaTable, folder: Path, **options: Any) -> Dataset:
    """Return the rows of a table, open at a version, whose files are in `folder`; `options` are
    more words of `to_pyarrow_dataset`."""
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    files = SubTreeFileSystem(str(folder.absolute()), LocalFileSystem())
    return table.to_pyarrow_dataset(filesystem=files, **options)


def connected() -> duckdb.DuckDBPyConnection:
    """Return a connection to a DuckDB of its own, in UTC, that fetches nothing from elsewhere."""
    import duckdb

    return duckdb.connect(config={"autoinstall_known_extensions": "false", "TimeZone": "UTC"})
