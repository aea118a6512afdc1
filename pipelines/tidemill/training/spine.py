"""The spine of a training set: rows with keys, a time and any other columns, read and checked.

Nothing of it is dropped or changed but for types: keys become those of the views, the time an
instant. What would make values wrong is refused, with how many rows and one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, TimestampNTZType, TimestampType

from tidemill.errors import UsageError
from tidemill.features import FeatureView
from tidemill.features.suggestions import did_you_mean

WHERE = "spine"
MICROSECOND = timedelta(microseconds=1)
_TIME_TEXT = (
    r"^\\d{4}-\\d{2}-\\d{2}[T ]\\d{2}:\\d{2}(:\\d{2}([.]\\d{1,9})?)?(Z|[+-]\\d{2}:?\\d{2})?$"
)


@dataclass(frozen=True)
class Spine:
    """Checked rows: no key and no time of them is null, keys have the views' types. `rows` are as
    they were given but for that; `count` how many there are."""

    rows: DataFrame
    time: str
    count: int

    @property
    def moment(self) -> Column:
        """A row's time, in microseconds since 1970."""
        return F.unix_micros(F.col(f"`{self.time}`"))

    def edge(self, view: FeatureView) -> Column:
        """Return the end of a row's windows, in microseconds since 1970: the last end of a bucket
        at or before its time."""
        return self.moment - F.pmod(self.moment, F.lit(view.bucket_length // MICROSECOND))


def checked(given: DataFrame, views: Sequence[FeatureView], time: str, twice: str) -> Spine:
    """Return the spine of some rows; UsageError for what its rows cannot be.

    `twice` says whether several rows of the same keys and time are refused ("error") or each get
    their values ("keep").
    """
    keys = _keys(views)
    _check_names(given, [*keys, time], views)
    columns = {**{k: _as_key(given, k, t) for k, t in keys.items()}, time: _as_time(given, time)}
    typed = given.withColumns(columns)
    counts = _counts(given, columns)
    _refuse(counts, columns, {**keys, time: "TIMESTAMP"})
    if twice == "error":
        _refuse_twice(typed, [*keys, time])
    return Spine(typed, time, counts["rows"])


def _keys(views: Sequence[FeatureView]) -> dict[str, str]:
    """Return the types of the keys of all views; UsageError where two views differ in one."""
    types: dict[str, str] = {}
    for view in views:
        for key in view.keys:
            if types.setdefault(key, view.types[key]) != view.types[key]:
                message = f"key {key} is {types[key]} in one view and {view.types[key]} in another"
                raise UsageError(message, where=view.name, expected="a training set for each")
    return types


def _check_names(given: DataFrame, required: Sequence[str], views: Sequence[FeatureView]) -> None:
    """Refuse a spine without a column that is needed, or with a name twice or of our own."""
    for name in required:
        if name not in given.columns:
            event_times = {view.event_time for view in views} & {*given.columns}
            named = f"; its time may be --time {event_times.pop()}" if event_times else ""
            hint = did_you_mean(name, given.columns) or named
            expected = f"columns {', '.join(required)}"
            raise UsageError(f"has no column {name!r}{hint}", where=WHERE, expected=expected)
    names = [name.lower() for name in given.columns]
    for name in given.columns:
        if names.count(name.lower()) > 1:
            raise UsageError(f"has a column {name!r} twice", where=WHERE, expected="one of each")
        if name.startswith("__"):
            message = f"has a column {name!r}, a name of the lake's own"
            raise UsageError(message, where=WHERE, expected="a name without __ in front")


def _as_key(given: DataFrame, key: str, type_: str) -> Column:
    found = given.schema[key].dataType
    if type_ == "STRING" and not isinstance(found, StringType):
        # 7, 7.0 and 07 may be one key or three: only who made the spine can tell.
        message = f"key {key} is {found.simpleString()}, in the view a string"
        raise UsageError(message, where=WHERE, expected=f"CAST({key} AS STRING) as the events' is")
    typed = f"try_cast(`{key}` AS {type_})"
    if isinstance(found, StringType):
        return F.expr(typed)
    return F.expr(f"CASE WHEN {typed} = `{key}` THEN {typed} END")  # 7.5 is no BIGINT


def _as_time(given: DataFrame, time: str) -> Column:
    """Return the time as an instant: one without a zone is UTC."""
    found: DataType = given.schema[time].dataType
    if isinstance(found, StringType):
        text = f"CASE WHEN `{time}` RLIKE '{_TIME_TEXT}' THEN try_cast(`{time}` AS TIMESTAMP) END"
        return F.expr(text)
    if isinstance(found, TimestampType | TimestampNTZType):
        return F.col(f"`{time}`").cast("timestamp")
    message = f"column {time} is {found.simpleString()}, which names no time of day"
    raise UsageError(
        message, where=WHERE, expected="a timestamp, or a text such as 2026-11-21T10:05:00Z"
    )


def _counts(given: DataFrame, columns: Mapping[str, Column]) -> Mapping[str, Any]:
    """Return how many rows there are, and of each column how many are null or cannot be read, with
    one that cannot."""
    each = [F.count("*").alias("rows")]
    for name, value in columns.items():
        unread = F.col(f"`{name}`").isNotNull() & value.isNull()
        each += [
            F.count_if(F.col(f"`{name}`").isNull()).alias(f"null {name}"),
            F.count_if(unread).alias(f"unread {name}"),
            F.min(F.when(unread, F.col(f"`{name}`").cast("string"))).alias(f"one {name}"),
        ]
    return given.agg(*each).collect()[0].asDict()


def _refuse(counts: Mapping[str, Any], names: Iterable[str], types: Mapping[str, str]) -> None:
    rows = counts["rows"]
    if not rows:
        raise UsageError("has no rows", where=WHERE, expected="a row for each example")
    for name in names:
        if nulls := counts[f"null {name}"]:
            message = f"{name} is null in {nulls:,} of {rows:,} rows"
            raise UsageError(message, where=WHERE, expected="a value in every row")
        if unread := counts[f"unread {name}"]:
            message = f"{name} is no {types[name]} in {unread:,} of {rows:,} rows, such as "
            message += repr(counts[f"one {name}"])
            raise UsageError(message, where=WHERE, expected=f"a {types[name]} in every row")


def _refuse_twice(rows: DataFrame, names: Sequence[str]) -> None:
    """Refuse rows of the same keys and time; say one of them."""
    quoted = [F.col(f"`{name}`") for name in names]
    groups = rows.groupBy(*quoted).agg(F.count("*").alias("__rows")).where("__rows > 1")
    one = F.min(F.concat_ws(", ", *(column.cast("string") for column in quoted)))
    found = groups.agg(F.sum("__rows"), one).collect()[0]
    if found[0]:
        message = f"{found[0]:,} rows share their keys and time with another, such as {found[1]}"
        expected = "one row for each, or --duplicates keep"
        raise UsageError(message, where=WHERE, expected=expected)
