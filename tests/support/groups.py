"""The group of a test, which follows from its folder.

`make test` runs the main job: from records to features, exact and safe to repeat. What of it takes
minutes (killed processes, thirty days in any order, random schedules, lost tables and checkpoints)
lies in `long`, where the folders stand again, and is `make test-long`. The folders around the main
job (other aggregates, dimensions, Kafka, Kinesis, operations, quality, the bundle ...) are `make
test-around`. CI runs both at once, as `make test-rest`. Tests of clocks that go back are `make
test-zones` alone.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
MAIN = ("cli", "features", "lake", "pipeline", "sources")
LONG = ("long",)
AROUND = (
    "config",
    "databricks",
    "features/aggregates",
    "monitoring",
    "online",
    "operations",
    "pipeline/alerts",
    "pipeline/dimensions",
    "pipeline/sinks",
    "pipeline/stateful",
    "project",
    "quality",
    "query",
    "sources/kafka",
    "sources/kinesis",
    "training",
)


def mark(items: list[pytest.Item]) -> None:
    """Mark the long tests, and those of the folders around the main job."""
    for item in items:
        folder = item.path.parent.relative_to(TESTS)
        if any(folder.is_relative_to(long) for long in LONG):
            item.add_marker("long")
        if any(folder.is_relative_to(around) for around in AROUND):
            item.add_marker("around")
