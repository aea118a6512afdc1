"""How much the state of a stream may hold: a warning at four fifths, and at the limit a stop.

A state grows with what comes and with how long it is kept; without a limit it grows until the disk
is full. Nothing is lost by the stop: the batch is finished, and the next run goes on behind it.
"""

from __future__ import annotations

import logging

from tidemill.config.stream_operators.stream import Stream
from tidemill.errors import QueryError

log = logging.getLogger(__name__)

WARN = 0.8  # of the limit


def check(stream: Stream, state_rows: int) -> None:
    """Raise QueryError when a stream's state holds more rows than its `max_state_rows`; warn when
    it holds four fifths of them."""
    limit = stream.max_state_rows
    if limit is None or state_rows < WARN * limit:
        return
    if state_rows <= limit:
        log.warning(
            "the state of stream %s holds %d rows, of %d at most", stream.name, state_rows, limit
        )
        return
    raise QueryError(
        f"its state holds {state_rows:,} rows, more than max_state_rows: {limit:,}",
        where=f"stream {stream.name}",
        expected="a greater max_state_rows, if there is the disk for it, and another run: nothing "
        "was lost; a shorter watermark or interval keeps less, and is another stream",
    )
