"""Where a store is: a file, or a Redis by its URL.

    online.sqlite, /path/of/a/file, file:/path          the embedded store
    redis://host:6379/0, rediss://... (TLS)             one Redis server
    redis-cluster://host:6379, rediss-cluster://...     a Redis cluster

Credentials are named, not held: a task reads them in its own environment.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tidemill.errors import UsageError

REDIS = ("redis", "rediss", "redis-cluster", "rediss-cluster")
FILE_NAME = "_tidemill_online.sqlite"  # in a lake's folder, of which it is no table


@dataclass(frozen=True)
class StoreAddress:
    """A store's URL or path, and how to connect to it.

    `username_env` and `password_env` name environment variables, `ca_file` a file of certificates.
    A connection that takes longer than `connect_seconds`, or an answer that takes longer than
    `answer_seconds`, is an error. `allow_eviction` takes a Redis that throws keys away when it is
    full.
    """

    url: str
    username_env: str | None = None
    password_env: str | None = None
    ca_file: str | None = None
    connect_seconds: float = 3.0
    answer_seconds: float = 5.0
    allow_eviction: bool = False

    def __post_init__(self) -> None:
        """Refuse what is no address, and one that carries a password."""
        parts = urlsplit(self.url)
        if "://" in self.url and parts.scheme not in (*REDIS, "file"):
            raise UsageError(
                f"unknown kind of store {parts.scheme!r}",
                where="store",
                expected="a path of a file, redis://HOST:PORT/0, rediss:// or redis-cluster://",
            )
        if parts.scheme in REDIS and (parts.password or parts.username):
            raise UsageError(
                "the address holds a user or password, which would be shown and logged",
                where="store",
                expected="username_env and password_env, names of environment variables",
            )

    @property
    def is_redis(self) -> bool:
        """Whether a Redis is there."""
        return urlsplit(self.url).scheme in REDIS

    @property
    def path(self) -> Path:
        """The file of an embedded store."""
        return Path(self.url.removeprefix("file://").removeprefix("file:"))
