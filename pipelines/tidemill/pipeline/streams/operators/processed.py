"""The rows of a processor, by Spark's `transformWithState`."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.config.stream_operators.inputs import EVENTS
from tidemill.config.stream_operators.process import Process
from tidemill.features import FeatureView
from tidemill.pipeline.stateful.processor import ddl
from tidemill.pipeline.streams.operators.input_rows import TIME, input_rows

AT = "at"  # of a row that goes in, or comes out: its time in microseconds since 1970
_MODES = {"event": "EventTime", "wall": "ProcessingTime"}


def processed(events: DataFrame, process: Process, view: FeatureView) -> DataFrame:
    """Return what the processor makes of the events of a view's schema: the keys, its columns, and
    the view's time."""
    types = {name: view.types[name] for name in view.event_schema}
    columns = process.types_of(types)
    rows = input_rows(events, EVENTS, process, view.event_time, (*process.keys, *process.reads))
    rows = rows.withColumn(AT, F.unix_micros(TIME))
    given = [(name, types[name]) for name in process.keys]
    given += [(name, _as_given(type_)) for name, type_ in columns.items()]
    made = rows.groupBy(*process.keys).transformWithState(
        process.kind.made(process.said, process.keys, process.clock),
        outputStructType=ddl([*given, (AT, "BIGINT")]),
        outputMode="append",
        timeMode=_MODES[process.clock],
    )
    return made.select(
        *process.keys,
        *(_as_declared(name, type_) for name, type_ in columns.items()),
        F.timestamp_micros(AT).alias(view.event_time),
    )


def _as_given(type_: str) -> str:
    return "BIGINT" if type_ == "TIMESTAMP" else type_


def _as_declared(name: str, type_: str) -> Column:
    return F.timestamp_micros(name).alias(name) if type_ == "TIMESTAMP" else F.col(name)
