"""What `run --profile` prints: a line per batch, its seconds by part, then each query's functions.

  query batch seconds   jobs planning snapshot  write python ...
feature     1    2.31   0.72     0.55     0.61   0.20   0.12

feature  2.3 s of 1 batch
  ██████████ 100%  feature_step.feature_batch
  █████       52%    refresh.refresh
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tidemill.monitoring.profile import flame, stack_parts
from tidemill.monitoring.profile.flame import BETWEEN

MOST_BATCHES = 20
SHOWN = 0.05
_BAR = 20

Told = Mapping[str, Any]


def lines(profiles: Sequence[Told]) -> Iterator[str]:
    """Yield the lines of the profiles that a run returned; none of none."""
    if not profiles:
        return
    used = [part for part in stack_parts.PARTS if any(part in each["parts"] for each in profiles)]
    widths = {part: max(len(part), 6) + 1 for part in used}
    yield ""
    head = "".join(f"{part:>{widths[part]}}" for part in used)
    yield f"{'query':>9}{'batch':>7}{'seconds':>9}{head}"
    for each in _shown(profiles):
        cells = "".join(
            f"{each['parts'][part]:>{widths[part]}.2f}" if part in each["parts"] else " " * width
            for part, width in widths.items()
        )
        batch = "around" if each["batch"] is None else each["batch"]
        yield f"{each['query']:>9}{batch:>7}{each['seconds']:>9.2f}{cells}".rstrip()
    if len(profiles) > MOST_BATCHES:
        yield f"the {MOST_BATCHES} longest of {len(profiles)}; `tidemill_profiles` holds all"
    for query in dict.fromkeys(each["query"] for each in profiles):
        yield from _tree(query, [p for p in profiles if p["query"] == query and p["stacks"]])


def _shown(profiles: Sequence[Told]) -> Sequence[Told]:
    if len(profiles) <= MOST_BATCHES:
        return profiles
    longest = sorted(profiles, key=lambda each: -each["seconds"])[:MOST_BATCHES]
    return [each for each in profiles if each in longest]


def _tree(query: str, profiles: Sequence[Told]) -> Iterator[str]:
    batches = [each for each in profiles if each["batch"] is not None]
    stacks = [
        (text.split(BETWEEN) if text else [], seconds)
        for each in batches
        for text, seconds in each["stacks"].items()
    ]
    root = flame.tree(query, stacks)
    if not root.seconds:
        return
    yield ""
    yield f"{query}  {root.seconds:.1f} s of {len(batches)} batch{'es' * (len(batches) != 1)}"
    for box in flame.boxes(root, SHOWN)[1:]:
        share = box.seconds / root.seconds
        bar = "█" * max(1, round(share * _BAR))
        yield f"  {bar:<{_BAR}} {share:>4.0%}  {'  ' * (box.depth - 1)}{box.name}"
