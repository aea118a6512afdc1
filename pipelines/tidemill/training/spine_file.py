"""A spine in a file: CSV, JSON lines or Parquet; and a training set written to one.

CSV       a header; keys and time are taken as text, of the others whole columns of plain
          numbers and truths become such, so a code with leading zeros stays what it is
JSON      lines, of objects
Parquet   a file, or a folder of them
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from tidemill.errors import InputError, UsageError

_FORMATS = {".csv": "csv", ".jsonl": "json", ".ndjson": "json", ".json": "json"}
_EXPECTED = "a file that ends with .csv, .jsonl or .parquet"
_TIMES = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
_PLAIN = (BooleanType, DoubleType, IntegerType, LongType)


def read(spark: SparkSession, path: Path, as_text: Sequence[str]) -> DataFrame:
    """Return the rows of a file; the columns `as_text` of a CSV are not guessed.

    InputError for a file that is missing, of another format, or broken.
    """
    format_ = _format(path.with_suffix("") if path.suffix == ".gz" else path, "--spine")
    if not path.exists():
        raise InputError("does not exist", where=str(path), expected="a file with the spine's rows")
    try:
        if format_ == "csv":
            return _csv(spark, path, as_text)
        reader = spark.read.option("mode", "FAILFAST").format(format_)
        rows = reader.load(str(path.absolute()))
        if format_ == "json":
            rows.agg(F.max(F.length(F.to_json(F.struct("*"))))).collect()
        return rows
    except PySparkException as error:
        raise _broken(path, error) from error
    except Exception as error:  # Spark 4.2 leaves what fails in a task as py4j has it
        if "MALFORMED" not in str(error) and "Malformed" not in str(error):
            raise
        raise _broken(path, error) from error


def _broken(path: Path, error: Exception) -> InputError:
    lines = [line for line in str(error).splitlines() if line.strip()]
    reason = next((line for line in lines if "alformed" in line or "MALFORMED" in line), lines[0])
    return InputError(f"cannot be read: {reason.strip()[:200]}", where=str(path))


def _format(path: Path, option: str) -> str:
    if path.suffix == ".parquet" or path.is_dir():
        return "parquet"
    if path.suffix not in _FORMATS:
        raise UsageError(f"{path.name} has no known format", where=option, expected=_EXPECTED)
    return _FORMATS[path.suffix]


def _csv(spark: SparkSession, path: Path, as_text: Sequence[str]) -> DataFrame:
    """Return the rows of a CSV; its columns are guessed from all of it, and then read as such."""
    file = str(path.absolute())
    options = {"header": "true", "mode": "FAILFAST", "escape": '"', "multiLine": "true"}
    guessed = spark.read.options(**options, inferSchema="true").csv(file).schema
    texts = StructType([StructField(field.name, StringType()) for field in guessed])
    strings = spark.read.options(**options, enforceSchema="false").schema(texts).csv(file)
    numbers = [f.name for f in guessed if isinstance(f.dataType, _PLAIN) and f.name not in as_text]
    coded = [F.count_if(F.col(f"`{name}`").rlike("^[+-]?0[0-9]")).alias(name) for name in numbers]
    found = strings.agg(F.count("*").alias("__rows"), *coded).collect()[0].asDict()
    kept = {name for name in numbers if not found[name]}
    schema = StructType(
        [f if f.name in kept else StructField(f.name, StringType()) for f in guessed]
    )
    return spark.read.options(**options, enforceSchema="false").schema(schema).csv(file)


def check(output: Path) -> None:
    """Raise UsageError for an output of an unknown format or in no folder, before anything runs."""
    if output.suffix:
        _format(output, "--out")
    if not output.absolute().parent.is_dir():
        expected = "a folder that is there"
        raise UsageError("is in no folder", where=str(output), expected=expected)
    if output.is_dir() and output.suffix:
        raise UsageError("is a folder", where=str(output), expected="a file")


def write(rows: DataFrame, output: Path) -> None:
    """Write the rows to one file, by its suffix, or without one to a folder of Parquet files; a
    file or folder that is there is replaced when all is written."""
    parts = output.absolute().parent / f".{output.name}.{uuid.uuid4().hex[:8]}"
    format_ = _format(output, "--out") if output.suffix else "parquet"
    written = _flat(rows) if format_ == "csv" else rows
    one = written.repartition(1) if output.suffix else written
    options = {"header": "true", "escape": '"', "timestampFormat": _TIMES}
    options |= {"ignoreNullFields": "false"}
    try:
        one.write.format(format_).options(**options).save(str(parts))
        _put(parts, output)
    except OSError as error:
        expected = "a place you may write to"
        message = f"cannot be written: {error.strerror}"
        raise UsageError(message, where=str(output), expected=expected) from error
    finally:
        shutil.rmtree(parts, ignore_errors=True)


def _put(parts: Path, output: Path) -> None:
    """Put what was written in the place of the output."""
    if output.suffix:
        (part,) = parts.glob("part-*")
        part.replace(output)
        return
    if output.exists():
        shutil.rmtree(output)
    parts.rename(output)


def _flat(rows: DataFrame) -> DataFrame:
    """Return the rows as CSV can hold them: nested values as JSON, bytes in base 64."""
    nested = {
        f.name: F.to_json(F.col(f"`{f.name}`"))
        for f in rows.schema
        if isinstance(f.dataType, ArrayType | MapType | StructType)
    }
    binary = {
        f.name: F.base64(F.col(f"`{f.name}`"))
        for f in rows.schema
        if isinstance(f.dataType, BinaryType)
    }
    return rows.withColumns({**nested, **binary}) if nested or binary else rows
