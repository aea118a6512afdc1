"""What a store says of a view's slices: through which batch of clean they are whole, and of what.

    slices of a batch ──► state      last, and only if nobody else has advanced it

A reader passes over slices of a batch that the state does not name yet. Another definition of the
view, or events that were made again, is another `layout`, whose slices stand beside the old ones.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from tidemill.config.settings import EPOCH
from tidemill.features import FeatureView
from tidemill.online import packing


@dataclass(frozen=True)
class SliceState:
    """A view's slices in a store.

    `words` are the view as a file says it, as JSON; `events` names the table of its events and its
    generation. All batches of clean up to `through` are in the store, since `visible_at`; their
    newest bucket ends at `newest`. Slices of batches up to `compacted` are merged. `clock` says
    whether windows end there or at the minute of the request. `version` is that of the events'
    table when they were read.
    """

    view: str
    words: str
    events: str
    clock: str
    through: int = -1
    compacted: int = -1
    version: int = -1
    newest: datetime = EPOCH
    visible_at: datetime = EPOCH

    @property
    def declared(self) -> FeatureView:
        """The view."""
        return _declared(self.words)

    @property
    def layout(self) -> str:
        """A hash of what the slices are of."""
        return _layout(self.words, self.events)

    @property
    def reach(self) -> int:
        """The seconds that a slice is needed for behind the end of its hour, and an hour."""
        return int(self.declared.horizon.total_seconds()) + 3600

    def packed(self) -> bytes:
        """Return the state as a store keeps it."""
        names = self.__dataclass_fields__
        return packing.pack({name: getattr(self, name) for name in names})

    @classmethod
    def unpacked(cls, content: bytes) -> SliceState:
        """Return the state that a store keeps; fields of a later Tidemill are passed over."""
        fields = packing.unpack(content)
        return cls(**{name: fields[name] for name in cls.__dataclass_fields__ if name in fields})


@lru_cache(maxsize=64)
def _declared(words: str) -> FeatureView:
    return FeatureView.model_validate(json.loads(words))


@lru_cache(maxsize=64)
def _layout(words: str, events: str) -> str:
    said = json.dumps([_declared(words).definition, events])
    return hashlib.sha256(said.encode()).hexdigest()[:8]
