"""What a store says of a view: to which version of gold its rows were brought, and how they read.

It is written last in a publish, after all rows, so a reader finds every row at that version or a
newer one. A view whose keys or features change gets another `layout`: its rows stand beside the old
ones until this state names them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from typing import Any

from tidemill.online import packing

NOTHING = -1  # the gold version of a view of which no publish has ended yet
_START = datetime.fromtimestamp(0, timezone.utc)


@dataclass(frozen=True)
class PublishedView:
    """A view in a store.

    `keys` and `features` are names with their SQL types, in the order of a row's values; `empty`
    the values of a key that the store does not have. `generation` and `table` name the gold table
    that was published, `epoch` counts how often all of it was; of two rows of a key the one of the
    higher epoch, then of the higher gold version, is the newer one. `as_of` is the end of the
    windows; `renewed_at` when the rows' time to live was last begun anew.
    """

    view: str
    pipeline: str
    keys: Mapping[str, str]
    features: Mapping[str, str]
    empty: tuple[Any, ...]
    generation: str = ""
    table: str = ""
    epoch: int = 0
    gold_version: int = NOTHING
    as_of: datetime = _START
    published_at: datetime = _START
    renewed_at: datetime = _START
    ttl_seconds: int = 0

    @cached_property
    def layout(self) -> str:
        """A hash of what a row's values are: of two layouts no row can be read by the other."""
        said = json.dumps([list(self.keys.items()), list(self.features.items())])
        return hashlib.sha256(said.encode()).hexdigest()[:8]

    @property
    def is_whole(self) -> bool:
        """Whether a publish of all rows has ended."""
        return self.gold_version > NOTHING

    def packed(self) -> bytes:
        """Return the state as a store keeps it."""
        fields = {
            **{name: getattr(self, name) for name in self.__dataclass_fields__},
            "keys": list(self.keys.items()),
            "features": list(self.features.items()),
        }
        return packing.pack(fields)

    @classmethod
    def unpacked(cls, content: bytes) -> PublishedView:
        """Return the state that a store keeps; fields of a later Tidemill are passed over."""
        fields = packing.unpack(content)
        known = {name: value for name, value in fields.items() if name in cls.__annotations__}
        return cls(
            **{
                **known,
                "keys": dict(known["keys"]),
                "features": dict(known["features"]),
                "empty": tuple(known["empty"]),
            }
        )
