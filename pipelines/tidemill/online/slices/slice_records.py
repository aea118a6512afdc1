"""The slices of a key in an hour, as a store keeps them: a hash of few fields.

    H                the hour: through which batch it is merged, and its partials
    1795500000       a minute of it that was merged with it, by the second in which it begins
    1795500000:17    what batch 17 of clean added to a minute

A field of a batch holds the same whoever writes it and however often. H masks every field of a
batch that it was merged through, so one that is written again counts nowhere. Numbers of batches
stand in front of H's bytes, where a store compares them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidemill.online import packing

HOUR = "H"
HEAD = 8
_HEAD = struct.Struct(">Q")
Parts = Sequence[Any]  # partials in the order of the view's


@dataclass(frozen=True)
class KeyHour:
    """Fields to write of a key's hour, by their names: added by a batch, or with H in the place of
    all that was merged through it."""

    key: str
    hour: int
    batch: int
    fields: Mapping[str, bytes]

    @property
    def merges(self) -> bool:
        """Whether the fields take the place of others."""
        return HOUR in self.fields


def added(key: str, hour: int, batch: int, minutes: Mapping[int, Parts]) -> KeyHour:
    """Return what a batch adds to minutes of an hour."""
    fields = {f"{minute}:{batch}": packing.pack(list(of)) for minute, of in minutes.items()}
    return KeyHour(key, hour, batch, fields)


def merged(key: str, hour: int, batch: int, minutes: Mapping[int, Parts], whole: Parts) -> KeyHour:
    """Return an hour that is merged through a batch, and its minutes."""
    fields = {str(minute): packing.pack(list(of)) for minute, of in minutes.items()}
    return KeyHour(key, hour, batch, {**fields, HOUR: head(batch) + packing.pack(list(whole))})


def head(batch: int) -> bytes:
    """Return the bytes that name a batch."""
    return _HEAD.pack(batch + 1)


def batch_of(field: str) -> int | None:
    """Return the batch that a field is of; None for one that is merged."""
    _, colon, batch = field.partition(":")
    return int(batch) if colon else None


@dataclass(frozen=True)
class ReadHour:
    """An hour as it is read: its merged partials, None before it is merged, and rows of its minutes
    with the second in which each begins; `late` are the rows that are not in the merged ones."""

    through: int
    whole: Parts | None
    minutes: Sequence[tuple[int, Parts]]
    late: Sequence[Parts]


def read(fields: Mapping[str, bytes], through: int) -> ReadHour:
    """Return an hour of its fields, with no more than batches up to `through`, but for what is
    merged already."""
    whole = fields.get(HOUR)
    masked = _HEAD.unpack_from(whole)[0] - 1 if whole else -1
    minutes, late = [], []
    for name, content in fields.items():
        if name == HOUR:
            continue
        batch = batch_of(name)
        if batch is not None and not masked < batch <= through:
            continue
        parts = packing.unpack(content)
        minutes.append((int(name.partition(":")[0]), parts))
        if batch is not None:
            late.append(parts)
    return ReadHour(masked, packing.unpack(whole[HEAD:]) if whole else None, minutes, late)
