"""Stacks as a tree whose widths are seconds: what a flame picture and its text draw.

(clean_batch, clean, jobs): 2 s ─┐     clean_batch 3 s ─ clean 3 s ┬ jobs 2 s
(clean_batch, clean, write): 1 s ┴──►                              └ write 1 s
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

BETWEEN = ";"  # the names of a stack in one text, as flame graph tools read them
SHOWN = 0.02  # of the whole: a narrower one is left out


@dataclass
class Node:
    """A name on a stack, with the seconds of all stacks that hold it there, and what it called."""

    name: str
    seconds: float = 0.0
    called: dict[str, Node] = field(default_factory=dict)

    def add(self, stack: Sequence[str], seconds: float) -> None:
        """Add a stack below this node."""
        node = self
        node.seconds += seconds
        for name in stack:
            node = node.called.setdefault(name, Node(name))
            node.seconds += seconds


@dataclass(frozen=True)
class Box:
    """A node as a picture shows it: `depth` 0 is the whole; `start` and `seconds` along its
    width."""

    name: str
    depth: int
    start: float
    seconds: float


def tree(name: str, stacks: Iterable[tuple[Sequence[str], float]]) -> Node:
    """Return the stacks, each with its seconds, below one node."""
    root = Node(name)
    for stack, seconds in stacks:
        root.add(stack, seconds)
    return root


def boxes(root: Node, shown: float = SHOWN) -> list[Box]:
    """Return the nodes that take this share of the whole or more, each before what it called, the
    widest first."""
    return list(_boxes(root, 0, 0.0, root.seconds * shown))


def _boxes(node: Node, depth: int, start: float, least: float) -> Iterator[Box]:
    yield Box(node.name, depth, start, node.seconds)
    for called in sorted(node.called.values(), key=lambda each: (-each.seconds, each.name)):
        if called.seconds >= least:
            yield from _boxes(called, depth + 1, start, least)
        start += called.seconds
