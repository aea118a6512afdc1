"""The demo's tide: which batch may come when."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from lakes import NOW
from tidemill.cli.demo import Tide
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
    tide, rows = Tide(source), []
    assert source.available() == 10
    rows += [clean(0, first, first - 1)]
    assert not tide.is_out(rows)
    assert source.available() == 10
    rows += [feature(0, first - 1)]
    assert not tide.is_out(rows)
    assert source.available() == 20
    assert not tide.is_out(rows)
    assert source.available() == 30
    rows += [clean(1, second, second), clean(2, third, 0)]
    assert not tide.is_out(rows)
    rows += [feature(1, second)]
    assert tide.is_out(rows)


def test_a_batch_that_is_refused_whole_is_through(source: Generator) -> None:
    """No event reaches feature, and the next batch comes nevertheless."""
    tide = Tide(source)
    assert not tide.is_out([clean(0, source.before(10), 0)])
    assert source.available() == 20
