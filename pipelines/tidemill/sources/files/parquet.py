"""What Parquet files say of themselves: their footers, and one schema for all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrameReader
from pyspark.sql.types import LongType, StructField, StructType

from tidemill.errors import InputError

MAGIC = b"PAR1"
SMALLEST = 12
"""Bytes of the shortest Parquet file: the magic twice and the footer's length."""

WIDER = (
    ("tinyint", "smallint", "int", "bigint"),
    ("float", "double"),
    ("timestamp_ntz", "timestamp", "nanos"),
)
"""Types of one column that are read together, as the last one of them."""


@dataclass(frozen=True)
class Footer:
    """A file's columns. `nanos` are its nanosecond timestamps, which Spark reads as BIGINT.

    `shape` is the physical schema as text, equal for files that are read alike.
    """

    path: Path
    columns: tuple[str, ...]
    nanos: frozenset[str]
    shape: str


def check_magic(path: Path) -> None:
    """Raise InputError unless the file begins and ends as Parquet does; reads eight bytes."""
    with path.open("rb") as file:
        head = file.read(len(MAGIC))
        size = file.seek(0, 2)
        file.seek(max(0, size - len(MAGIC)))
        tail = file.read()
    if size >= SMALLEST and head == tail == MAGIC:
        return
    summary = f"{size} bytes, from {head!r} to {tail!r}" if size else "it is empty"
    raise InputError(
        f"this is no Parquet file: {summary}",
        where=str(path),
        expected=f"a whole Parquet file, from {MAGIC!r} to {MAGIC!r}",
    )


def read_footer(path: Path) -> Footer:
    """Return the file's footer; InputError where it cannot be read."""
    try:
        schema = pq.read_metadata(path).schema
        names = schema.to_arrow_schema().names
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"the Parquet footer cannot be read: {error}",
            where=str(path),
            expected="a whole Parquet file",
        ) from error
    columns = [schema.column(index) for index in range(len(schema))]
    return Footer(
        path=path,
        columns=tuple(names),
        nanos=frozenset(c.path for c in columns if c.path in names and _is_nanos(c)),
        shape=str(schema).partition("\n")[2],
    )


def _is_nanos(column: pq.ColumnSchema) -> bool:
    logical = json.loads(column.logical_type.to_json())
    return bool(logical["Type"] == "Timestamp" and logical["timeUnit"] == "nanoseconds")


def common_schema(
    reader: DataFrameReader, footers: Sequence[Footer]
) -> tuple[StructType, set[str]]:
    """Return the union of the files' columns as Spark reads them, and those that hold nanoseconds.

    Integers, floats and timestamps of several widths become the widest; InputError names two
    files whose types for a column do not go together. In a column of nanoseconds the BIGINT of a
    file with microseconds holds microseconds.
    """
    shapes = {footer.shape: footer for footer in footers}
    column_types: dict[str, tuple[str, StructField, Path]] = {}
    for footer in shapes.values():
        for column in _spark_columns(reader, footer.path):
            type_ = "nanos" if column.name in footer.nanos else column.dataType.simpleString()
            known = column_types.get(column.name)
            if known is None or _widest(column.name, known, type_, footer.path) == type_:
                column_types[column.name] = (type_, column, footer.path)
    nanos = {name for name, (type_, _, _) in column_types.items() if type_ == "nanos"}
    fields = [
        StructField(name, LongType() if name in nanos else column.dataType)
        for name, (_, column, _) in column_types.items()
    ]
    return StructType(fields), nanos


def _spark_columns(reader: DataFrameReader, path: Path) -> StructType:
    return reader.option("__globPaths__", "false").parquet(str(path)).schema


def _widest(name: str, known: tuple[str, StructField, Path], type_: str, path: Path) -> str:
    if type_ == known[0]:
        return type_
    for family in WIDER:
        if type_ in family and known[0] in family:
            return max(type_, known[0], key=family.index)
    raise InputError(
        f"column {name} is {type_} here and {known[0]} in {known[2]}",
        where=str(path),
        expected="one type per column in all files of the folder",
    )
