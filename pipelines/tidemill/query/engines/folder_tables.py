"""The lake's tables for those who read without Spark: DuckDB, over what `deltalake` finds in the
log.

A folder's tables are read from their files, a catalog's through the session. It is how notebooks
count again what they plot, and how an analyst gets at gold from a laptop.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import SparkSession

from tidemill.config.settings import Place
from tidemill.lake.commits import data_files
from tidemill.lake.commits.change_feed import feed

if TYPE_CHECKING:
    import duckdb


class Lake(Protocol):
    """Whose tables are read: where they are, and the session that knows them."""

    @property
    def place(self) -> Place:
        """The folder, or the catalog's schema."""

    @property
    def spark(self) -> SparkSession:
        """The session."""


def connect(lake: Lake, *names: str) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB connection that knows the tables named, each as it stands now, in UTC."""
    connection = data_files.connected()
    for name in names:
        connection.register(name, _table(lake, name))
    return connection


def changes(lake: Lake, name: str, version: int) -> Any:
    """Return the table's change data feed since a version, in Arrow; a connection registers it."""
    if lake.place.folder is None:
        return lake.spark.sql(f"SELECT * FROM table_changes('{name}', {version})").toArrow()
    return feed(_delta(lake.place.folder / name), version)


def _table(lake: Lake, name: str) -> Any:
    if lake.place.folder is None:
        return lake.spark.table(name).toArrow()
    folder = lake.place.folder / name
    return data_files.rows(_delta(folder), folder)


def _delta(folder: Path) -> Any:
    from deltalake import DeltaTable

    return DeltaTable(str(folder))
