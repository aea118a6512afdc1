"""What a kind of made-up event is: its fields, each from a number that a hash drew."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from tidemill.sources.generator.mix import Mix

Fields = Callable[[Sequence[float], int, Mix], str]


@dataclass(frozen=True)
class Kind:
    """A kind of event: the name of its time, what makes the fields before it, and its faults.

    `fields` yields JSON, without braces, from at least `numbers` numbers in [0, 1), the minute in
    which the event arrives and the mix. `key` is a field that a fault empties or mistypes;
    `strange` and `renamed`, each a pattern and what takes its place, spoil a value and hide a
    field.
    """

    time: str
    fields: Fields
    key: str
    strange: tuple[str, str]
    renamed: tuple[str, str]
    numbers: int = 3


def zipf(draw: float, size: int) -> int:
    """Return a rank from 1 to `size`; rank k is 1 / k times as likely as rank 1."""
    steps = _zipf_steps(size)
    return bisect_right(steps, draw * steps[-1]) + 1


def even(draw: float, size: int) -> int:
    """Return a number from 1 to `size`, each as likely."""
    return int(draw * size) + 1


@lru_cache(maxsize=16)
def _zipf_steps(size: int) -> tuple[int, ...]:
    return tuple(accumulate(10**9 // rank for rank in range(1, size + 1)))
