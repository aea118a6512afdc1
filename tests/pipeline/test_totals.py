"""What a run adds up, batch by batch."""

from __future__ import annotations

from lakes import NOW
from tidemill.lake.batches import BatchRow
from tidemill.pipeline.totals import Totals

CLEAN = {"events": 8, "accepted": 5, "quarantined": 2, "duplicates": 1}


def row(query: str, batch: int, view: str | None = None, **counts: int) -> BatchRow:
    return BatchRow(query, "g", batch, NOW, batch, view, NOW, counts=counts)


def test_totals_are_the_same_however_the_commits_are_told() -> None:
    rows = [
        row("land", 0, events=8),
        row("clean", 0, **CLEAN),
        row("feature", 0, "plays", keys_changed=3),
        row("feature", 0, "clicks", keys_changed=2),
        row("clean", 1, **CLEAN),
        row("feature", 1, "plays", keys_changed=1),
        row("feature", 1, "clicks", keys_changed=0),
        row("refresh", 2, "plays", keys_changed=4),
    ]
    at_once, one_by_one = Totals(), Totals()
    at_once.add(rows)
    for each in rows:
        one_by_one.add([each])
    assert at_once == one_by_one
    assert (at_once.batches, at_once.keys_changed) == (2, 10)
    assert at_once.cleaned == {name: 2 * count for name, count in CLEAN.items()}
