"""The embedded store: one SQLite file, no service. Processes of one machine share it.

In WAL mode readers go on while a publish writes, and a killed process leaves its transaction as if
it had never been. Rows and states are in one log in their order, so a state never outlives rows
that were written before it.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tidemill.errors import StoreError
from tidemill.online import packing
from tidemill.online.published_view import PublishedView
from tidemill.online.store import Entry, Key, Row, read_row

WAIT = 30.0  # seconds that a writer waits for another one
AT_ONCE = 500  # keys of one statement: SQLite takes 999 values at least
_TABLES = (
    "CREATE TABLE IF NOT EXISTS views (view TEXT PRIMARY KEY, state BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS rows (view TEXT, layout TEXT, key TEXT, packed BLOB NOT NULL, "
    "expires REAL NOT NULL, PRIMARY KEY (view, layout, key)) WITHOUT ROWID",
)
# BLOBs compare as bytes: heads of one length by epoch, then by version.
_WRITE = (
    "INSERT INTO rows VALUES (?, ?, ?, ?, ?) ON CONFLICT (view, layout, key) DO UPDATE "
    "SET packed = excluded.packed, expires = excluded.expires "
    f"WHERE substr(excluded.packed, 1, {packing.HEAD}) >= substr(packed, 1, {packing.HEAD})"
)


class Packed(Protocol):
    """A state, of rows or of slices."""

    def packed(self) -> bytes:
        """Return the state as a store keeps it."""


class EmbeddedStore:
    """A store in a file; see `OnlineStore`. Without `writes` a file that is not there stays so."""

    tables: tuple[str, ...] = _TABLES

    def __init__(self, path: Path, *, writes: bool = False) -> None:
        """Open the file; it is made at the first write."""
        self.path = path
        self._writes = writes
        self._local = threading.local()

    def ping(self) -> None:
        """Return when the file can be read."""
        with self._reading() as connection:
            connection.execute("SELECT count(*) FROM views").fetchone()

    def view(self, name: str) -> PublishedView | None:
        """Return what the file says of a view."""
        with self._reading() as connection:
            found = connection.execute("SELECT state FROM views WHERE view = ?", (name,)).fetchone()
        return PublishedView.unpacked(found[0]) if found else None

    def views(self) -> list[PublishedView]:
        """Return what the file says of all its views."""
        with self._reading() as connection:
            found = connection.execute("SELECT state FROM views ORDER BY view").fetchall()
        return [PublishedView.unpacked(state) for (state,) in found]

    def read(self, view: PublishedView, keys: Sequence[Key]) -> list[Row | None]:
        """Return the rows of these keys."""
        texts = [packing.key_text(key) for key in keys]
        found: dict[str, bytes] = {}
        with self._reading() as connection:
            for start in range(0, len(texts), AT_ONCE):
                part = texts[start : start + AT_ONCE]
                marks = ",".join("?" * len(part))
                sql = (
                    "SELECT key, packed FROM rows WHERE view = ? AND layout = ? AND expires > ? "
                    f"AND key IN ({marks})"
                )
                given = (view.view, view.layout, time.time(), *part)
                found.update(connection.execute(sql, given))
        return [read_row(found.get(text)) for text in texts]

    async def view_async(self, name: str) -> PublishedView | None:
        """Return what `view` does: microseconds, so in the event loop itself."""
        return self.view(name)

    async def read_async(self, view: PublishedView, keys: Sequence[Key]) -> list[Row | None]:
        """Return what `read` does: some 10 microseconds a key, so in the event loop itself."""
        return self.read(view, keys)

    def check_writable(self) -> None:
        """Make the file and its folder where they are not there."""
        with self._writing():
            pass

    def write(self, view: PublishedView, entries: Sequence[Entry]) -> int:
        """Write rows in one transaction."""
        layout, expires = view.layout, time.time() + view.ttl_seconds
        rows = [(view.view, layout, entry.key, entry.packed, expires) for entry in entries]
        with self._writing() as connection:
            before = connection.total_changes
            connection.executemany(_WRITE, rows)
            return connection.total_changes - before

    def advance(self, state: PublishedView, seen: PublishedView | None) -> bool:
        """Put the state in the place of `seen`."""
        with self._writing() as connection:
            return self._advance(connection, "views", state.view, state.packed(), seen)

    def _advance(
        self,
        connection: sqlite3.Connection,
        table: str,
        view: str,
        state: bytes,
        seen: Packed | None,
    ) -> bool:
        """Put a view's state in the place of the one that was seen, in a table of states."""
        standing = connection.execute(f"SELECT state FROM {table} WHERE view = ?", (view,))
        if next(standing, (None,))[0] != (seen and seen.packed()):
            return False
        put = f"INSERT INTO {table} VALUES (?, ?) ON CONFLICT DO UPDATE SET state = excluded.state"
        connection.execute(put, (view, state))
        return True

    def sweep(self, state: PublishedView) -> int:
        """Remove rows of older epochs, other layouts, and those whose time to live is over."""
        head = packing.head(state.epoch, 0)
        with self._writing() as connection:
            swept = connection.execute(
                "DELETE FROM rows WHERE view = ? AND "
                "(layout <> ? OR substr(packed, 1, 12) < ? OR expires <= ?)",
                (state.view, state.layout, head, time.time()),
            )
            return swept.rowcount

    def close(self) -> None:
        """Close this thread's connection."""
        connection = self._local.__dict__.pop("connection", None)
        if connection is not None:
            connection.close()

    async def close_async(self) -> None:
        """Close this thread's connection."""
        self.close()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._named():
            yield self._connection()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._named():
            connection = self._connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def _connection(self) -> sqlite3.Connection:
        """Return this thread's connection: SQLite's own may not cross threads in a transaction."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connected()
        return connection

    def _connected(self) -> sqlite3.Connection:
        if not self._writes and not self.path.is_file():
            raise StoreError(
                "there is no online store",
                where=str(self.path),
                expected="a file that `tidemill publish` made",
            )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=WAIT, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        if self._writes:
            for table in self.tables:
                connection.execute(table)
        return connection

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the file in SQLite's errors."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"the online store cannot be used: {error}",
                where=str(self.path),
                expected="a file of Tidemill's that this user may read and write",
            ) from error
