"""What a table is, as its newest version has it: columns, properties, files.

a folder     Delta's checksum of that version, else the log as `deltalake` reads it; no Spark
a catalog    the session's queries
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Metadata:
    """A table's columns and properties; each asked for when it is first read, which in a catalog is
    a query."""

    ask_schema: Callable[[], StructType]
    ask_properties: Callable[[], Mapping[str, str]]

    @classmethod
    def of(cls, schema: str, properties: Mapping[str, str]) -> Metadata:
        """Return what Delta's log says, with the schema as it writes it."""
        fields = StructType.fromJson(json.loads(schema))
        return cls(lambda: fields, lambda: properties)

    @cached_property
    def _fields(self) -> StructType:
        return self.ask_schema()

    @cached_property
    def types(self) -> Mapping[str, str]:
        """The columns in order, each with its type as Spark writes it plainly, in lower case."""
        return {field.name: field.dataType.simpleString().lower() for field in self._fields}

    @cached_property
    def comments(self) -> Mapping[str, str]:
        """What is said of each column of which anything is."""
        said = {field.name: field.metadata.get("comment") for field in self._fields}
        return {name: comment for name, comment in said.items() if comment}

    @property
    def required(self) -> frozenset[str]:
        """The columns that cannot be null."""
        return frozenset(field.name for field in self._fields if not field.nullable)

    @cached_property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return dict(self.ask_properties())


def of_folder(table: Path) -> Metadata:
    """Return what the log in a table's folder says, read by `deltalake`."""
    from deltalake import DeltaTable

    opened = DeltaTable(str(table))
    return Metadata.of(opened.schema().to_json(), opened.metadata().configuration)


@dataclass(frozen=True)
class Detail:
    """What DESCRIBE DETAIL says of a table: Delta's id of it (a table that is made again has
    another), its living files, their bytes."""

    id: str
    files: int
    bytes: int


@dataclass(frozen=True)
class DataFile:
    """A living file of a table: its path as the log or the session names it, encoded or not; its
    bytes and rows, None where nobody tells."""

    path: str
    bytes: int | None = None
    rows: int | None = None


def files_of_folder(table: Path) -> list[DataFile]:
    """Return the files that a log names, with what it says of them, by `deltalake`."""
    from deltalake import DeltaTable

    added = DeltaTable(str(table)).get_add_actions(flatten=True)
    paths, sizes = added["path"].to_pylist(), added["size_bytes"].to_pylist()
    counted = "num_records" in added.schema.names  # no writer has to
    counts = added["num_records"].to_pylist() if counted else [None] * len(paths)
    return [DataFile(*each) for each in zip(paths, sizes, counts, strict=True)]


def detail_of_folder(table: Path) -> Detail:
    """Return what DESCRIBE DETAIL would say, by `deltalake`."""
    from deltalake import DeltaTable

    files = files_of_folder(table)
    total = sum(file.bytes or 0 for file in files)
    return Detail(str(DeltaTable(str(table)).metadata().id), len(files), total)


def of_session(spark: SparkSession, table: str) -> Metadata:
    """Return what the session's catalog says, a query for the properties."""

    def properties() -> Mapping[str, str]:
        return {row.key: row.value for row in spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}

    return Metadata(lambda: spark.table(table).schema, properties)
