"""The step `tidy`: what a killed process left half-written in checkpoints."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

from tidemill.config.settings import Clock
from tidemill.lake.catalog import Lake, checkpoint_root
from tidemill.operations.maintenance.step import Step, many


def tidy(lake: Lake, clock: Clock) -> Iterator[Step]:
    """Yield the step that removes temporary files that are a day old: a killed process left
    them."""
    root = checkpoint_root(lake.place)
    folders = [lake.checkpoint(query.checkpoint).folder for query in lake.pipeline.queries]
    limit = time.time() - timedelta(days=1).total_seconds()
    old = [p for folder in folders for p in folder.rglob(".*.tmp") if p.stat().st_mtime < limit]

    def run() -> str:
        for path in old:
            path.unlink(missing_ok=True)
        return f"{many(len(old), 'file')} removed"

    if old:
        yield Step(
            root.name, "tidy", f"{many(len(old), 'temporary file')} of a killed process", run
        )
