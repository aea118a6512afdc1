"""A batch of events into the table of sessions: those that it touches are made again and MERGEd.

    new events ──by key──► spans ◄── sessions that they touch, in the table
                            │
                  events of the spans ──► sessions ──differ from the table's──► MERGE, txn = batch

No event is too late: a session that it opens again, prolongs or joins with another is made of its
events once more. Sessions that are open are in the table, and are closed when the watermark, the
newest event's time less the declared lateness, has passed the time at which they end.

What a batch has to do with the events and sessions that are there is asked of the driver where it
is little, else of Spark (`session_engines`); sessions are Spark's to make. Of both the hours that a
batch touches are read, and what may be open since the watermark of the newest commit. Whole hours,
as they stand in code, which is compiled when they change; what changes with each batch stands
beside it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from tidemill.config.stream_operators.sessions import Sessions
from tidemill.config.stream_operators.stream import Stream
from tidemill.lake import times
from tidemill.lake.catalog import Lake
from tidemill.lake.tables import Table
from tidemill.pipeline.streams import keyed_merge, session_engines
from tidemill.pipeline.streams.keyed_merge import whole_hours
from tidemill.pipeline.streams.session_engines import NotInDriver, SessionEngine
from tidemill.pipeline.streams.session_rows import columns_read, marked, session_rows
from tidemill.pipeline.streams.session_statements import SessionStatements

log = logging.getLogger(__name__)


def merge_sessions(batch: DataFrame, batch_id: int, *, lake: Lake, stream: Stream) -> None:
    """Bring the sessions of the events of a batch into the stream's table, once; the same batch
    again finds itself there. A batch that changes no session leaves no commit."""
    lake, started = lake.within(batch.sparkSession), time.monotonic()
    sessions, table = stream.sessions, lake.tables.streams[stream.name]
    assert sessions is not None
    before = keyed_merge.newest(lake, table, batch_id)
    if before is None:
        return
    new = marked(batch, sessions, lake.pipeline.events.event_time)
    of = _SessionTable(lake, table, sessions, before)

    def bring(changed: _Changed | None) -> None:
        if changed:
            words = batch_id, lake, table, sessions.keys, "session_start"
            keyed_merge.bring(changed.rows, *words, started=started, told=changed.told)

    try:
        with session_engines.in_driver(lake, table, sessions) as driver:
            changed = of.changed(driver, driver.few(new))
    except NotInDriver as why:
        log.info("%s batch %d is Spark's: %s", table.name, batch_id, why)
        with session_engines.in_spark(lake, table) as spark:
            bring(of.changed(spark, new))
    else:
        bring(changed)


@dataclass(frozen=True)
class _Changed:
    """The rows that a batch changes, and what their commit tells."""

    rows: DataFrame | pa.Table
    told: Mapping[str, int]


@dataclass(frozen=True)
class _SessionTable:
    """The table of a stream's sessions, whose newest ledger is `before`."""

    lake: Lake
    table: Table
    sessions: Sessions
    before: Mapping[str, Any]

    def changed(self, engine: SessionEngine, new: Any) -> _Changed | None:
        """Return what events, which are `marked`, change; None where there are none."""
        statements = SessionStatements.of(self.sessions, self.table, self._time)
        ends = engine.only(engine.ask(statements.ends, new=new))
        if ends["newest"] is None:
            return None
        newest = max(ends["newest"], times.of_micros(int(self.before.get("newest", 0))))
        watermark = times.to_micros(newest - self.sessions.lateness)
        hours = whole_hours(ends["oldest"], ends["newest"] + self.sessions.longest_gap)
        own = engine.ask(statements.own, new=new)
        touched = engine.ask(statements.touched, own=own, known=engine.known(hours))
        spans = engine.kept(engine.ask(statements.spans, own=own, touched=touched))
        of = engine.only(engine.ask(statements.outermost, spans=spans))
        if of["keys"]:  # else the batch has none of its events, but may close some
            hours = whole_hours(of["first"], of["last"])
            lengths = (of["last"] - of["first"]) // self.sessions.shortest_gap + 1
            engine.check(of["keys"] * lengths)
        events = engine.inside(statements.inside, spans, hours, ends["clean"], self._read)
        made = engine.made(session_rows(events, self.sessions, self._time), watermark)
        due = engine.due(watermark, self._open_since)
        rows = {"made": made, "touched": touched, "spans": spans, "due": due}
        changes = engine.kept(engine.ask(statements.changes, **rows))
        told = {"newest": times.to_micros(newest), "watermark": watermark}
        return _Changed(changes, told)

    @property
    def _open_since(self) -> datetime | None:
        """The hour of the newest commit's watermark, before which no open session ends; None where
        the commit does not say it."""
        watermark = self.before.get("watermark")
        if watermark is None:
            return None
        at = times.of_micros(watermark)
        return whole_hours(at, at)[0]

    @property
    def _time(self) -> str:
        return self.lake.pipeline.events.event_time

    @property
    def _read(self) -> list[str]:
        """The columns of events that sessions are made of."""
        return columns_read(self.sessions, self._time)
