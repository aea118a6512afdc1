"""Windows and the buckets in them, drawn: `explain` as a picture.

1h            ├──────▮──▮┤
12h    ├───▮──────────▮──▮┤        as_of at the right, a mark where a bucket row lies
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from html import escape
from typing import Any

from tidemill.config.settings import parse_time

_LINE, _LEFT, _TOP = 34, 64, 16


def svg(facts: dict[str, Any], width: int) -> str:
    """Return the picture of what `explain` says, so wide in pixels; no script, no outer file."""
    windows = _windows(facts)
    if not windows:
        return ""
    end = max(to for _, to in windows.values())
    begin = min(since for since, _ in windows.values())
    span = max((end - begin).total_seconds(), 1.0)
    inner = width - _LEFT - 12

    def x(at: datetime) -> int:
        return round(_LEFT + inner * (at - begin).total_seconds() / span)

    height = _TOP + _LINE * len(windows) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="windows and buckets, a plot" fill="currentColor" font-size="12">'
    ]
    for place, (name, (since, to)) in enumerate(windows.items()):
        y = _TOP + _LINE * place + 10
        marks: dict[int, list[Any]] = {}
        for each in facts["buckets"]:
            if name in each["windows"]:
                marks.setdefault(x(_time(each["bucket_start"])), []).append(each)
        parts.append(f'<text x="0" y="{y + 4}">{escape(name)}</text>')
        parts.append(
            f'<path d="M{x(since)} {y}H{x(to)}M{x(since)} {y - 5}V{y + 5}" '
            'stroke="currentColor" stroke-opacity=".5" fill="none"/>'
        )
        most = max(map(len, marks.values()), default=1)
        for left, rows in marks.items():
            high = round(4 + 10 * len(rows) / most, 1)
            parts.append(
                f'<rect x="{left}" y="{y - high / 2}" width="2" height="{high}">'
                f"<title>{escape(_title(rows))}</title></rect>"
            )
    label = f"{begin:%Y-%m-%d %H:%M}"
    parts.append(f'<text x="{_LEFT}" y="{height - 4}">{label}</text>')
    parts.append(
        f'<text x="{width - 12}" y="{height - 4}" text-anchor="end">{end:%H:%M}</text></svg>'
    )
    return "".join(parts)


def _windows(facts: dict[str, Any]) -> dict[str, tuple[datetime, datetime]]:
    """Return start and end of each window that has a bucket row, the shortest first."""
    found: dict[str, tuple[datetime, datetime]] = {}
    for name in {name for each in facts["buckets"] for name in each["windows"]}:
        for each in facts["features"]:
            if each["feature"].endswith(f"_{name}") and each["window"]["start"]:
                found[name] = (_time(each["window"]["start"]), _time(each["window"]["end"]))
                break
    return dict(sorted(found.items(), key=lambda item: (item[1][1] - item[1][0], item[0])))


def _time(text: str) -> datetime:
    return parse_time(text)


def _title(rows: Sequence[Any]) -> str:
    """Return what a mark says: its bucket row, or how many lie so near that they are one mark."""
    first, last = rows[-1], rows[0]
    if len(rows) == 1:
        return f"{first['bucket_start']}, batch {first['batch']}"
    return f"{len(rows)} bucket rows, {first['bucket_start']} to {last['bucket_start']}"
