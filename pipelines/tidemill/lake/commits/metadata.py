"""What a table is, as its newest version has it: columns, properties, files.

a folder     Delta's checksum of that version, else the log as `deltalake` reads it; no Spark
a catalog    the session's queries
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Metadata:
    """`types` are the columns in order, each with its type as Spark writes it plainly, in lower
    case; `required` those that cannot be null."""

    types: Mapping[str, str]
    required: frozenset[str]
    properties: Mapping[str, str]

    @classmethod
    def of(cls, schema: str | StructType, properties: Mapping[str, str]) -> Metadata:
        """Return what a schema says, Spark's own or as Delta's log writes it."""
        fields = StructType.fromJson(json.loads(schema)) if isinstance(schema, str) else schema
        types = {field.name: field.dataType.simpleString().lower() for field in fields}
        required = frozenset(field.name for field in fields if not field.nullable)
        return cls(types, required, dict(properties))


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
    said = (added[name].to_pylist() for name in ("path", "size_bytes", "num_records"))
    return [DataFile(*each) for each in zip(*said, strict=True)]


def detail_of_folder(table: Path) -> Detail:
    """Return what DESCRIBE DETAIL would say, by `deltalake`."""
    from deltalake import DeltaTable

    files = files_of_folder(table)
    total = sum(file.bytes or 0 for file in files)
    return Detail(str(DeltaTable(str(table)).metadata().id), len(files), total)


def of_session(spark: SparkSession, table: str) -> Metadata:
    """Return what the session's catalog says, by two queries."""
    rows = spark.sql(f"SHOW TBLPROPERTIES {table}").collect()
    return Metadata.of(spark.table(table).schema, {row.key: row.value for row in rows})
