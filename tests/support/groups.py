"""The group of a test, which follows from its folder.

`make test` runs the main job: from records to features, exact and safe to repeat. What of it takes
minutes (killed processes, thirty days in any order, random schedules, lost tables and checkpoints)
lies in `long`, where the folders stand again, and is `make test-long`. The folders around the main
job (other aggregates, dimensions, Kafka, Kinesis, operations, quality, the bundle ...) are `make
test-around`. `make test-rest` runs both at once. Tests of clocks that go back are `make test-zones`
alone. CI runs the main job, and of all others one part of six (`--part 2/6`), each day another: a
part has its share of each kind of slow test.
"""

from __future__ import annotations

from collections import defaultdict
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
    "pipeline/streams",
    "project",
    "quality",
    "query",
    "sources/kafka",
    "sources/kinesis",
    "training",
)
# A slow test's kind is the first of these that it is marked with.
KINDS = (
    "crash",
    "kafka",
    "kinesis",
    "redis",
    "notebook",
    "bundle",
    "report",
    "wheel",
    "setup",
    "stream",
    "connect",
    "zones",
)


def mark(items: list[pytest.Item]) -> None:
    """Mark the long tests, and those of the folders around the main job."""
    for item in items:
        folder = item.path.parent.relative_to(TESTS)
        if any(folder.is_relative_to(long) for long in LONG):
            item.add_marker("long")
        if any(folder.is_relative_to(around) for around in AROUND):
            item.add_marker("around")


def part(items: list[pytest.Item], words: str) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests of a part, such as the second of six of `2/6`, and those of the others.

    Neighbours stay together, for what they share. Raises UsageError for words that name no part.
    """
    number, _, parts = words.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise pytest.UsageError(f"--part {words}: say which of how many, such as 2/6")
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        tests[_kind(item)].append(item)
    chosen = set()
    for group in tests.values():
        first, last = (len(group) * end // int(parts) for end in (int(number) - 1, int(number)))
        chosen.update(group[first:last])
    return [item for item in items if item in chosen], [i for i in items if i not in chosen]


def _kind(item: pytest.Item) -> str:
    """Return a test's kind, or the folder of one that is of none."""
    kinds = (kind for kind in KINDS if item.get_closest_marker(kind))
    return next(kinds, str(item.path.parent))
