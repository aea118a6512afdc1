"""What sessions have to do with new events, as statements that Spark and DuckDB answer alike.

    new events ──own──► spans of their own ──touched──► sessions of the table that these reach
                              └──────────spans◄───────────┘
    events of the table ──inside──► those of the spans
    made again, touched, due ──changes──► rows of the table that change

Rows have these names in the statements: `tidemill_new`, as `session_rows.marked` returns them,
`tidemill_known`, the sessions of the hours that they may reach, `tidemill_events`, the events of
these hours, `tidemill_made`, sessions that were made again, and `tidemill_due`, open ones that the
watermark has passed. Names of columns stand in backticks, for which DuckDB has quotation marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidemill.config.stream_operators.sessions import Sessions
from tidemill.lake.tables import Table
from tidemill.pipeline.streams.keyed_merge import GONE
from tidemill.pipeline.streams.operators.input_rows import TIME
from tidemill.pipeline.streams.session_rows import ENDS, TAKEN

FIRST, LAST = "__first", "__last"  # of a key: the time, both ends included, that is made again


@dataclass(frozen=True)
class SessionStatements:
    """The statements for a table of sessions: its keys, its columns but `batch`, and the column of
    an event's time."""

    keys: Sequence[str]
    columns: Sequence[str]
    time: str

    @classmethod
    def of(cls, sessions: Sessions, table: Table, time: str) -> SessionStatements:
        """Return the statements for a stream's table."""
        return cls(sessions.keys, [name for name in table.column_names if name != "batch"], time)

    @property
    def ends(self) -> str:
        """The times of the first and last event, and the newest batch of clean; null of none."""
        return (
            f"SELECT min({TIME}) AS oldest, max({TIME}) AS newest, max(batch) AS clean "
            "FROM tidemill_new"
        )

    @property
    def own(self) -> str:
        """For each key the span of its new events, to the time at which the last gap ends."""
        keys = _names(self.keys)
        return (
            f"SELECT {keys}, min({TIME}) AS {FIRST}, max({ENDS}) AS {LAST} "
            f"FROM tidemill_new WHERE {TAKEN} GROUP BY {keys}"
        )

    @property
    def touched(self) -> str:
        """The sessions that the spans of `tidemill_own` reach."""
        return (
            f"SELECT {_of('known', self.columns)} FROM tidemill_known AS known "
            f"JOIN tidemill_own AS own ON {_same('known', 'own', self.keys)} "
            f"AND known.session_start <= own.{LAST} AND known.closes_at >= own.{FIRST}"
        )

    @property
    def spans(self) -> str:
        """The spans in which sessions are made again: those of `tidemill_own`, and the time of what
        they touch."""
        keys = _of("own", self.keys)
        first, last = f"own.{FIRST}", f"own.{LAST}"
        return (
            f"SELECT {keys}, "
            f"least({first}, coalesce(min(touched.session_start), {first})) AS {FIRST}, "
            f"greatest({last}, coalesce(max(touched.closes_at), {last})) AS {LAST} "
            "FROM tidemill_own AS own LEFT JOIN tidemill_touched AS touched "
            f"ON {_same('touched', 'own', self.keys)} GROUP BY {keys}, {first}, {last}"
        )

    @property
    def outermost(self) -> str:
        """The first and last time of all spans, null where there is none, and how many `keys` have
        one."""
        ends = f"min({FIRST}) AS first, max({LAST}) AS last"
        return f"SELECT {ends}, count(*) AS `keys` FROM tidemill_spans"

    @property
    def inside(self) -> str:
        """The events of `tidemill_events` that are in a span."""
        return (
            f"SELECT events.* FROM tidemill_events AS events JOIN tidemill_spans AS spans "
            f"ON {_same('spans', 'events', self.keys)} "
            f"AND events.`{self.time}` BETWEEN spans.{FIRST} AND spans.{LAST}"
        )

    @property
    def changes(self) -> str:
        """The rows of the table that change, with `GONE`: sessions as they are now where they were
        otherwise, those that are no longer, and those that are closed and nothing touched."""
        columns = _names(self.columns)
        row = [*self.keys, "session_start"]
        closed = columns.replace("`closed`", "TRUE AS `closed`")
        return (
            f"SELECT *, FALSE AS {GONE} FROM (SELECT {columns} FROM tidemill_made "
            f"EXCEPT ALL SELECT {columns} FROM tidemill_touched) AS written\n"
            f"UNION ALL SELECT {columns}, TRUE FROM tidemill_touched AS touched "
            "WHERE NOT EXISTS (SELECT 1 FROM tidemill_made AS made "
            f"WHERE {_same('made', 'touched', row)})\n"
            f"UNION ALL SELECT {closed}, FALSE FROM tidemill_due AS due "
            "WHERE NOT EXISTS (SELECT 1 FROM tidemill_spans AS spans "
            f"WHERE {_same('spans', 'due', self.keys)} "
            f"AND due.session_start BETWEEN spans.{FIRST} AND spans.{LAST})"
        )


def _names(columns: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in columns)


def _of(rows: str, names: Iterable[str]) -> str:
    return ", ".join(f"{rows}.`{name}`" for name in names)


def _same(one: str, other: str, names: Iterable[str]) -> str:
    """Return the condition of equal columns; none of them is null."""
    return " AND ".join(f"{one}.`{name}` = {other}.`{name}`" for name in names)
