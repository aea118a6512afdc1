"""The page of `tidemill report`: one HTML file that holds its style and its plots, and no script.

    numbers ──sections──► heading, plot (two widths, for a desk and a phone), the same as a table

Every text is escaped. Colors follow the reader's light or dark; a plot's axes take the text's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from tidemill import plotting
from tidemill.errors import UsageError
from tidemill.reporting import Numbers
from tidemill.screen import span

TEMPLATE = Path(__file__).parent / "templates" / "report.html"
WIDTHS = {"wide": (760, 260), "narrow": (330, 230)}  # pixels of a plot, by the page's width
_QUIET = {"background": "transparent", "autosize": {"type": "fit-x", "contains": "padding"}}
_NEWEST = (
    *("query", "view", "batch", "committed_at", "events", "refused", "keys_changed"),
    *("backlog", "freshness", "seconds"),
)
_LATE = ("10 s", "1 min", "5 min", "1 h", "6 h", "1 d", "7 d", "more")


def check(output: Path) -> None:
    """Refuse what cannot become the page, before anything is read."""
    plotting.require_altair()
    if output.suffix not in {".html", ".htm"}:
        message = f"{str(output)!r} is no page"
        raise UsageError(message, where="--output", expected="a name that ends with .html")
    if not output.absolute().parent.is_dir():
        message = f"there is no folder {str(output.absolute().parent)!r}"
        raise UsageError(message, where="--output", expected="a folder that is there")


def write(found: Numbers, output: Path) -> Path:
    """Write the page; yield its path."""
    try:
        output.write_text(rendered(found), encoding="utf-8")
    except OSError as error:
        message = f"cannot be written: {error.strerror}"
        raise UsageError(message, where=str(output), expected="a file you may write") from error
    return output.absolute()


def rendered(found: Numbers) -> str:
    """Yield the page as text."""
    return Template(TEMPLATE.read_text("utf-8")).substitute(
        pipeline=escape(found["pipeline"]),
        lake=escape(found["lake"]),
        at=escape(found["at"]),
        days=f"{found['days']} day{'s' if found['days'] != 1 else ''}",
        cards="\n".join(_cards(found)),
        sections="\n".join(_sections(found)),
    )


def _cards(found: Numbers) -> Iterator[str]:
    """Yield the numbers at the top of the page."""
    totals = found["totals"]
    for fresh in found["freshness"]:
        age = "never refreshed" if fresh["as_of"] is None else f"{span(fresh['age_seconds'])} old"
        yield _card(age, f"{fresh['view']}, as of {fresh['as_of'] or '-'}")
    yield _card(f"{totals['events']:,}", "records judged")
    share = totals["quarantined"] / totals["events"] if totals["events"] else 0
    yield _card(f"{share:.2%}", f"refused, {totals['quarantined']:,} records")
    yield _card(f"{totals['duplicates']:,}", "duplicates")
    yield _card(f"{totals['keys_changed']:,}", f"keys changed by {totals['refreshes']:,} refreshes")
    yield _card(f"{totals['tick_seconds']:.1f} s", "median refresh")
    yield _card(f"{totals['backlog']:,}", "rows waited at the last batch")


def _card(number: str, what: str) -> str:
    return f"<div class='card'><b>{escape(number)}</b><span>{escape(what)}</span></div>"


def _sections(found: Numbers) -> Iterator[str]:
    bins = found["over_time"]
    yield _section(
        "Freshness",
        "How old gold was when a refresh could be read: commit time minus as_of, the largest of "
        "each time. With an event clock, a replay of old events is old.",
        ["time", "view", "seconds"],
        [[b["start"], view, age] for b in bins for view, age in b["freshness"].items()],
        kind="line",
        color="view",
        labels={"seconds": "seconds behind"},
    )
    yield _section(
        "Volumes",
        "Records that clean judged, by what became of them.",
        ["time", "became", "records"],
        [
            [b["start"], shown, b[name]]
            for b in bins
            for name, shown in (
                ("accepted", "accepted"),
                ("duplicates", "duplicate"),
                ("quarantined", "refused"),
            )
        ],
        kind="bar",
        color="became",
    )
    yield _section(
        "Latency by step",
        "Seconds of a batch, the median of each time.",
        ["time", "step", "seconds"],
        [[b["start"], step, s] for b in bins for step, s in b["seconds"].items()],
        kind="line",
        color="step",
        table=_table(
            ["query", "view", "step", "batches", "median s", "95 % s", "most s"],
            [list(row.values()) for row in found["seconds"]],
        ),
    )
    yield _section(
        "Backlog",
        "Rows that waited for the query when its batch was done, the most of each time.",
        ["time", "query", "rows"],
        [[b["start"], query, rows] for b in bins for query, rows in b["backlog"].items()],
        kind="line",
        color="query",
    )
    yield _section(
        "Refused by reason",
        "A record that breaks two rules counts in both.",
        ["reason", "records", "share"],
        [[r["reason"], r["records"], f"{r['share']:.3%}"] for r in found["refused"]],
        kind="bar",
        x="reason",
        y="records",
        empty="Nothing was refused.",
    )
    yield _late(found["late"])
    yield _section(
        "Cost of ticks",
        "Rows of gold by what the MERGEs did with them. Copied rows did not change: they stood in "
        "a file that was written again.",
        ["time", "rows were", "rows"],
        [[b["start"], action, rows] for b in bins for action, rows in b["merged"].items()],
        kind="bar",
        color="rows were",
    )
    yield _files(found["files"])
    shown = [[row[name] for name in _NEWEST] for row in found["batches"]]
    headings = [name.replace("_", " ") for name in _NEWEST]
    yield _plain("Newest batches", "Newest first; freshness in seconds.", _table(headings, shown))


def _late(late: Numbers) -> str:
    """Yield the section of lateness."""
    within = {None: "more than 7 days"}
    half, high = (
        within.get(late[name]) or f"within {span(late[name])}"
        for name in ("half_within", "p95_within")
    )
    rows = [[n, c] for n, c in zip(_LATE, late["classes"].values(), strict=True)]
    return _section(
        "Lateness",
        f"From event time to arrival, of accepted events. Half came {half}, 95 of 100 {high}; the "
        f"latest {span(late['most'])} late.",
        ["at most", "events"],
        rows if any(events for _, events in rows) else [],
        kind="bar",
        empty="No lateness is known: no event was accepted since it is counted.",
    )


def _files(files: Sequence[Numbers]) -> str:
    """Yield the section of the files' health."""
    names = ("table", "files", "bytes", "small_files", "log_files", "log_bytes")
    rows = [[f[name] for name in names] for f in files]
    for row, one in zip(rows, files, strict=True):
        row[2], row[5] = _size(one["bytes"]), _size(one["log_bytes"])
        if one["small_files"] is not None and one["files"]:
            row[3] = f"{one['small_files']:,} ({one['small_files'] / one['files']:.0%})"
    headings = ["table", "files", "size", "small files", "log files", "log size"]
    return _section(
        "File health",
        "Small files are under 16 MB beside another such file of their partition: "
        "`tidemill maintain` puts those of closed partitions together.",
        ["table", "files"],
        [[one["table"], one["files"]] for one in files],
        kind="bar",
        x="table",
        y="files",
        table=_table(headings, rows),
        opened=True,
    )


def _section(
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
    """Yield a section: its plot, and the same rows, or a better table, to be opened."""
    if not rows:
        return _plain(title, what, f"<p class='empty'>{escape(empty)}</p>")
    x, y = x or columns[0], y or columns[-1]
    plots = "\n".join(
        f"<div class='{name}'>{_svg(title, columns, rows, kind, x, y, color, labels, size)}</div>"
        for name, size in WIDTHS.items()
    )
    found = table or _table(columns, rows)
    more = f"<details{' open' if opened else ''}><summary>as a table</summary>{found}</details>"
    return _plain(title, what, f"<figure>{plots}</figure>\n{more}")


def _plain(title: str, what: str, body: str) -> str:
    told = escape(what).replace("`tidemill maintain`", "<code>tidemill maintain</code>")
    return f"<section>\n<h2>{escape(title)}</h2>\n<p>{told}</p>\n{body}\n</section>"


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
    """Yield a plot as text that stands in the page, in the page's own colors."""
    import altair
    import vl_convert

    width, height = size
    made = plotting.chart(
        columns, rows, kind=kind, x=x, y=y, color=color, labels=labels, width=width, height=height
    )
    spec = _dressed(made.to_dict(), width)
    version = ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    text: str = vl_convert.vegalite_to_svg(spec, vl_version=version)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}, a plot" ', 1)


def _dressed(spec: dict[str, Any], width: int) -> dict[str, Any]:
    """Yield a plot's declaration in the page's colors and width; what the section's heading says
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
        if name == "x" and channel.get("type") == "temporal":
            times = sorted({_time(point["x"]) for point in _points(spec)})
            channel["axis"] = {**channel.get("axis", {}), **_ticks(times, width)}
            if spec["mark"]["type"] == "bar":
                spec["mark"]["size"] = max(1, min(width // 20, width // 2 // len(times)))
                channel["scale"] = {**channel["scale"], "padding": spec["mark"]["size"]}
    return {**spec, **_QUIET}


def _ticks(times: list[datetime], width: int) -> dict[str, Any]:
    """Yield which times stand below a plot: those of its points, where they are few."""
    most = max(3, width // 110)
    if len(times) > most:
        return {"tickCount": most}
    return {"values": [time.timestamp() * 1000 for time in times]}


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _points(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Yield the points that a plot holds, which Altair may keep beside it."""
    data = spec["data"]
    found: list[dict[str, Any]] = (
        spec["datasets"][data["name"]] if "name" in data else data["values"]
    )
    return found


def _table(columns: Iterable[str], rows: Iterable[Sequence[Any]]) -> str:
    head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in columns)
    body = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        "<div class='scroll' tabindex='0'><table>"
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def _cell(value: Any) -> str:
    if isinstance(value, int | float):
        return f"<td class='n'>{value:,}</td>"
    return f"<td>{escape('' if value is None else str(value))}</td>"


def _size(number: int | None) -> str | None:
    """Yield a number of bytes in the unit that fits."""
    if number is None:
        return None
    size = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
