"""The demo's tide, which batch may come when, and the width of what it prints."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import Row
from rich.cells import cell_len

from lakes import NOW
from tidemill.cli.commands.demo import Tide, introduce, show_features, show_next
from tidemill.cli.output.display import Show
from tidemill.config.pipeline_file import load
from tidemill.config.settings import Place
from tidemill.lake.batches import BatchRow
from tidemill.sources.generator.source import Generator


@pytest.fixture
def source(tmp_path: Path) -> Generator:
    """Three batches of ten minutes, one record a minute."""
    start = datetime(2026, 11, 21, tzinfo=timezone.utc)
    file = str(tmp_path / "minutes")
    return Generator(start=start, rate=1, minutes=30, minutes_per_batch=10, released_in=file)


def clean(batch: int, events: int, accepted: int) -> BatchRow:
    counts = {"events": events, "accepted": accepted}
    return BatchRow("clean", "g", batch, NOW, batch, counts=counts)


def feature(batch: int, events: int) -> BatchRow:
    return BatchRow("feature", "g", batch, NOW, batch, counts={"events": events})


def test_a_batch_comes_when_there_is_room_for_it(source: Generator) -> None:
    """The second when the first is through, and from then on one ahead."""
    first, second, third = (source.before(m) - source.before(m - 10) for m in (10, 20, 30))
    tide = Tide(source)
    assert source.available() == 10
    tide.on_batch([clean(0, first, first - 1)])
    assert not tide.has_enough
    assert source.available() == 10
    tide.on_batch([feature(0, first - 1)])
    assert not tide.has_enough
    assert source.available() == 20
    tide.on_batch([clean(1, second, second)])
    assert source.available() == 30
    tide.on_batch([clean(2, third, 0)])
    assert not tide.has_enough
    tide.on_batch([feature(1, second)])
    assert tide.has_enough


def test_a_batch_that_is_refused_whole_is_through(source: Generator) -> None:
    """No event reaches feature, and the next batch comes nevertheless."""
    tide = Tide(source)
    tide.on_batch([clean(0, source.before(10), 0)])
    assert not tide.has_enough
    assert source.available() == 20


def test_a_backlog_tells_of_its_large_batches(capsys: pytest.CaptureFixture[str]) -> None:
    """Gold is refreshed once in a first run, so nothing else would be seen for minutes."""
    show = Show(quiet=False)
    landed = BatchRow("land", "g", 0, NOW, 1, counts={"events": 4_000_000})
    cleaned = replace(clean(0, 2_500_000, 2_400_000), seconds={"clean": 12.3}, backlog=1_500_000)
    show.batches([landed, cleaned, clean(1, 1_000, 1_000), feature(1, 2_401_000)])
    first, second, header, line = capsys.readouterr().out.splitlines()
    assert first == "land          batch 0: 4,000,000 records"
    assert second == "clean         batch 0: 2,500,000 records in 12 s; 1,500,000 left"
    assert header.split()[:2] == ["query", "batch"]
    assert line.split()[:2] == ["feature", "1"]


def test_what_the_demo_prints_is_at_most_100_columns_wide(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With a day's counts a hundred times those of the shipped demo, on a narrow terminal."""
    start = datetime(2026, 11, 21, 7, tzinfo=timezone.utc)
    show, view = Show(quiet=False), load("engagement").views[0]
    place = Place(Path("tidemill-demo"))
    introduce(show, place, Generator(start=start, rate=6_000, minutes=1560))
    show.batches([row for batch in range(30) for row in hundredfold(batch)])
    show.summary(
        {
            "batches": 12,
            "events": 9_278_500,
            "accepted": 9_132_000,
            "quarantined": 55_700,
            "duplicates": 90_800,
            "keys_changed": 3_626_700,
            "as_of": "2026-11-22T09:00:00Z",
            "gold_version": 12,
            "seconds": 1234.5,
        }
    )
    values = {column.name: 99_999 for column in view.columns}
    row = Row(profile_id="profile-100", gti="title-20", **values)
    show_features(show, view, "engagement_features", [row])
    series = {column.name: [99_999] * 12 for column in view.columns}
    show.plot("profile-100 / title-20 over 12 changes", series, [start, NOW])
    show_next(show, place)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(cell_len, lines)) <= 100, [text for text in lines if cell_len(text) > 100]
    assert sum("duplicates   buckets" in text for text in lines) == 2


def hundredfold(batch: int) -> list[BatchRow]:
    cleaned = {"events": 1_350_000, "accepted": 1_306_300, "quarantined": 16_000}
    counts = {"events": 1_306_300, "buckets": 1_108_600, "keys_changed": 345_900}
    seconds = {"append": 115.5, "diff": 222.2, "merge": 111.1}
    return [
        BatchRow(
            "clean",
            "g",
            batch,
            NOW,
            batch,
            counts={**cleaned, "duplicates": 27_600},
            seconds={"clean": 460.9},
        ),
        BatchRow(
            "feature", "g", 1000 + batch, NOW, batch, as_of=NOW, counts=counts, seconds=seconds
        ),
    ]
