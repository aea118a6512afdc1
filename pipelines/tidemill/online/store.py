"""The shape of an online store: rows of published views, read by key, written by version.

    publish ──write──► rows        an older row never takes the place of a newer one
            ──advance─► state      last, and only if nobody else has advanced it
    API     ──read───► rows        of the layout that the state names, in one round trip

What every store keeps to is tested by one contract (`tests/online`), whatever is behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from tidemill.config.settings import time_of_micros
from tidemill.online import packing
from tidemill.online.published_view import PublishedView

Key = tuple[Any, ...]


class Row(NamedTuple):
    """A row as it is read: its values in the order of the state's features, the version of gold
    that brought them, and the end of its windows then.

    Values of a row that is not newer than the state hold as of the state's `as_of`: a row that did
    not change was not written again.
    """

    values: Sequence[Any]
    gold_version: int
    as_of: datetime


@dataclass(frozen=True, slots=True)
class Entry:
    """A row to write: the text of its key, and its bytes, which begin with its version."""

    key: str
    packed: bytes


class OnlineStore(Protocol):
    """A store. Every method raises StoreError when the store does not answer in its time, is full
    or refuses."""

    def ping(self) -> None:
        """Return when the store answers."""

    def view(self, name: str) -> PublishedView | None:
        """Return what the store says of a view, None when nothing was ever published of it."""

    def views(self) -> list[PublishedView]:
        """Return what the store says of all its views, by name."""

    def read(self, view: PublishedView, keys: Sequence[Key]) -> list[Row | None]:
        """Return the rows of these keys, None for a key that the store does not have."""

    async def view_async(self, name: str) -> PublishedView | None:
        """Return what `view` does, without holding up an event loop."""

    async def read_async(self, view: PublishedView, keys: Sequence[Key]) -> list[Row | None]:
        """Return what `read` does, without holding up an event loop."""

    def check_writable(self) -> None:
        """Raise StoreError where the store may throw rows away, or is none to write to."""

    def write(self, view: PublishedView, entries: Sequence[Entry]) -> int:
        """Write rows, each only where the store has no newer one of its key, and begin their time
        to live; return how many were written. Of two rows of one key the newer stays, in whatever
        order they come."""

    def advance(self, state: PublishedView, seen: PublishedView | None) -> bool:
        """Put the state in the place of `seen`; False when another one is there by now."""

    def sweep(self, state: PublishedView) -> int:
        """Remove the view's rows of an epoch before the state's, and of other layouts; return how
        many."""

    def close(self) -> None:
        """Give back connections."""

    async def close_async(self) -> None:
        """Give back connections of the event loop."""


def read_row(packed: bytes | None) -> Row | None:
    """Return the row of its bytes; None for a key that was deleted, or is not there."""
    if packed is None:
        return None
    as_of, values = packing.unpack_row(packed)
    if values is None:
        return None
    return Row(values, packing.versions(packed)[1], _time(as_of))


_time = lru_cache(maxsize=1024)(time_of_micros)  # rows of one publish have the same
