"""A tree of seconds as a picture: a box per name, as wide as its seconds, below what called it.

The drawing takes its ink from the page, light or dark, and has no script; every name is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from tidemill.lake.visible_text import visible
from tidemill.monitoring.profile.flame import Box, Node, boxes

_HEIGHT, _LETTER, _GAP = 20, 6.6, 1
# Parts by kind of color: what computes, what plans, Delta's own, and the rest in the page's grey.
_COLORS = {
    "jobs": "#1f6f8b",
    "write": "#3a9d8f",
    "commit": "#7a9e3f",
    "snapshot": "#b8862f",
    "planning": "#b4563f",
    "compiling": "#8f4a86",
    "checkpoint": "#6c7a3a",
    "offsets": "#5a6fb0",
    "python": "#4f7f5f",
}


def svg(root: Node, width: int) -> str:
    """Return the drawing, `width` pixels wide; a box's seconds and share stand in its title."""
    drawn = boxes(root)
    height = (max(box.depth for box in drawn) + 1) * _HEIGHT
    label = f"{visible(root.name)}, its seconds by what called what, a plot"
    body = "".join(part for box in drawn for part in _box(box, root.seconds or 1.0, width))
    return (
        f'<svg role="img" aria-label="{escape(label)}" xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="monospace" font-size="11">{body}</svg>'
    )


def _box(box: Box, whole: float, width: int) -> Iterator[str]:
    x, y = box.start / whole * width, box.depth * _HEIGHT
    wide = max(box.seconds / whole * width - _GAP, 1)
    name = visible(box.name)
    color = _COLORS.get(box.name, "#8888")
    title = f"{name}: {box.seconds:.2f} s, {box.seconds / whole:.0%}"
    yield f'<g><title>{escape(title)}</title><rect x="{x:.1f}" y="{y}" width="{wide:.1f}" '
    yield f'height="{_HEIGHT - _GAP}" rx="2" fill="{color}" fill-opacity="0.35"/>'
    letters = int((wide - 6) / _LETTER)
    if letters >= 3:
        shown = name if len(name) <= letters else f"{name[: letters - 1]}…"
        yield f'<text x="{x + 3:.1f}" y="{y + 13}" fill="currentColor">{escape(shown)}</text>'
    yield "</g>"
