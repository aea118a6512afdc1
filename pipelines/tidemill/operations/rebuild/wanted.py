"""What a rebuild of a part is asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tidemill.errors import UsageError
from tidemill.features import FeatureView
from tidemill.lake.provenance import made_of


@dataclass(frozen=True)
class Wanted:
    """What is to be made again: features by name, whole views, or keys and a time from which
    on."""

    features: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    keys: tuple[Mapping[str, str], ...] = ()
    since: datetime | None = None

    def spec(self, view: FeatureView, partials: Sequence[str], extent: str) -> str:
        """Return a name for the same rebuild of these partials of a view, made the same way and of
        the same days, as their `extent` says."""
        made = {p.name: made_of(view, p) for p in view.partials if p.name in partials}
        types = {name: one.type for name, one in view.select.items()}
        keys = [dict(key) for key in self.keys_of(view)]
        said = [sorted(made.items()), types, keys, str(self.since), extent]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:12]

    def keys_of(self, view: FeatureView) -> tuple[Mapping[str, str], ...]:
        """Return the keys that are a view's: of its columns."""
        return tuple(key for key in self.keys if set(key) == set(view.keys))

    def touches(self, view: FeatureView) -> bool:
        """Return whether some of a view's bucket rows are to be made again."""
        return not self.keys or bool(self.keys_of(view))


def wanted(
    source: str | None,
    features: Sequence[str],
    views: Sequence[str],
    keys: Sequence[Mapping[str, object]],
    since: datetime | None,
) -> Wanted | None:
    """Return the part to rebuild, None for all of it from bronze; UsageError for more than one
    thing, or none."""
    words = {"source": source, "features": features, "views": views, "keys, since": keys or since}
    parts = [word for word, said in words.items() if said]
    if len(parts) != 1:
        expected = 'source="bronze", features, views, or keys and since'
        choices = " and ".join(parts) or "nothing"
        raise UsageError(f"a rebuild is of one thing, found {choices}", expected=expected)
    if source:
        if source != "bronze":
            raise UsageError(f"cannot rebuild from {source!r}", where="source", expected="bronze")
        return None
    texts = tuple({name: str(value) for name, value in key.items()} for key in keys)
    return Wanted(tuple(features), tuple(views), texts, since)
