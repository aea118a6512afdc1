"""Opening of stores, here and in Spark's tasks: who writes or reads one names no kind of it."""

from __future__ import annotations

from tidemill.online.embedded_store import EmbeddedStore
from tidemill.online.store import OnlineStore
from tidemill.online.store_address import StoreAddress


def open_store(address: StoreAddress | str, *, writes: bool = False) -> OnlineStore:
    """Return the store at an address, a URL or a path (see `StoreAddress`); it connects at the
    first call. SetupError where redis-py is needed and missing."""
    if isinstance(address, str):
        address = StoreAddress(address)
    if address.is_redis:
        from tidemill.online.redis_store import RedisStore

        return RedisStore(address)
    return EmbeddedStore(address.path, writes=writes)
