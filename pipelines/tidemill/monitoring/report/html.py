"""Plots and tables as HTML that stands in a page: no script, the page's own colors, escaped.

rows ──plotting.chart──► Vega-Lite ──dressed──► SVG, wide and narrow
  └──────────────────────────────────────────► the same as a table
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from html import escape
from typing import Any

from tidemill.config.settings import parse_time
from tidemill.lake.visible_text import visible
from tidemill.query import charts

WIDTHS = {"wide": (760, 260), "narrow": (330, 230)}  # pixels of a plot, by the page's width
_QUIET = {"background": "transparent", "autosize": {"type": "fit-x", "contains": "padding"}}


def section(
    title: str,
    what: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    kind: str,
    x: str | None = None,
    y: str | None = None,
    color: str | None = None,
    labels: dict[str, str] | None = None,
    table: str | None = None,
    empty: str = "Nothing in these days.",
    opened: bool = False,
) -> str:
    """Return a section: its plot, and the same rows, or a better table, to be opened."""
    if not rows:
        return plain(title, what, f"<p class='empty'>{text_of(empty)}</p>")
    x, y = x or columns[0], y or columns[-1]
    plots = "\n".join(
        f"<div class='{name}'>{_svg(title, columns, rows, kind, x, y, color, labels, size)}</div>"
        for name, size in WIDTHS.items()
    )
    listing = table or table_of(columns, rows)
    more = f"<details{' open' if opened else ''}><summary>as a table</summary>{listing}</details>"
    return plain(title, what, f"<figure>{plots}</figure>\n{more}")


def plain(title: str, what: str, body: str) -> str:
    """Return a section with any body; only the body is HTML already."""
    text = text_of(what).replace("`tidemill maintain`", "<code>tidemill maintain</code>")
    return f"<section>\n<h2>{text_of(title)}</h2>\n<p>{text}</p>\n{body}\n</section>"


def _svg(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    kind: str,
    x: str,
    y: str,
    color: str | None,
    labels: dict[str, str] | None,
    size: tuple[int, int],
) -> str:
    """Return a plot as text that stands in the page, in the page's own colors."""
    from tidemill.query import figure

    width, height = size
    made = charts.chart(
        columns, rows, kind=kind, x=x, y=y, color=color, labels=labels, width=width, height=height
    )
    drawing = figure.svg(_dressed(made.to_dict(), width))
    return drawing.replace("<svg ", f'<svg role="img" aria-label="{text_of(title)}, a plot" ', 1)


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


def table_of(columns: Iterable[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as a table that scrolls in itself where the page is narrow."""
    head = "".join(f"<th scope='col'>{text_of(name)}</th>" for name in columns)
    body = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        "<div class='scroll' tabindex='0'><table>"
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def _cell(value: Any) -> str:
    if isinstance(value, int | float):
        return f"<td class='n'>{value:,}</td>"
    return f"<td>{'' if value is None else text_of(value)}</td>"


def text_of(value: object) -> str:
    """Return the value as text of a page: escaped, its control characters made visible."""
    return escape(visible(value))
