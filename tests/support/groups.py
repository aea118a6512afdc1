"""The group of a test, which follows from its folder.

`make test` runs the main job: from records to features, exact and safe to kill. The folders around
it (other aggregates, operations, quality, the bundle, notebooks, reports ...) are `make
test-around`. CI runs both.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
MAIN = ("cli", "features", "lake", "pipeline", "sources")
AROUND = (
    "config",
    "databricks",
    "features/aggregates",
    "monitoring",
    "operations",
    "pipeline/stateful",
    "project",
    "quality",
    "query",
)


def mark(items: list[pytest.Item]) -> None:
    """Mark the tests of the folders around the main job."""
    for item in items:
        folder = item.path.parent.relative_to(TESTS)
        if any(folder.is_relative_to(around) for around in AROUND):
            item.add_marker("around")
