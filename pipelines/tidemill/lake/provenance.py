"""What the buckets of a view were made for, as their table's properties say: the view, what decides
a bucket row, and what decides each partial."""

from __future__ import annotations

import hashlib
import json

from tidemill.features import FeatureView
from tidemill.features.columns import Partial

GRAIN, PARTIALS = "tidemill.grain", "tidemill.partials"
DECLARED, VERSION = "tidemill.view", "tidemill.view_version"


def told(view: FeatureView) -> dict[str, str]:
    """Return what the bucket table says it was made for: the view, its grain, and each partial."""
    made = {partial.name: made_of(view, partial) for partial in view.partials}
    return {
        GRAIN: grain(view),
        PARTIALS: json.dumps(made),
        DECLARED: json.dumps(view.words()),
    }


def grain(view: FeatureView) -> str:
    """Return what decides to which bucket row an event belongs."""
    seconds = int(view.bucket_length.total_seconds())
    keys = [(key, view.select[key].sql if key in view.select else "") for key in view.keys]
    return json.dumps([keys, view.event_time, seconds])


def made_of(view: FeatureView, partial: Partial) -> str:
    """Return a hash of what decides a partial's value."""
    chosen = {name: one.sql for name, one in view.select.items() if name in partial.bucket}
    text = json.dumps([partial.type, partial.bucket, partial.merge, chosen], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
