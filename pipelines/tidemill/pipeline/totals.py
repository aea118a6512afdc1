"""The totals of a run: they are added up batch by batch, so that a run of months keeps none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tidemill.config.settings import iso
from tidemill.lake.batches import BatchRow
from tidemill.pipeline.queries import Pipeline

CLEANED = ("events", "accepted", "quarantined", "duplicates")


@dataclass
class Totals:
    """Counts over all batches of a run."""

    batches: int = 0
    cleaned: Counter[str] = field(default_factory=Counter)
    keys_changed: int = 0
    _newest: int = -1

    def add(self, rows: Sequence[BatchRow]) -> None:
        """Add commits, each given once; a batch of feature is one however many views it has."""
        for row in rows:
            if row.query == "clean":
                self.cleaned.update({name: row.counts[name] for name in CLEANED})
            self.keys_changed += row.counts.get("keys_changed", 0)
        fed = {row.batch for row in rows if row.query == "feature" and row.batch > self._newest}
        self.batches += len(fed)
        self._newest = max(fed, default=self._newest)

    def summary(self, pipeline: Pipeline, seconds: float) -> dict[str, Any]:
        """Return what `run` prints at its end: the totals, and where the first view's gold
        stands."""
        state = pipeline.lake.gold_state(pipeline.definition.views[0])
        return {
            "batches": self.batches,
            **{name: self.cleaned[name] for name in CLEANED},
            "keys_changed": self.keys_changed,
            "as_of": state.as_of and iso(state.as_of),
            "gold_version": state.version,
            "seconds": round(seconds, 3),
        }
