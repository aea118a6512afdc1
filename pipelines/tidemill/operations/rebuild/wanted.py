"""What a rebuild of a part is asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

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

    def spec(self, view: FeatureView, partials: Sequence[str]) -> str:
        """Return a name for the same rebuild of these partials of a view, made the same way."""
        made = {p.name: made_of(view, p) for p in view.partials if p.name in partials}
        said = [sorted(made.items()), [dict(key) for key in self.keys], str(self.since)]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:12]
