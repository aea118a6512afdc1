"""Tables made as they are declared, where they are missing or again and empty; and removed."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping

from pyspark.errors import PySparkException

from tidemill.lake.catalog import Lake, register
from tidemill.lake.schema import ddl, log_properties
from tidemill.lake.schema.table_properties import FORMAT_VERSION, GENERATION, OWNER
from tidemill.lake.schema.verification import difference
from tidemill.lake.session.session import on_databricks
from tidemill.lake.tables import FORMAT, Table


def new_generation() -> str:
    """Return a name for a new set of tables and checkpoints."""
    return uuid.uuid4().hex


def create(
    lake: Lake, table: Table, *, replace: bool = False, said: Mapping[str, str] | None = None
) -> None:
    """Make the table as declared, of the lake's generation; with `replace`, empty and in one
    commit, its history kept. `said` are properties besides."""
    root = lake.place.folder
    properties = {
        FORMAT_VERSION: FORMAT,
        GENERATION: lake.generation if table.generational else new_generation(),
        OWNER: lake.pipeline.pipeline,
        **log_properties.declared(lake.place, lake.pipeline),
        **(said or {}),
    }
    keyed = bool(lake.place.catalog) and on_databricks()
    folder = root and root / table.name
    lake.spark.sql(ddl.create(table, properties, folder=folder, replace=replace, keyed=keyed))


def ensure(lake: Lake, table: Table) -> None:
    """Make the table where the lake has none, and know one that another process has made."""
    if not lake.has(table.name):
        try:
            create(lake, table)
        except PySparkException:
            if not lake.has(table.name):  # another process, on a catalog, may have made it now
                raise
    elif not lake.spark.catalog.tableExists(table.name):
        register(lake.spark, lake.place)


def conform(lake: Lake, table: Table) -> None:
    """Make the table where it is missing, and again, empty, where it has other columns."""
    exists = lake.spark.catalog.tableExists(table.name)
    if not exists or difference(lake, table):
        create(lake, table, replace=exists)


def drop(lake: Lake, name: str) -> None:
    """Remove a table, with its files where the lake is a folder; its log goes first, by one rename,
    as half a log would still be registered as a table."""
    lake.spark.sql(f"DROP TABLE IF EXISTS {name}")
    if lake.place.folder is None:
        return
    folder = lake.place.folder / name
    if (folder / "_delta_log").exists():
        (folder / "_delta_log").rename(folder / "_dropped_log")
    shutil.rmtree(folder, ignore_errors=True)
