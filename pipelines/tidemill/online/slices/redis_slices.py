"""The Redis store with slices: a hash for each key and hour, by the name
`tidemill-slices:VIEW:LAYOUT:{KEY}:HOUR`.

By the wall clock a hash lives until no window reaches its hour; by the event clock, which may stand
still, until maintenance removes it. States are strings, `tidemill-sliced:VIEW`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from tidemill.online import packing
from tidemill.online.redis_store import ADVANCE, PIPELINED, SCANNED, RedisStore, escaped
from tidemill.online.slices.slice_records import KeyHour
from tidemill.online.slices.slice_state import SliceState
from tidemill.online.slices.slice_store import Hours
from tidemill.online.store import Key

STATES = "tidemill-sliced:"
_FOREVER = -1
# ARGV: the batch, whether it merges, seconds to live, then names and contents of fields in turns.
# H begins with the batch it is merged through, and 1.
_WRITE = """
local batch, merges, live = tonumber(ARGV[1]), ARGV[2] == '1', tonumber(ARGV[3])
local whole = redis.call('HGET', KEYS[1], 'H')
if whole then
  local through = struct.unpack('>I8', whole) - 1
  if through > batch or (through == batch and not merges) then return 0 end
end
if merges then
  for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
    local of = string.match(name, ':(%d+)$')
    if of and tonumber(of) <= batch then redis.call('HDEL', KEYS[1], name) end
  end
end
for place = 4, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[place], ARGV[place + 1]) end
if live > 0 then redis.call('EXPIRE', KEYS[1], live) end
return 1
"""


class RedisSlices(RedisStore):
    """A store in Redis, with slices; see `SliceStore`."""

    def sliced(self, views: Sequence[str]) -> list[SliceState]:
        """Return what the store says of slices."""
        with self._named():
            contents = [self._client.get(STATES + name) for name in views]
        return [SliceState.unpacked(content) for content in contents if content]

    async def sliced_async(self, views: Sequence[str]) -> list[SliceState]:
        """Return what `sliced` does."""
        with self._named():
            contents = [await self._async_client.get(STATES + name) for name in views]
        return [SliceState.unpacked(content) for content in contents if content]

    def write_slices(self, state: SliceState, written: Iterable[KeyHour]) -> None:
        """Write each hash by a script, many to a round trip."""
        prefix, calls = _prefix(state), iter(written)
        with self._named():
            while part := list(islice(calls, PIPELINED)):
                rows = [([_name(prefix, one.key, one.hour)], _words(state, one)) for one in part]
                self._scripted(_WRITE, rows)

    def advance_slices(self, state: SliceState, seen: SliceState | None) -> bool:
        """Put the state in the place of `seen`."""
        before = seen.packed() if seen else b""
        with self._named():
            rows = [([STATES + state.view], [state.packed(), before])]
            return bool(self._scripted(ADVANCE, rows)[0])

    def read_slices(self, state: SliceState, keys: Sequence[Key], hours: range) -> list[Hours]:
        """Return the hashes of these hours, in one round trip."""
        with self._named():
            pipeline = self._client.pipeline(transaction=False)
            for name in _names(state, keys, hours):
                pipeline.hgetall(name)
            return _hours(pipeline.execute(), len(keys), hours)

    async def read_slices_async(
        self, state: SliceState, keys: Sequence[Key], hours: range
    ) -> list[Hours]:
        """Return what `read_slices` does."""
        with self._named():
            pipeline = self._async_client.pipeline(transaction=False)
            for name in _names(state, keys, hours):
                pipeline.hgetall(name)
            return _hours(await pipeline.execute(), len(keys), hours)

    def sweep_slices(self, state: SliceState, before: int) -> int:
        """Remove old hours, and those of other layouts: a look at every hash of the view."""
        living, swept = _prefix(state), 0
        pattern = f"tidemill-slices:{escaped(state.view)}:*"
        with self._named():
            for name in self._client.scan_iter(pattern, count=SCANNED):
                text = name.decode()
                if not text.startswith(living) or int(text.rpartition(":")[2]) < before:
                    swept += self._client.delete(name)
        return swept


def _prefix(state: SliceState) -> str:
    return f"tidemill-slices:{state.view}:{state.layout}:"


def _name(prefix: str, key: str, hour: int) -> str:
    return f"{prefix}{{{key}}}:{hour}"


def _names(state: SliceState, keys: Sequence[Key], hours: range) -> Iterator[str]:
    prefix = _prefix(state)
    for key in keys:
        text = packing.key_text(key)
        for hour in hours:
            yield _name(prefix, text, hour)


def _words(state: SliceState, one: KeyHour) -> list[bytes | str | int]:
    fields = [word for field in one.fields.items() for word in field]
    return [one.batch, int(one.merges), _live(state, one.hour), *fields]


def _live(state: SliceState, hour: int) -> int:
    """Return the seconds that an hour is needed for, from now."""
    if state.clock != "wall":
        return _FOREVER
    return max(int((hour + 1) * 3600 + state.reach - time.time()), 3600)


def _hours(found: Sequence[dict[bytes, bytes]], keys: int, hours: range) -> list[Hours]:
    said = [{name.decode(): content for name, content in one.items()} for one in found]
    each = len(hours)
    return [
        {hour: of for hour, of in zip(hours, said[n * each :], strict=False) if of}
        for n in range(keys)
    ]
