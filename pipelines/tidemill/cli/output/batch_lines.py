"""A line per batch: columns of at most 100 characters, under a header that comes again.

  query batch        as_of    events refused duplicates   buckets   changed clean append  diff merge
feature     1  11-21 09:10     6,846      40         69     6,151     1,958  2.7s   1.1s  1.1s  0.3s

`changed` are keys. The last four are seconds by step; a step that a batch had no part in is blank.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemill.lake.batches import BatchRow

HEADER_EVERY = 24
_WIDTHS = {
    "query": 7,
    "batch": 6,
    "as_of": 13,
    "events": 10,
    "refused": 8,
    "duplicates": 11,
    "buckets": 10,
    "changed": 10,
    "clean": 6,
    "append": 7,
    "diff": 6,
    "merge": 6,
}
_STEPS = ("clean", "append", "diff", "merge")


def header() -> str:
    """Return the names of the columns, each at the right of its column."""
    return _aligned({name: name for name in _WIDTHS})


def batch_line(row: BatchRow, cleaned: Mapping[str, int], clean_seconds: float) -> str:
    """Return the line of a refresh; `cleaned` counts what clean refused since the last one."""
    counts = {
        "events": row.counts.get("events", 0),
        "refused": cleaned.get("quarantined", 0),
        "duplicates": cleaned.get("duplicates", 0),
        "buckets": row.counts.get("buckets", 0),
        "changed": row.counts.get("keys_changed", 0),
    }
    seconds = {"clean": clean_seconds, **row.seconds} if clean_seconds else row.seconds
    return _aligned(
        {
            "query": row.query,
            "batch": str(row.batch),
            "as_of": f"{row.as_of:%m-%d %H:%M}" if row.as_of else "-",
            **{name: f"{count:,}" for name, count in counts.items()},
            **{step: _seconds(seconds[step]) for step in _STEPS if step in seconds},
        }
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds < 100 else f"{seconds:.0f}s"


def _aligned(cells: Mapping[str, str]) -> str:
    return "".join(f"{cells.get(name, ''):>{width}}" for name, width in _WIDTHS.items()).rstrip()
