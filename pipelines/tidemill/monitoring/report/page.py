"""The page of `tidemill report`: one HTML file that holds its style and its plots, and no script.

    numbers ──sections──► heading, plot (two widths, for a desk and a phone), the same as a table

Every text is escaped (see `html`), and a policy lets the browser run and fetch nothing. Colors
follow the reader's light or dark; a plot's axes take the text's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tidemill.errors import UsageError
from tidemill.lake.batches import MERGED
from tidemill.monitoring.profile import flame
from tidemill.monitoring.report import flame_picture, html
from tidemill.monitoring.report.html import Section, Table, section
from tidemill.monitoring.report.measurements import Numbers
from tidemill.monitoring.status import span
from tidemill.pipeline.silver import lateness
from tidemill.query import charts
from tidemill.query.content_policy import content_security_policy

_NEWEST = (
    *("query", "view", "batch", "committed_at", "events", "refused", "keys_changed"),
    *("backlog", "freshness", "seconds"),
)
_LATE = ("10 s", "1 min", "5 min", "1 h", "6 h", "1 d", "7 d", "more")


RATES = ("mismatch", "missing", "extra")


def check(output: Path) -> None:
    """Refuse what cannot become the page, before anything is read."""
    charts.require_altair()
    if output.suffix not in {".html", ".htm"}:
        message = f"{str(output)!r} is no page"
        raise UsageError(message, where="--output", expected="a name that ends with .html")
    if not output.absolute().parent.is_dir():
        message = f"there is no folder {str(output.absolute().parent)!r}"
        raise UsageError(message, where="--output", expected="a folder that is there")


def write(numbers: Numbers, output: Path) -> Path:
    """Write the page; return its path."""
    try:
        output.write_text(rendered(numbers), encoding="utf-8")
    except OSError as error:
        message = f"cannot be written: {error.strerror}"
        raise UsageError(message, where=str(output), expected="a file you may write") from error
    return output.absolute()


def rendered(numbers: Numbers) -> str:
    """Return the page as text."""
    return html.rendered(
        policy=content_security_policy(html.style()),
        pipeline=numbers["pipeline"],
        lake=numbers["lake"],
        at=numbers["at"],
        days=f"{numbers['days']} day{'s' if numbers['days'] != 1 else ''}",
        cards=list(_cards(numbers)),
        sections=list(_sections(numbers)),
    )


class Card(NamedTuple):
    """A number at the top of the page."""

    number: str
    what: str


def _cards(numbers: Numbers) -> Iterator[Card]:
    """Yield the numbers at the top of the page."""
    totals = numbers["totals"]
    for fresh in numbers["freshness"]:
        age = "never refreshed" if fresh["as_of"] is None else f"{span(fresh['age_seconds'])} old"
        yield Card(age, f"{fresh['view']}, as of {fresh['as_of'] or '-'}")
    yield Card(f"{totals['events']:,}", "records judged")
    share = totals["quarantined"] / totals["events"] if totals["events"] else 0
    yield Card(f"{share:.2%}", f"refused, {totals['quarantined']:,} records")
    yield Card(f"{totals['duplicates']:,}", "duplicates")
    yield Card(f"{totals['keys_changed']:,}", f"keys changed; refreshes: {totals['refreshes']:,}")
    yield Card(f"{totals['tick_seconds']:.1f} s", "median refresh")
    yield Card(f"{totals['backlog']:,}", "rows waited at the last batch")


def _sections(numbers: Numbers) -> Iterator[Section]:
    """Yield the sections of the page, in its order."""
    bins = numbers["over_time"]
    yield section(
        "Freshness",
        "How old gold was when a refresh could be read: commit time minus as_of, the largest of "
        "each time. With an event clock, a replay of old events is old.",
        ["time", "view", "seconds"],
        [[b["start"], view, age] for b in bins for view, age in b["freshness"].items()],
        kind="line",
        color="view",
        labels={"seconds": "seconds behind"},
    )
    yield volumes(numbers)
    yield latency(numbers)
    yield from profile(numbers)
    yield backlog(numbers)
    yield section(
        "Refused by reason",
        "A record that breaks two rules counts in both.",
        ["reason", "records", "share"],
        [[r["reason"], r["records"], f"{r['share']:.3%}"] for r in numbers["refused"]],
        kind="bar",
        x="reason",
        y="records",
        empty="Nothing was refused.",
    )
    yield _late(numbers["late"])
    yield merged(numbers)
    yield from _audits(numbers["audits"])
    yield files(numbers["files"])
    yield newest_batches(numbers)


def volumes(numbers: Numbers) -> Section:
    """Return the section of the records that clean judged."""
    return section(
        "Volumes",
        "Records that clean judged, by what became of them.",
        ["time", "became", "records"],
        [
            [b["start"], shown, b[name]]
            for b in numbers["over_time"]
            for name, shown in (
                ("accepted", "accepted"),
                ("duplicates", "duplicate"),
                ("quarantined", "refused"),
            )
        ],
        kind="bar",
        color="became",
    )


def latency(numbers: Numbers) -> Section:
    """Return the section of the seconds of batches, by step."""
    bins = numbers["over_time"]
    return section(
        "Latency by step",
        "Seconds of a batch, the median of each time.",
        ["time", "step", "seconds"],
        [[b["start"], step, s] for b in bins for step, s in b["seconds"].items()],
        kind="line",
        color="step",
        table=Table(
            ["query", "view", "step", "batches", "median s", "95 % s", "most s"],
            [list(row.values()) for row in numbers["seconds"]],
        ),
    )


def backlog(numbers: Numbers) -> Section:
    """Return the section of the rows that waited."""
    bins = numbers["over_time"]
    return section(
        "Backlog",
        "Rows that waited for the query when its batch was done, the most of each time.",
        ["time", "query", "rows"],
        [[b["start"], query, rows] for b in bins for query, rows in b["backlog"].items()],
        kind="line",
        color="query",
    )


def merged(numbers: Numbers) -> Section:
    """Return the section of what MERGEs did with gold's rows."""
    bins = numbers["over_time"]
    return section(
        "Cost of ticks",
        "Rows of gold by what the MERGEs did with them. Copied rows did not change: they stood in "
        "a file that was written again.",
        ["time", "rows were", "rows"],
        [[b["start"], action, b["merged"].get(action, 0)] for b in bins for action in MERGED],
        kind="bar",
        color="rows were",
    )


def newest_batches(numbers: Numbers) -> Section:
    """Return the section of the newest batches, one by one."""
    shown = [[row[name] for name in _NEWEST] for row in numbers["batches"]]
    headings = [name.replace("_", " ") for name in _NEWEST]
    return Section("Newest batches", "Newest first; freshness in seconds.", Table(headings, shown))


def profile(numbers: Numbers) -> Iterator[Section]:
    """Yield where the time of profiled batches went; nothing where none was."""
    profile = numbers["profile"]
    if not profile["newest"]:
        return
    columns = ["query", "part", "batches", "median s"]
    yield section(
        "Time by part",
        "Seconds of the batches that were run with `--profile`, their median: what the driver's "
        "thread of the query was at.",
        columns,
        [list(row.values()) for row in profile["parts"]],
        kind="bar",
        x="query",
        y="median s",
        color="part",
    )
    for newest in profile["newest"]:
        stacks = [(stack, seconds) for stack, seconds in newest["stacks"]]
        root = flame.tree(newest["query"], stacks)
        yield Section(
            f"Batch {newest['batch']} of {newest['query']}, by what called what",
            f"From {newest['started_at']}: each function of Tidemill, and below it what it called "
            "or waited for; as wide as its share of the seconds.",
            Table(
                ["depth", "what", "seconds", "share"],
                [
                    [
                        box.depth,
                        box.name,
                        round(box.seconds, 3),
                        f"{box.seconds / root.seconds:.0%}",
                    ]
                    for box in flame.boxes(root)
                ],
            ),
            {name: flame_picture.svg(root, width) for name, (width, _) in html.WIDTHS.items()},
        )


def _late(late: Numbers) -> Section:
    """Return the section of lateness."""
    within = dict(zip(lateness.BOUNDS, _LATE, strict=False))
    half, high = (
        f"within {within[late[name]]}" if late[name] else "in more than 7 d"
        for name in ("half_within", "p95_within")
    )
    rows = [[n, c] for n, c in zip(_LATE, late["classes"].values(), strict=True)]
    counted = any(events for _, events in rows)
    summary = f" Half came {half}, 95 of 100 {high}; the latest {span(late['most'])} late."
    return section(
        "Lateness",
        "From event time to arrival, of accepted events." + (summary if counted else ""),
        ["at most", "events"],
        rows if counted else [],
        kind="bar",
        empty="No lateness is known: no event was accepted since it is counted.",
    )


def _audits(audits: Sequence[Numbers]) -> Iterator[Section]:
    """Yield what the newest audit of each view found; nothing where none was done."""
    if not audits:
        return
    rows = []
    for audit in audits:
        for source in audit["sources"]:
            features = source["features"]
            rates = [max(each[kind] for each in features) for kind in RATES]
            worst = max(features, key=lambda each: sum(each[kind] for kind in RATES))
            rows.append(
                [
                    audit["at"],
                    audit["view"],
                    source["source"],
                    sum(each["compared"] for each in features),
                    *(f"{rate:.2%}" for rate in rates),
                    worst["feature"] if any(rates) else "",
                ]
            )
    headings = ["audit", "view", "source", "values", *RATES, "worst feature"]
    wrong = sum(audit["different"] for audit in audits)
    yield Section(
        "Training and serving",
        f"The newest `tidemill audit` of each view: {wrong:,} values differ from gold. Rates are "
        "those of the worst feature.",
        Table(headings, rows),
    )


def files(tables: Sequence[Numbers]) -> Section:
    """Return the section of the files' health."""
    names = ("table", "files", "bytes", "small_files", "log_files", "log_bytes")
    rows = [[f[name] for name in names] for f in tables]
    for row, one in zip(rows, tables, strict=True):
        row[2], row[5] = _size(one["bytes"]), _size(one["log_bytes"])
        if one["small_files"] is not None and one["files"]:
            row[3] = f"{one['small_files']:,} ({one['small_files'] / one['files']:.0%})"
    headings = ["table", "files", "size", "small files", "log files", "log size"]
    return section(
        "File health",
        "Small files are under 16 MB beside another such file of their partition: "
        "`tidemill maintain` puts those of closed partitions together.",
        ["table", "files"],
        [[one["table"], one["files"]] for one in tables],
        kind="bar",
        x="table",
        y="files",
        table=Table(headings, rows),
        opened=True,
    )


def _size(number: int | None) -> str | None:
    """Return a number of bytes in the unit that fits."""
    if number is None:
        return None
    size = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
