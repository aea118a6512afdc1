"""Times between Python and Spark: literals with a zone go in, whole microseconds come out.

PySpark collects a TIMESTAMP as a datetime without a zone, in this machine's local time. Where
clocks go back an hour comes twice there: such a datetime that goes to Spark again may be an hour
off, and Spark Connect (4.2) has already lost which of the two it was. So the package collects no
TIMESTAMP, and gives Spark no datetime without a zone.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, overload

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampType

from tidemill.config.settings import EPOCH
from tidemill.lake.parameters import literal


def at(moment: datetime) -> Column:
    """Return the instant as a column; ValueError for a datetime without a zone."""
    return F.expr(literal(moment))


@overload
def of_epoch(seconds: int) -> datetime: ...
@overload
def of_epoch(seconds: None) -> None: ...
def of_epoch(seconds: int | None) -> datetime | None:
    """Return the UTC time of a number of seconds since 1970."""
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc)


def of_micros(micros: int) -> datetime:
    """Return the UTC time of a number of microseconds since 1970."""
    return EPOCH + timedelta(microseconds=micros)


def to_micros(moment: datetime) -> int:
    """Return an instant as a number of microseconds since 1970."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def collect(frame: DataFrame) -> list[Row]:
    """Return the frame's rows, each TIMESTAMP in them, at any depth, as a datetime in UTC.

    A TIMESTAMP_NTZ, which is no instant, stays a datetime without a zone.
    """
    schema = frame.schema
    if not _holds_times(schema):
        return frame.collect()
    places = [f"_{place}" for place in range(len(schema))]  # names may come twice
    numbered = frame.toDF(*places)
    columns = [
        _as_micros(F.col(place), field.dataType).alias(place)
        for place, field in zip(places, schema, strict=True)
    ]
    return [_row(schema, row) for row in numbered.select(*columns).collect()]


def _holds_times(type_: DataType) -> bool:
    if isinstance(type_, StructType):
        return any(_holds_times(field.dataType) for field in type_)
    if isinstance(type_, ArrayType):
        return _holds_times(type_.elementType)
    if isinstance(type_, MapType):
        return _holds_times(type_.keyType) or _holds_times(type_.valueType)
    return isinstance(type_, TimestampType)


def _as_micros(value: Column, type_: DataType) -> Column:
    """Return the value with microseconds since 1970 in place of each TIMESTAMP."""
    if not _holds_times(type_):
        return value
    if isinstance(type_, StructType):
        fields = [_as_micros(value[f.name], f.dataType).alias(f.name) for f in type_]
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(type_, ArrayType):
        element = type_.elementType
        return F.transform(value, lambda one: _as_micros(one, element))
    if isinstance(type_, MapType):
        entry = StructType().add("key", type_.keyType).add("value", type_.valueType)
        entries = F.transform(F.map_entries(value), lambda one: _as_micros(one, entry))
        return F.map_from_entries(entries)
    return F.unix_micros(value)


def _of_micros(value: Any, type_: DataType) -> Any:
    """Return a value of `_as_micros` with its times as datetimes in UTC."""
    if value is None or not _holds_times(type_):
        return value
    if isinstance(type_, StructType):
        return _row(type_, value)
    if isinstance(type_, ArrayType):
        return [_of_micros(one, type_.elementType) for one in value]
    if isinstance(type_, MapType):
        return {
            _of_micros(key, type_.keyType): _of_micros(one, type_.valueType)
            for key, one in value.items()
        }
    return EPOCH + timedelta(microseconds=value)


def _row(schema: StructType, values: Row) -> Row:
    pairs = zip(values, schema, strict=True)
    return Row(*schema.names)(*(_of_micros(value, field.dataType) for value, field in pairs))
