"""What a store does for slices, beside its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from tidemill.online.slices.slice_records import KeyHour
from tidemill.online.slices.slice_state import SliceState
from tidemill.online.store import Key, OnlineStore

Hours = dict[int, dict[str, bytes]]  # fields by hour


class SliceStore(OnlineStore, Protocol):
    """A store that keeps slices too; every method raises StoreError as those of rows do."""

    def sliced(self, views: Sequence[str]) -> list[SliceState]:
        """Return what the store says of the slices of those of the views that have some."""

    async def sliced_async(self, views: Sequence[str]) -> list[SliceState]:
        """Return what `sliced` does, without holding up an event loop."""

    def write_slices(self, state: SliceState, written: Iterable[KeyHour]) -> None:
        """Write the fields of each key's hour at once: what a batch added, unless the hour is
        merged through it already; what is merged, in the place of all that it was merged of, unless
        it is merged through a later batch."""

    def advance_slices(self, state: SliceState, seen: SliceState | None) -> bool:
        """Put the state in the place of `seen`; False when another one is there by now."""

    def read_slices(self, state: SliceState, keys: Sequence[Key], hours: range) -> list[Hours]:
        """Return the fields of these hours of each key."""

    async def read_slices_async(
        self, state: SliceState, keys: Sequence[Key], hours: range
    ) -> list[Hours]:
        """Return what `read_slices` does, without holding up an event loop."""

    def sweep_slices(self, state: SliceState, before: int) -> int:
        """Remove hours of the view before one, and those of other layouts; return how many."""
