"""The table of a stream's rows: events of their own, on which features can be declared, or
sessions, which change while they go on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidemill.config.stream_operators.distinct import Distinct
from tidemill.config.stream_operators.join import Join
from tidemill.config.stream_operators.process import Process
from tidemill.config.stream_operators.sessions import Sessions
from tidemill.config.stream_operators.span import ENDS, Span
from tidemill.config.stream_operators.stream import Stream, pair_types
from tidemill.config.stream_operators.window_totals import Totals
from tidemill.features import FeatureView
from tidemill.lake.tables.table import CHANGE_FEED, LEDGER_RETENTION, Column, Table
from tidemill.lake.tables.view_tables import BATCH

DEFINITION = "tidemill.stream"  # the table's property: the operator that made its rows


def stream_table(stream: Stream, events: FeatureView) -> Table:
    """Return the table of a stream, whose events have the schema and time of a view. Its change
    data feed is on: by it another pipeline has the rows as its events."""
    time = events.event_time
    if stream.span:
        return _of_span(stream, stream.span, events)
    if stream.sessions:
        return _of_sessions(stream, stream.sessions, events)
    if stream.totals:
        return _of_totals(stream, stream.totals, events)
    if stream.process:
        return _of_process(stream, stream.process, events)
    if stream.join:
        what, columns = "Pairs of events that belong together", _pairs(stream.join, events)
    else:
        assert stream.distinct is not None
        what, columns = "The first events of their keys", _events(stream.distinct, events)
    event_id = Column(
        "event_id", "STRING", "the record ids of its events: no row has it twice", False
    )
    at = Column(time, "TIMESTAMP", "the event's time; of a pair the later one's", False)
    return _appended(stream, what, (*columns, event_id, at))


def _appended(stream: Stream, what: str, columns: tuple[Column, ...]) -> Table:
    """Return a table whose rows stay: the last of `columns` is their time."""
    time = columns[-1].name
    return Table(
        stream.name,
        f"{what}, append only",
        (*columns, BATCH, Column("event_hour", "TIMESTAMP", f"{time} cut to the hour", False)),
        ("event_hour",),
        (time, "batch"),
        _properties(stream),
        sorted_by=time,
    )


def _properties(stream: Stream) -> dict[str, str]:
    """Return what each table of a stream says: whose rows these are, and that they are followed."""
    return {**LEDGER_RETENTION, CHANGE_FEED: "true", DEFINITION: stream.definition}


def _of_span(stream: Stream, span: Span, events: FeatureView) -> Table:
    return Table(
        stream.name,
        "The first and the last event of each key, one row per keys",
        (
            *(Column(name, events.types[name], "key") for name in span.keys),
            *(Column(f"{end}_at", "TIMESTAMP", f"time of the {end} event", False) for end in ENDS),
            *(Column(f"{end}_record_id", "STRING", "its bronze record", False) for end in ENDS),
            *(
                Column(f"{end}_{name}", events.types[name], f"{name} of the {end} event")
                for name in span.columns
                for end in ENDS
            ),
            BATCH,
        ),
        (),
        ("last_at", "batch"),
        {**_properties(stream), "delta.enableDeletionVectors": "false"},
        sorted_by="last_at",
    )


def _of_process(stream: Stream, process: Process, events: FeatureView) -> Table:
    columns = process.types_of({name: events.types[name] for name in events.event_schema})
    return _appended(
        stream,
        process.kind.what,
        (
            *(Column(name, events.types[name], "key") for name in process.keys),
            *(Column(name, type_, f"of {process.by}") for name, type_ in columns.items()),
            Column(events.event_time, "TIMESTAMP", "the row's time, as the processor says", False),
        ),
    )


def _of_totals(stream: Stream, totals: Totals, events: FeatureView) -> Table:
    known = pair_types(stream.join, events.types) if stream.join else events.types
    partition = totals.partition or "window_day"
    columns = (
        *(Column(name, known[name], "key") for name in totals.result_keys),
        Column("window_start", "TIMESTAMP", "the window is [window_start, window_end)", False),
        Column("window_end", "TIMESTAMP", "its end, in no window of its own", False),
        *_computed_columns(totals, known),
        Column("batch", "BIGINT", "the batch that wrote the row last", False),
        Column("window_day", "DATE", "the day of window_start", False),
    )
    return Table(
        stream.name,
        "Totals of windows of time, one row per keys and window",
        (
            *(column for column in columns if column.name != partition),
            *(column for column in columns if column.name == partition),
        ),
        (partition,),
        ("window_start", "batch"),
        {**_properties(stream), "delta.enableDeletionVectors": "false"},
        sorted_by="window_start",
    )


def _computed_columns(totals: Totals, known: Mapping[str, str]) -> Iterator[Column]:
    """Yield the computed columns; no digest reads a double, which depends on the order of rows."""
    compute = totals.then.compute if totals.then else totals.compute
    for name, type_ in totals.types_of(known).items():
        call = compute[name]
        words = call if isinstance(call, str) else " of ".join(next(iter(call.items())))
        yield Column(name, type_, words, digested=type_ != "DOUBLE")


def _of_sessions(stream: Stream, sessions: Sessions, events: FeatureView) -> Table:
    return Table(
        stream.name,
        "Sessions, one row per keys and session_start: they change while they go on",
        (
            *(Column(name, events.types[name], "key", False) for name in sessions.keys),
            Column("session_start", "TIMESTAMP", "time of the first event", False),
            Column("session_end", "TIMESTAMP", "time of the last event", False),
            Column("closes_at", "TIMESTAMP", "an event up to then goes on with it", False),
            Column("closed", "BOOLEAN", "the watermark has passed closes_at", False),
            Column("page_views", "BIGINT", "how many events", False),
            Column("pages_visited", "BIGINT", "how many different pages", False),
            Column("length", "DOUBLE", "seconds from the first event to the last one", False),
            Column("bounce", "BOOLEAN", "whether there was one event alone", False),
            Column("first_page", "STRING", "page of the first event"),
            Column("last_page", "STRING", "page of the last event"),
            Column("path", "ARRAY<STRING>", "the first 100 pages, in their order", False),
            Column("batch", "BIGINT", "the batch that wrote the row last", False),
            Column("session_day", "DATE", "the day of session_start", False),
        ),
        ("session_day",),
        ("session_start", "closes_at", "batch"),
        {**_properties(stream), "delta.enableDeletionVectors": "false"},
        sorted_by="session_start",
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
