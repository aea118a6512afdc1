"""The Redis store: one string a row, `tidemill:VIEW:LAYOUT:{KEY}`, its bytes as in `packing`.

The braces are a cluster's hash tag: rows of one key in all views lie on one node. A script compares
heads in the server, so two publishers and a repeated batch cannot put an older row in a newer one's
place. States are strings `tidemill:view:VIEW`, advanced by a script that compares them whole; the
set `tidemill:views` names them, as only a look at every key of the server would find them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

from tidemill.errors import SetupError, StoreError, UsageError
from tidemill.online import packing
from tidemill.online.published_view import PublishedView
from tidemill.online.store import Entry, Key, Row, read_row
from tidemill.online.store_address import StoreAddress

try:
    import redis
    import redis.asyncio
    from redis.backoff import ExponentialBackoff
    from redis.cluster import RedisCluster
    from redis.exceptions import ConnectionError as NotConnected
    from redis.exceptions import RedisError
    from redis.retry import Retry
except ImportError as error:  # pragma: no cover
    raise SetupError(
        "the package redis is missing", where="store", expected="pip install 'tidemill[redis]'"
    ) from error

_Item = TypeVar("_Item")
STATES = "tidemill:view:"
VIEWS = "tidemill:views"
PIPELINED = 1_000  # rows of one round trip
OF_A_CALL = 100  # rows that one call of a script writes, or looks at
RETRIES = 3
SCANNED = 1_000
# A row's head is an epoch of 4 bytes and a version of 8; Lua's numbers hold 53 bits of each.
_NEWER = """
local written = 0
for place, key in ipairs(KEYS) do
  local row, standing = ARGV[place + 1], redis.call('GETRANGE', key, 0, 11)
  local newer = #standing < 12
  if not newer then
    local epoch, version = struct.unpack('>I4I8', standing)
    local new_epoch, new_version = struct.unpack('>I4I8', row)
    newer = new_epoch > epoch or (new_epoch == epoch and new_version >= version)
  end
  if newer then
    redis.call('SET', key, row, 'EX', ARGV[1])
    written = written + 1
  end
end
return written
"""
ADVANCE = """
local standing = redis.call('GET', KEYS[1]) or ''
if standing ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1
"""
_SWEEP = """
local swept = 0
for place, key in ipairs(KEYS) do
  local standing = redis.call('GETRANGE', key, 0, 3)
  if #standing < 4 or struct.unpack('>I4', standing) < tonumber(ARGV[place]) then
    swept = swept + redis.call('DEL', key)
  end
end
return swept
"""


class RedisStore:
    """A store in Redis or a cluster of it; see `OnlineStore`."""

    def __init__(self, address: StoreAddress) -> None:
        """Keep the address; clients connect at their first call."""
        self.address = address
        self._clients: dict[str, Any] = {}
        self._kept: list[Any] = []  # connections of the event loop that nobody reads from

    def ping(self) -> None:
        """Return when the server answers."""
        with self._named():
            self._client.ping()

    def view(self, name: str) -> PublishedView | None:
        """Return what the store says of a view."""
        with self._named():
            content = self._client.get(STATES + name)
        return content and PublishedView.unpacked(content)

    def views(self) -> list[PublishedView]:
        """Return what the store says of all its views."""
        with self._named():
            named = {name.decode() for name in self._client.smembers(VIEWS)}
            contents = [self._client.get(STATES + name) for name in sorted(named or self._found())]
        return [PublishedView.unpacked(content) for content in contents if content]

    def read(self, view: PublishedView, keys: Sequence[Key]) -> list[Row | None]:
        """Return the rows of these keys, by one MGET; of a cluster one for each node."""
        names = _names(view, keys)
        with self._named():
            client = self._client
            read = client.mget_nonatomic if self._is_cluster else client.mget
            return [read_row(packed) for packed in read(names)]

    async def view_async(self, name: str) -> PublishedView | None:
        """Return what `view` does."""
        with self._named():
            content = await self._async_client.get(STATES + name)
        return content and PublishedView.unpacked(content)

    async def read_async(self, view: PublishedView, keys: Sequence[Key]) -> list[Row | None]:
        """Return what `read` does."""
        names = _names(view, keys)
        with self._named():
            if self._is_cluster:
                found = await self._async_client.mget_nonatomic(names)
            else:
                found = await self._mget(names) if names else []
            return [read_row(packed) for packed in found]

    async def _mget(self, names: Sequence[str]) -> list[bytes | None]:
        """Return what MGET does, by a connection that is kept. The client takes one out of its pool
        each time and asks whether it lives, which takes a third of a read; it is asked where a kept
        one does not answer."""
        pool = self._async_client.connection_pool
        connection = self._kept.pop() if self._kept else await pool.get_connection()
        try:
            await connection.send_command("MGET", *names)
            found: list[bytes | None] = await connection.read_response()
        except BaseException as error:
            # What it still has to say would be taken for the answer to the next question.
            await connection.disconnect(nowait=True)
            await pool.release(connection)
            if isinstance(error, NotConnected):
                return list(await self._async_client.mget(names))
            raise
        self._kept.append(connection)
        return found

    def check_writable(self) -> None:
        """Raise StoreError where Redis may evict rows when its memory is full."""
        with self._named():
            said = self._client.info("memory")
        said = said if "maxmemory_policy" in said else next(iter(said.values()), {})
        policy = said.get("maxmemory_policy", "noeviction")
        if policy != "noeviction" and not self.address.allow_eviction:
            raise StoreError(
                f"Redis throws keys away when it is full: maxmemory-policy is {policy}",
                where=self._where,
                expected="CONFIG SET maxmemory-policy noeviction, or `allow_eviction: true`",
            )

    def write(self, view: PublishedView, entries: Sequence[Entry]) -> int:
        """Write rows by the script that compares each with the one there: some hundred in a call,
        during which the server answers nobody else; of a cluster one, as keys of a call must lie on
        one node."""
        prefix, ttl, written = _prefix(view), view.ttl_seconds, 0
        with self._named():
            for start in range(0, len(entries), PIPELINED):
                part = entries[start : start + PIPELINED]
                rows = [
                    (
                        [f"{prefix}{{{entry.key}}}" for entry in call],
                        [ttl, *(entry.packed for entry in call)],
                    )
                    for call in self._calls(part)
                ]
                written += sum(self._scripted(_NEWER, rows))
        return written

    def advance(self, state: PublishedView, seen: PublishedView | None) -> bool:
        """Put the state in the place of `seen`."""
        before = seen.packed() if seen else b""
        with self._named():
            others = () if self._client.exists(VIEWS) else self._found()
            self._client.sadd(VIEWS, state.view, *others)
            rows = [([STATES + state.view], [state.packed(), before])]
            return bool(self._scripted(ADVANCE, rows)[0])

    def sweep(self, state: PublishedView) -> int:
        """Remove rows of older epochs and other layouts: a look at every key of the view."""
        swept, living = 0, _prefix(state).encode()
        with self._named():
            pattern = f"tidemill:{escaped(state.view)}:*"
            names: list[bytes] = []
            for name in self._client.scan_iter(pattern, count=SCANNED):
                names.append(name)
                if len(names) == PIPELINED:
                    swept += self._swept(names, living, state.epoch)
                    names = []
            return swept + self._swept(names, living, state.epoch)

    def close(self) -> None:
        """Close the connections."""
        if client := self._clients.pop("sync", None):
            client.close()

    async def close_async(self) -> None:
        """Close the event loop's connections."""
        if client := self._clients.pop("async", None):
            for connection in self._kept:
                await client.connection_pool.release(connection)
            self._kept.clear()
            await client.aclose()

    def _found(self) -> set[str]:
        """Return the names of views in a store whose set of them nobody has begun yet: by a look at
        all keys."""
        found = self._client.scan_iter(f"{STATES}*", count=SCANNED)
        names = {name.decode().removeprefix(STATES) for name in found}
        return {name for name in names if ":" not in name}  # else a row, of a view named `view`

    def _swept(self, names: Sequence[bytes], living: bytes, epoch: int) -> int:
        never = 2**32 - 1  # above each epoch: what is of another layout goes
        rows = [
            (call, [epoch if name.startswith(living) else never for name in call])
            for call in self._calls(names)
        ]
        return sum(self._scripted(_SWEEP, rows)) if rows else 0

    def _calls(self, each: Sequence[_Item]) -> list[Sequence[_Item]]:
        """Return what each call of a script is given; of a cluster one, as above."""
        at_once = 1 if self._is_cluster else OF_A_CALL
        return [each[start : start + at_once] for start in range(0, len(each), at_once)]

    def _scripted(self, script: str, calls: Sequence[tuple[Any, Any]]) -> list[int]:
        """Return what a script says to each call, its keys and arguments, in one round trip.

        A pipeline that dies half-way is begun again by the next publish: a second call with the
        same rows changes nothing.
        """
        named = script if self._is_cluster else self._digest(script)  # no EVALSHA in its pipeline
        pipeline = self._client.pipeline(transaction=False)
        command = "EVAL" if self._is_cluster else "EVALSHA"
        for keys, arguments in calls:
            pipeline.execute_command(command, named, len(keys), *keys, *arguments)
        return [int(said) for said in pipeline.execute()]

    def _digest(self, script: str) -> str:
        """Return the digest of a script that the server has by now."""
        if script not in self._clients:
            self._clients[script] = self._client.script_load(script)
        digest = self._clients[script]
        if isinstance(digest, bytes):
            digest = digest.decode()
        known = self._client.script_exists(digest)
        if not all(known if isinstance(known, list) else [known]):
            self._client.script_load(script)  # restarted since
        return str(digest)

    @property
    def _is_cluster(self) -> bool:
        return "-cluster" in urlsplit(self.address.url).scheme

    @property
    def _where(self) -> str:
        return self.address.url

    @property
    def _client(self) -> Any:
        if "sync" not in self._clients:
            kind = RedisCluster if self._is_cluster else redis.Redis
            retry = Retry(ExponentialBackoff(cap=1.0, base=0.05), RETRIES)
            self._clients["sync"] = kind.from_url(self._url, retry=retry, **self._options())
        return self._clients["sync"]

    @property
    def _async_client(self) -> Any:
        if "async" not in self._clients:
            kind = redis.asyncio.RedisCluster if self._is_cluster else redis.asyncio.Redis
            self._clients["async"] = kind.from_url(self._url, **self._options())
        return self._clients["async"]

    @property
    def _url(self) -> str:
        return self.address.url.replace("-cluster", "", 1)

    def _options(self) -> dict[str, Any]:
        address = self.address
        options = {
            "username": _of_environment(address.username_env),
            "password": _of_environment(address.password_env),
            "socket_connect_timeout": address.connect_seconds,
            "socket_timeout": address.answer_seconds,
        }
        if self._url.startswith("rediss:"):
            options |= {"ssl_ca_certs": address.ca_file, "ssl_check_hostname": True}
        return options

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the server in its errors, and what to do about the usual ones."""
        try:
            yield
        except RedisError as error:
            raise StoreError(_told(error), where=self._where, expected=_cure(error)) from error


def _prefix(view: PublishedView) -> str:
    return f"tidemill:{view.view}:{view.layout}:"


def _names(view: PublishedView, keys: Sequence[Key]) -> list[str]:
    prefix = _prefix(view)
    return [f"{prefix}{{{packing.key_text(key)}}}" for key in keys]


def escaped(text: str) -> str:
    """Return a text as a pattern of SCAN that matches it alone."""
    return "".join(f"\\{letter}" if letter in "*?[]\\" else letter for letter in text)


def _of_environment(name: str | None) -> str | None:
    if name is None:
        return None
    if name not in os.environ:
        raise UsageError(
            f"the environment variable {name} is not set",
            where="store",
            expected=f"{name} with the credential, where this runs and in Spark's workers",
        )
    return os.environ[name]


def _told(error: RedisError) -> str:
    # A pipeline's error quotes the command, with its key: that may be a person's.
    text = str(error).rpartition("caused error: ")[2] or type(error).__name__
    first = text.splitlines()[0]
    return f"Redis does not answer: {first}" if _is_absence(error) else f"Redis refuses: {first}"


def _cure(error: RedisError) -> str:
    text = str(error)
    if "OOM" in text or "maxmemory" in text:
        return "more `maxmemory`, or fewer views: Redis is full, and keeps what it has"
    if any(word in text for word in ("NOAUTH", "WRONGPASS", "NOPERM", "invalid username")):
        return "username_env and password_env of a user that may read, write and run scripts"
    if _is_absence(error):
        return "a server that runs, at this address, within the time limits"
    return "a Redis of version 6.2 or later"


def _is_absence(error: RedisError) -> bool:
    return isinstance(error, (NotConnected, redis.exceptions.TimeoutError)) and not isinstance(
        error, redis.exceptions.AuthenticationError
    )
