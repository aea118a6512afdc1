"""What stands on the page of a report: sections with plots and tables, and how they become HTML.

rows ──charts.chart──► Vega-Lite ──dressed──► SVG, wide and narrow ──┐
  └──────────────────────────────────────────► the same as a table ──┴──report.html──► page

`report.html` is a Jinja template with autoescape, `sections.html` what a section is: every value is
escaped, its control characters made visible; the plots alone, which are drawings without a script,
are put in as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemill.config.settings import parse_time
from tidemill.lake.visible_text import visible
from tidemill.query import charts

if TYPE_CHECKING:
    import jinja2

FOLDER = Path(__file__).parent
STYLE = FOLDER / "style.css"
WIDTHS = {"wide": (760, 260), "narrow": (330, 230)}  # pixels of a plot, by the page's width
SMALL = {"small": (330, 200)}  # of one that is the same on both
_QUIET = {"background": "transparent", "autosize": {"type": "fit-x", "contains": "padding"}}


@dataclass(frozen=True)
class Link:
    """A cell that leads to another page of ours."""

    text: str
    href: str


@dataclass(frozen=True)
class Table:
    """Rows below the names of their columns: texts, numbers, links, None for an empty cell."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Section:
    """A part of the page: a heading, what it shows, its plot by width, and the same as a table.

    Without plots the table stands open; without rows stands `empty`. What is between backquotes in
    `what` is shown as code. Of sections that follow each other and are small two stand beside each
    other, where the page is wide.
    """

    title: str
    what: str
    table: Table
    plots: Mapping[str, str] = field(default_factory=dict)
    empty: str = ""
    opened: bool = False

    @property
    def is_small(self) -> bool:
        """Whether another one has room beside it."""
        return self.plots.keys() == SMALL.keys()


def section(
    title: str,
    what: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    kind: str,
    x: str | None = None,
    y: str | Sequence[str] | None = None,
    color: str | None = None,
    labels: dict[str, str] | None = None,
    table: Table | None = None,
    empty: str = "Nothing in these days.",
    opened: bool = False,
    small: bool = False,
) -> Section:
    """Return a section with a plot of the rows, and the same rows, or a better table, to be
    opened. To draw is most of what a page takes, so where there are many plots they are `small`:
    drawn once, not for a wide and for a narrow page."""
    listing = table or Table(columns, rows)
    if not rows:
        return Section(title, what, listing, empty=empty)
    x, y = x or columns[0], y or columns[-1]
    made = charts.chart(columns, rows, kind=kind, x=x, y=y, color=color, labels=labels)
    spec = made.to_dict()
    sizes = SMALL if small else WIDTHS
    plots = {name: _svg(title, spec, size) for name, size in sizes.items()}
    return Section(title, what, listing, plots, opened=opened)


def warm() -> None:
    """Draw a plot of nothing in particular: the first one imports what draws, for a second."""
    section("warm", "", ["x", "y"], [["a", 1]], kind="bar")


def rendered(**values: Any) -> str:
    """Return the page of the report with these values."""
    return environment(FOLDER).get_template("report.html").render(values)


@cache
def environment(folder: Path) -> jinja2.Environment:
    """Return what renders the templates of a folder, and those of this one: every value is
    escaped and its control characters made visible, a name without a value is an error. It is kept,
    as to compile a page's templates takes longer than to fill them."""
    import jinja2
    from markupsafe import Markup

    def as_code(text: str) -> Markup:
        return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", escape(visible(text))))

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder, FOLDER]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: value if hasattr(value, "__html__") else visible(value),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["as_code"] = as_code
    return made


def style() -> str:
    """Return the style as it stands in a page, for the page's policy."""
    return f"<style>{STYLE.read_text('utf-8').removesuffix(chr(10))}</style>"


def _svg(title: str, spec: Mapping[str, Any], size: tuple[int, int]) -> str:
    """Return a plot as text that stands in the page, in the page's own colors."""
    from tidemill.query import figure

    width, height = size
    own = {**deepcopy(spec), "width": width, "height": height}
    drawing = figure.svg(_dressed(own, width))
    return drawing.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}, a plot" ', 1)


def _dressed(spec: dict[str, Any], width: int) -> dict[str, Any]:
    """Return a plot's declaration in the page's colors and width; what the section's heading says
    already is left out."""
    ink = {"labelColor": "currentColor", "titleColor": "currentColor"}
    lines = dict.fromkeys(("domainColor", "tickColor", "gridColor"), "#8884")
    config = spec.setdefault("config", {})
    config["axis"] = {**config.get("axis", {}), **ink, **lines, "labelSeparation": 10}
    config["axis"]["labelLimit"] = width // 3
    config["legend"] = {**ink, "orient": "top", "columns": max(2, width // 150)}
    for name, channel in spec["encoding"].items():
        if channel.get("type") != "quantitative":
            channel["title"] = None
        elif all(isinstance(point.get(channel["field"]), int) for point in _points(spec)):
            channel["axis"] = {**channel.get("axis", {}), "tickMinStep": 1, "format": ",d"}
        if name == "x" and channel.get("type") == "temporal":
            times = sorted({_time(point["x"]) for point in _points(spec)})
            channel["axis"] = {**channel.get("axis", {}), **_ticks(times, width)}
            if spec["mark"]["type"] == "bar":
                spec["mark"]["size"] = max(1, min(width // 20, width // 2 // len(times)))
                channel["scale"] = {**channel["scale"], "padding": spec["mark"]["size"]}
    return {**spec, **_QUIET}


def _ticks(times: list[datetime], width: int) -> dict[str, Any]:
    """Return which times stand below a plot: those of its points, where they are few."""
    most = max(3, width // 110)
    if len(times) > most:
        return {"tickCount": most}
    return {"values": [time.timestamp() * 1000 for time in times]}


def _time(text: str) -> datetime:
    return parse_time(text, zone=timezone.utc)


def _points(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the points that a plot holds, which Altair may keep beside it."""
    data = spec["data"]
    points: list[dict[str, Any]] = (
        spec["datasets"][data["name"]] if "name" in data else data["values"]
    )
    return points
