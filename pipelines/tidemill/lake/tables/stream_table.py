"""The table of a stream's rows, each an event of its own: features can be declared on them."""

from __future__ import annotations

from collections.abc import Iterator

from tidemill.config.stream_operators.distinct import Distinct
from tidemill.config.stream_operators.join import Join
from tidemill.config.stream_operators.stream import Stream
from tidemill.features import FeatureView
from tidemill.lake.tables.table import CHANGE_FEED, LEDGER_RETENTION, Column, Table
from tidemill.lake.tables.view_tables import BATCH

DEFINITION = "tidemill.stream"  # the table's property: the operator that made its rows


def stream_table(stream: Stream, events: FeatureView) -> Table:
    """Return the table of a stream, whose events have the schema and time of a view. Its change
    data feed is on: by it another pipeline has the rows as its events."""
    time = events.event_time
    if stream.join:
        what, columns = "Pairs of events that belong together", _pairs(stream.join, events)
    else:
        assert stream.distinct is not None
        what, columns = "The first events of their keys", _events(stream.distinct, events)
    return Table(
        stream.name,
        f"{what}, append only",
        (
            *columns,
            Column(
                "event_id", "STRING", "the record ids of its events: no row has it twice", False
            ),
            Column(time, "TIMESTAMP", "the event's time; of a pair the later one's", False),
            BATCH,
            Column("event_hour", "TIMESTAMP", f"{time} cut to the hour", False),
        ),
        ("event_hour",),
        (time, "batch"),
        {**LEDGER_RETENTION, CHANGE_FEED: "true", DEFINITION: stream.definition},
        sorted_by=time,
    )


def _pairs(join: Join, events: FeatureView) -> Iterator[Column]:
    for name in join.keys:
        yield Column(name, events.types[name], "key")
    for side in join.sides:
        yield Column(f"{side.name}_at", "TIMESTAMP", f"time of the {side.name}; null without one")
        yield Column(f"{side.name}_record_id", "STRING", f"bronze record of the {side.name}")
        for name in side.columns:
            yield Column(f"{side.name}_{name}", events.types[name], f"{name} of the {side.name}")
    yield Column("matched", "BOOLEAN", "whether it is a pair", False)
    yield Column("seconds_between", "DOUBLE", f"from {join.left.name} to {join.right.name}")


def _events(distinct: Distinct, events: FeatureView) -> Iterator[Column]:
    for name in distinct.keys:
        yield Column(name, events.types[name], "key")
    for name in distinct.columns:
        yield Column(name, events.types[name], "as the event has it")
