"""How `tidemill top` draws its frames and hears a key, on a terminal or, once, anywhere."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tidemill.cli.output.display import bars
from tidemill.cli.output.terminal import console, line
from tidemill.monitoring.status import Frame, span, totals

WIDE, NARROW = 130, 100  # columns of a terminal: room for the bars, room for the seconds
_RIGHT = ("batch", "committed", "events", "a minute", "backlog", "age")
_SHORT = ("query", "batch", "committed", "a minute", "backlog", "age")
_COLUMNS = (*_SHORT[:3], "events", "a minute", "backlog", "as_of", "age", "seconds")


def show_live(next_frame: Callable[[], Frame], every: float) -> None:
    """Show frame after frame until q or Ctrl-C."""
    terminal = console()
    with _keys() as pressed, Live(console=terminal, screen=True, auto_refresh=False) as live:
        try:
            while True:
                live.update(drawn(next_frame(), terminal.width), refresh=True)
                if pressed(every) in {"q", "Q"}:
                    return
        except KeyboardInterrupt:
            return


def show_once(frame: Frame) -> None:
    """Print one frame."""
    terminal = console()
    terminal.print(drawn(frame, terminal.width), soft_wrap=False)


def drawn(frame: Frame, width: int) -> RenderableType:
    """Return a frame as text of that width."""
    parts: list[RenderableType] = [_head(frame)]
    for one in frame["pipelines"]:
        parts += [line(), line((one["pipeline"], "bold")), _queries(one["queries"], width)]
        parts += [_refused(query) for query in one["queries"] if query["refused"]]
        parts += [_alarm(alarm) for alarm in one["alarms"]]
    if not frame["pipelines"]:
        parts.append(line(("no pipeline has run here yet", "yellow")))
    return Group(*parts)


def _head(frame: Frame) -> RenderableType:
    summary = totals(frame)
    writer = f"writer {frame['writer']}" if frame["writer"] else "no writer"
    writer += f", {summary['backlog']:,} rows wait"
    if "freshness_seconds" in summary:
        writer += f", gold is {span(summary['freshness_seconds'])} old"
    return Group(line((frame["lake"], "bold"), f"  {frame['at']}"), line(writer))


def _queries(queries: list[dict[str, Any]], width: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    names = _COLUMNS if width >= NARROW else _SHORT
    for name in names:
        table.add_column(name, justify="right" if name in _RIGHT else "left", no_wrap=True)
    if width >= WIDE:
        table.add_column("events of the newest batches", no_wrap=True)
    for query in queries:
        cells = _cells(query)
        row = [line(cells[name]) for name in names]
        if width >= WIDE:
            row.append(line(bars(query["newest_events"]) if query["newest_events"] else ""))
        table.add_row(*row)
    return table


def _cells(query: dict[str, Any]) -> dict[str, str]:
    ran = query["batch"] is not None
    steps = (f"{step} {seconds:.1f}" for step, seconds in query["seconds"].items())
    return {
        "query": f"{query['query']} {query['view']}" if query["view"] else query["query"],
        "batch": _count(query["batch"]),
        "committed": f"{span(query['age_seconds'])} ago" if ran else "never",
        "events": _count(query["events"]),
        "a minute": f"{query['events_per_minute']:,.0f}",
        "backlog": _count(query["backlog"]),
        "as_of": query["as_of"][5:16].replace("T", " ") if query["as_of"] else "",
        "age": span(query["freshness_seconds"]) if query["as_of"] else "",
        "seconds": "  ".join(steps),
    }


def _refused(query: dict[str, Any]) -> Text:
    worst = sorted(query["refused"].items(), key=lambda item: -item[1])
    reasons = ", ".join(f"{reason} {records:,}" for reason, records in worst[:6])
    return line((f"refused by the newest batch: {reasons}", "yellow"))


def _alarm(alarm: dict[str, Any]) -> Text:
    what = f"{alarm['fault']}:{alarm['field']}, expected {alarm['expected']}"
    whose = f" of {alarm['view']}" if alarm["view"] else ""
    since = f"since {alarm['since']}: {alarm['records']:,} records refused"
    return line((f"the schema has changed{whose}: {what}, {since}", "red"))


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Yield what waits so long for a key and yields it; the empty text when none comes."""
    if not sys.stdin.isatty():
        yield _no_key
        return
    import termios
    import tty

    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    try:
        tty.setcbreak(number)
        yield _key
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


def _key(seconds: float) -> str:
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return sys.stdin.read(1) if ready else ""


def _no_key(seconds: float) -> str:
    time.sleep(seconds)  # without a terminal there is no key to wait for
    return ""
