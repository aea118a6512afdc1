"""What a local session takes of a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.lake.session import sizing
from tidemill.lake.session.sizing import GB, Sizing


@pytest.mark.parametrize(
    ("cores", "gigabytes", "expected"),
    [
        (1, 2, Sizing(1, 2, "2g")),
        (2, 24, Sizing(2, 2, "2g")),
        (4, 64, Sizing(4, 4, "4g")),
        (8, 16, Sizing(8, 8, "4g")),
        (64, 512, Sizing(8, 8, "8g")),
    ],
)
def test_a_session_follows_the_machine(cores: int, gigabytes: int, expected: Sizing) -> None:
    assert sizing.sizing(cores, gigabytes * GB) == expected


@pytest.mark.parametrize(
    ("memory", "heap"),
    [
        ("2g", "-Xms1024m"),
        ("3072m", "-Xms1536m"),
        ("4096", "-Xms2048m"),
        ("1GB", "-Xms512m"),
        ("1t", "-Xms524288m"),
        ("512m", ""),
        ("400000k", ""),
        ("", ""),
    ],
)
def test_a_heap_begins_with_half_of_the_memory(memory: str, heap: str) -> None:
    assert sizing.initial_heap(memory) == heap


@pytest.mark.parametrize(
    ("said", "smaller"), [("max\n", False), ("1073741824\n", True), (None, False)]
)
def test_a_containers_limit_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str | None, smaller: bool
) -> None:
    path = tmp_path / "memory.max"
    if said is not None:
        path.write_text(said)
    monkeypatch.setattr(sizing, "_LIMITS", (path,))
    assert (sizing.memory() == GB) is smaller
