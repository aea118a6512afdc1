"""Rows of Arrow as Spark's rows come out: a struct is a tuple, a map a dict, times are in UTC."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tidemill.query.json_values import plain


def rows_of(table: pa.Table) -> list[list[Any]]:
    """Return the rows, their values as JSON has them."""
    columns = [
        [plain(_value(each, field.type)) for each in column.to_pylist()]
        for column, field in zip(table.columns, table.schema, strict=True)
    ]
    return [list(row) for row in zip(*columns, strict=True)] if columns else []


def _value(value: Any, type_: pa.DataType) -> Any:
    """Return a value with structs as tuples and maps as dicts, at any depth."""
    if value is None or not pa.types.is_nested(type_):
        return value
    if pa.types.is_struct(type_):
        return tuple(_value(value[field.name], field.type) for field in type_)
    if pa.types.is_map(type_):
        return {key: _value(each, type_.item_type) for key, each in value}
    return [_value(each, type_.value_type) for each in value]
