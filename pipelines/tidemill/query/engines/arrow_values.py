"""Rows of Arrow as Spark's rows come out: a map is a dict, times are in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa

from tidemill.query.json_values import plain


def rows_of(table: pa.Table) -> list[list[Any]]:
    """Return the rows, their values as JSON has them; a struct is a tuple."""
    columns = [
        column.to_pylist()
        if _is_plain(column.type)
        else [plain(_value(each, column.type)) for each in column.to_pylist()]
        for column in table.columns
    ]
    return [list(row) for row in zip(*columns, strict=True)] if columns else []


def _is_plain(type_: pa.DataType) -> bool:
    """Return whether JSON has every value of the type as Python has it, as most columns are."""
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_string)
    return any(is_kind(type_) for is_kind in kinds)


def records_of(names: Sequence[str], table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows by column, structs as dicts."""
    columns = [
        [_record_value(each, field.type) for each in column.to_pylist()]
        for column, field in zip(table.columns, table.schema, strict=True)
    ]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _record_value(value: Any, type_: pa.DataType) -> Any:
    """Return a value with maps as dicts and times in UTC, at any depth."""
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc) if value.tzinfo else value
    if value is None or not pa.types.is_nested(type_):
        return value
    if pa.types.is_struct(type_):
        return {field.name: _record_value(value[field.name], field.type) for field in type_}
    if pa.types.is_map(type_):
        return {key: _record_value(each, type_.item_type) for key, each in value}
    return [_record_value(each, type_.value_type) for each in value]


def _value(value: Any, type_: pa.DataType) -> Any:
    """Return a value with structs as tuples and maps as dicts, at any depth."""
    if value is None or not pa.types.is_nested(type_):
        return value
    if pa.types.is_struct(type_):
        return tuple(_value(value[field.name], field.type) for field in type_)
    if pa.types.is_map(type_):
        return {key: _value(each, type_.item_type) for key, each in value}
    return [_value(each, type_.value_type) for each in value]
