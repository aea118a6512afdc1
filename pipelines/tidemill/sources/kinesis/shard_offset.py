"""How far a stream is read: the offset that Spark keeps in the checkpoint, and its parts.

    {"start": "TRIM_HORIZON", "created": "2026-11-20T08:00:00.000Z", "shards": {
        "shardId-000000000000": {"after": "4966...", "read_to": "...", "records": 9, "ended": true},
        "shardId-000000000001": {"after": "4966...", "read_to": "...", "records": 7}}}

A batch between two offsets is, of each shard, the records with a sequence number in (after of the
first, after of the second]: the same ones whenever they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

TRIM_HORIZON = "TRIM_HORIZON"
"""The oldest record that the stream still holds."""


@dataclass(frozen=True)
class Position:
    """How far one shard is read.

    `after` is the sequence number of the last record that was read, None before the first.
    What arrived before `read_to` was read, or was not there. `records` is how many records the
    batch holds that brought the shard here; `from_oldest` that this batch began at the oldest
    record left, as those before it were lost. `ended`: it was closed, and is read to its end.
    """

    after: str | None = None
    read_to: datetime | None = None
    records: int = 0
    ended: bool = False
    from_oldest: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the position without what has its default."""
        words = {name: value for name, value in asdict(self).items() if value}
        return words | ({"read_to": time_text(self.read_to)} if self.read_to else {})

    @staticmethod
    def of(words: Mapping[str, Any]) -> Position:
        """Return the position that `to_json` wrote."""
        read_to = time_of(words["read_to"]) if "read_to" in words else None
        return Position(**{**words, "read_to": read_to})


@dataclass(frozen=True)
class StreamOffset:
    """How far a stream is read, shard by shard.

    A shard that has no position yet, or no record, is read from `start`: TRIM_HORIZON, or a time.
    So `start` decides where the first batch begins, also when that batch is planned again after a
    crash. `created` tells a stream from another one of the same name.
    """

    start: str
    created: str
    shards: Mapping[str, Position] = field(default_factory=dict)

    @property
    def begins(self) -> str | datetime:
        """Where a shard without a position is read from."""
        return TRIM_HORIZON if self.start == TRIM_HORIZON else time_of(self.start)

    def moved_to(self, shards: Mapping[str, Position]) -> StreamOffset:
        """Return the offset with other positions."""
        return replace(self, shards=shards)

    def to_json(self) -> dict[str, Any]:
        """Return the offset as Spark keeps it."""
        shards = {name: position.to_json() for name, position in sorted(self.shards.items())}
        return {"start": self.start, "created": self.created, "shards": shards}

    @staticmethod
    def of(words: Mapping[str, Any]) -> StreamOffset:
        """Return the offset that `to_json` wrote."""
        shards = {name: Position.of(position) for name, position in words["shards"].items()}
        return StreamOffset(words["start"], words["created"], shards)


def time_text(at: datetime) -> str:
    """Return a time in UTC as text, to the millisecond: what Kinesis counts in."""
    text = at.astimezone(timezone.utc).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def time_of(text: str) -> datetime:
    """Return the time that `time_text` wrote."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
