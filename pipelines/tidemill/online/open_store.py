"""Opening of stores, here and in Spark's tasks: who writes or reads one names no kind of it."""

from __future__ import annotations

from tidemill.online.slices.embedded_slices import EmbeddedSlices
from tidemill.online.slices.slice_store import SliceStore
from tidemill.online.store_address import StoreAddress


def open_store(address: StoreAddress | str, *, writes: bool = False) -> SliceStore:
    """Return the store at an address, a URL or a path (see `StoreAddress`); it connects at the
    first call. SetupError where redis-py is needed and missing."""
    if isinstance(address, str):
        address = StoreAddress(address)
    if address.is_redis:
        from tidemill.online.slices.redis_slices import RedisSlices

        return RedisSlices(address)
    return EmbeddedSlices(address.path, writes=writes)
