"""The parts that CI runs of the tests beside the main job: together all, in each some of a kind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import groups


@dataclass(frozen=True)
class Test:
    """What `groups` asks of a test."""

    __test__ = False
    name: int
    path: Path
    kind: str | None = None

    def get_closest_marker(self, name: str) -> str | None:
        return name if name == self.kind else None


TESTS: list[Any] = [
    Test(number, Path(folder) / "test_x.py", kind)
    for folder, kind, count in (("a", None, 7), ("b", "crash", 2), ("a", "kafka", 5))
    for number in range(count)
]


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_the_parts_are_the_whole(parts: int) -> None:
    dealt = []
    for number in range(1, parts + 1):
        some, others = groups.part(TESTS, f"{number}/{parts}")
        assert sorted(some + others, key=TESTS.index) == TESTS
        dealt += some
    assert sorted(dealt, key=TESTS.index) == TESTS


def test_a_part_has_its_share_of_each_kind() -> None:
    for words in ("1/2", "2/2"):
        some, _ = groups.part(TESTS, words)
        assert [test.kind for test in some].count("crash") == 1
        assert [test.kind for test in some].count("kafka") in (2, 3)


@pytest.mark.parametrize("words", ["0/2", "3/2", "2", "/", "a/b", "-1/2", ""])
def test_words_that_name_no_part(words: str) -> None:
    with pytest.raises(pytest.UsageError, match="say which of how many, such as 2/6"):
        groups.part(TESTS, words)
