"""How many rows the state of each stream will hold: a rate times how long it keeps an event."""

from __future__ import annotations

from typing import Any

from tidemill.config.stream_operators.stream import Stream
from tidemill.errors import UsageError
from tidemill.lake.catalog import Lake
from tidemill.lake.statements import statement

HOUR = 3600


def expected_state(lake: Lake, rate: float | None) -> list[dict[str, Any]]:
    """Return for each of the pipeline's streams that keeps a state `{stream, rate, measured,
    state_rows, max_state_rows, inputs}`: `inputs` says for each how long an event is kept, in
    seconds, and how many rows that makes.

    `rate` is the events a second that each input gets; without one it is measured: those of the
    lake, over the hours in which there were any, as if each input got them all. Of a lake without
    events rate and rows are None. UsageError for a rate that is none.
    """
    if rate is not None and not 0 < rate < float("inf"):
        raise UsageError(f"a rate of {rate}", where="rate", expected="events a second, above 0")
    streams = [stream for stream in lake.pipeline.streams if stream.kept]
    used = rate if rate is not None or not streams else _measured(lake)
    return [_of_stream(stream, used, measured=rate is None) for stream in streams]


def _of_stream(stream: Stream, rate: float | None, *, measured: bool) -> dict[str, Any]:
    inputs = {
        name: {
            "kept_seconds": int(kept.total_seconds()),
            "rows": None if rate is None else round(rate * kept.total_seconds()),
        }
        for name, kept in stream.kept.items()
    }
    return {
        "stream": stream.name,
        "rate": rate,
        "measured": measured,
        "state_rows": None if rate is None else sum(each["rows"] for each in inputs.values()),
        "max_state_rows": stream.max_state_rows,
        "inputs": inputs,
    }


def _measured(lake: Lake) -> float | None:
    """Return how many events came a second, over the hours that have any; None without events."""
    declared = lake.pipeline
    if not lake.has(lake.tables.events.name):
        return None
    text = statement("event_rate", declared.events, source=declared.pipeline)
    (row,) = lake.ask(text, {}).rows
    return round(float(row["events"]) / row["hours"] / HOUR, 6) if row["hours"] else None
