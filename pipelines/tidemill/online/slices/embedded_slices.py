"""The embedded store with slices: a row for each field of a key's hour."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from tidemill.online import packing
from tidemill.online.embedded_store import AT_ONCE, EmbeddedStore
from tidemill.online.slices.slice_records import HOUR, KeyHour
from tidemill.online.slices.slice_state import SliceState
from tidemill.online.slices.slice_store import Hours
from tidemill.online.store import Key

_TABLES = (
    "CREATE TABLE IF NOT EXISTS sliced (view TEXT PRIMARY KEY, state BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS slices (view TEXT, layout TEXT, key TEXT, hour INTEGER, "
    "field TEXT, batch INTEGER, content BLOB NOT NULL, "
    "PRIMARY KEY (view, layout, key, hour, field)) WITHOUT ROWID",
)
_OF_HOUR = "view = ? AND layout = ? AND key = ? AND hour = ?"


class EmbeddedSlices(EmbeddedStore):
    """A store in a file, with slices; see `SliceStore`."""

    tables = (*EmbeddedStore.tables, *_TABLES)

    def sliced(self, views: Sequence[str]) -> list[SliceState]:
        """Return what the file says of slices; a file that was made before them has none."""
        with self._reading() as connection:
            if not self._has_slices(connection):
                return []
            sql = f"SELECT state FROM sliced WHERE view IN ({','.join('?' * len(views))})"
            found = connection.execute(sql, tuple(views)).fetchall()
        return [SliceState.unpacked(state) for (state,) in found]

    async def sliced_async(self, views: Sequence[str]) -> list[SliceState]:
        """Return what `sliced` does, in the event loop itself."""
        return self.sliced(views)

    def write_slices(self, state: SliceState, written: Iterable[KeyHour]) -> None:
        """Write in one transaction."""
        with self._writing() as connection:
            for one in written:
                self._write_hour(connection, state, one)

    def _write_hour(self, connection: sqlite3.Connection, state: SliceState, one: KeyHour) -> None:
        place = (state.view, state.layout, one.key, one.hour)
        sql = f"SELECT batch FROM slices WHERE {_OF_HOUR} AND field = '{HOUR}'"
        through = connection.execute(sql, place).fetchone()
        if through and (through[0] > one.batch or (through[0] == one.batch and not one.merges)):
            return
        if one.merges:
            of_batches = f"DELETE FROM slices WHERE {_OF_HOUR} AND field LIKE '%:%' AND batch <= ?"
            connection.execute(of_batches, (*place, one.batch))
        rows = [(*place, name, one.batch, content) for name, content in one.fields.items()]
        put = "INSERT OR REPLACE INTO slices VALUES (?, ?, ?, ?, ?, ?, ?)"
        connection.executemany(put, rows)

    def advance_slices(self, state: SliceState, seen: SliceState | None) -> bool:
        """Put the state in the place of `seen`."""
        with self._writing() as connection:
            return self._advance(connection, "sliced", state.view, state.packed(), seen)

    def read_slices(self, state: SliceState, keys: Sequence[Key], hours: range) -> list[Hours]:
        """Return the fields of these hours."""
        texts = [packing.key_text(key) for key in keys]
        found: dict[str, Hours] = {}
        with self._reading() as connection:
            for start in range(0, len(texts), AT_ONCE):
                part = texts[start : start + AT_ONCE]
                sql = (
                    "SELECT key, hour, field, content FROM slices WHERE view = ? AND layout = ? "
                    f"AND key IN ({','.join('?' * len(part))}) AND hour BETWEEN ? AND ?"
                )
                given = (state.view, state.layout, *part, hours.start, hours.stop - 1)
                for key, hour, field, content in connection.execute(sql, given):
                    found.setdefault(key, {}).setdefault(hour, {})[field] = content
        return [found.get(text, {}) for text in texts]

    async def read_slices_async(
        self, state: SliceState, keys: Sequence[Key], hours: range
    ) -> list[Hours]:
        """Return what `read_slices` does, in the event loop itself."""
        return self.read_slices(state, keys, hours)

    def sweep_slices(self, state: SliceState, before: int) -> int:
        """Remove old hours, and those of other layouts."""
        with self._writing() as connection:
            sql = "DELETE FROM slices WHERE view = ? AND (layout <> ? OR hour < ?)"
            return connection.execute(sql, (state.view, state.layout, before)).rowcount

    def _has_slices(self, connection: sqlite3.Connection) -> bool:
        sql = "SELECT count(*) FROM sqlite_master WHERE name = 'sliced'"
        return bool(connection.execute(sql).fetchone()[0])
