"""What the commands print for people: a line per batch, tables, a key's values over time."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from tidemill.cli.output.batch_lines import HEADER_EVERY, batch_line, header
from tidemill.cli.output.terminal import Part, console, line, padded
from tidemill.config.settings import iso
from tidemill.lake.visible_text import visible
from tidemill.query.json_values import text_of

if TYPE_CHECKING:
    from tidemill.config.pipeline_file import PipelineDefinition
    from tidemill.config.settings import Place
    from tidemill.lake.batches import BatchRow
    from tidemill.operations.maintenance import Done

LARGE = 500_000  # records of a batch that is told before gold is refreshed
WIDTH = 100  # columns, of lines whose length is ours to choose
_BARS = " ▁▂▃▄▅▆▇█"
_DONE = "done  "


class Show:
    """Prints to the terminal; `quiet` prints nothing (for --json)."""

    def __init__(self, *, quiet: bool):
        """Print to stdout, unless quiet."""
        self._console = console(quiet=quiet)
        self._cleaned: dict[str, int] = {}
        self._clean_seconds = 0.0
        self._batches = 0

    def say(self, *parts: Part) -> None:
        """Print a line of texts, each as it is or, in a pair, in a style of ours."""
        self._console.print(line(*parts))

    def prose(self, text: str) -> None:
        """Print a sentence, on as many lines as it needs."""
        for part in textwrap.wrap(text, WIDTH, subsequent_indent="  "):
            self.say(part)

    def opening(self, definition: PipelineDefinition, place: Place) -> None:
        """Print what is about to run."""
        self.say(
            (definition.pipeline, "bold"),
            f"  {definition.source.kind} -> {place}, clock {definition.clock}",
        )

    def batches(self, rows: Sequence[BatchRow]) -> None:
        """Print a line for each refresh, with what clean refused since the last one, for each
        batch of a dimension or stream, and for each large one of land or clean."""
        for row in rows:
            if row.query in {"land", "clean"} and row.counts.get("events", 0) >= LARGE:
                self._large(row)
            if row.query == "clean":
                for name, value in row.counts.items():
                    self._cleaned[name] = self._cleaned.get(name, 0) + value
                self._clean_seconds += row.seconds.get("clean", 0)
            elif row.query in {"feature", "refresh"}:
                self._refreshed(row)
            elif row.query == "dimension":
                counts = (row.counts.get(name, 0) for name in ("events", "quarantined"))
                records, refused = (f"{count:,}" for count in counts)
                self.say(f"dimension     {row.view}: {records} records, {refused} refused")
            elif row.query == "stream":
                self.say(f"stream        {row.view}: {row.counts.get('accepted', 0):,} rows")
            elif row.query == "maintain":
                self.say(f"maintain      {_steps(row.seconds)}")

    def _large(self, row: BatchRow) -> None:
        """Print that a backlog moves on, which may take minutes to reach gold."""
        took = f" in {row.seconds[row.query]:.0f} s" if row.query in row.seconds else ""
        left = f"; {row.backlog:,} left" if row.backlog else ""
        text = f"{row.query:<13} batch {row.batch}: {row.counts['events']:,} records{took}{left}"
        self.say((text, "dim"))

    def _refreshed(self, row: BatchRow) -> None:
        if self._batches % HEADER_EVERY == 0:
            self.say((header(), "dim"))
        self.say(batch_line(row, self._cleaned, self._clean_seconds))
        self._cleaned, self._clean_seconds = {}, 0.0
        self._batches += 1

    def done(self, step: Done) -> None:
        """Print what a step of maintenance came to."""
        self.say(
            f"{step.action:<9} {step.table:<24} {step.reason}: {step.result}   ",
            (f"{step.seconds:.1f}s", "dim"),
        )

    def summary(self, totals: Mapping[str, Any]) -> None:
        """Print a run's totals, on as many lines as they need."""
        counts = {name: value for name, value in totals.items() if name != "seconds"}
        texts = [f"{name.replace('_', ' ')} {_plain(value)}" for name, value in counts.items()]
        texts[-1] += f" in {totals['seconds']:.0f} s"
        first, *more = wrapped(texts, WIDTH - len(_DONE))
        self.say(("done", "bold"), f"  {first}")
        for text in more:
            self.say(f"{'':{len(_DONE)}}{text}")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Print rows as a table, or each row as a block where the terminal is too narrow for it."""
        columns = [visible(name) for name in columns]
        texts = [[visible(_plain(value)) for value in row] for row in rows]
        widths = [max(map(cell_len, cells)) for cells in zip(columns, *texts, strict=True)]
        if sum(widths) + 2 * len(widths) > self._console.width and self._console.is_terminal:
            self._blocks(columns, texts)
            return
        numeric = [
            any(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))
        ]
        for row in [columns, *texts]:
            cells = (
                padded(cell, width, right=right)
                for cell, width, right in zip(row, widths, numeric, strict=True)
            )
            self.say("  ".join(cells).rstrip())

    def _blocks(self, columns: Sequence[str], texts: Sequence[Sequence[str]]) -> None:
        width = max(map(cell_len, columns))
        for row in texts:
            for column, text in zip(columns, row, strict=True):
                self.say(f"{padded(column, width)}  {text}")
            self.say()

    def checks(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Print what the doctor found, with the fix where something is wrong."""
        for check in results:
            mark = ("ok  ", "green") if check["ok"] else ("fix ", "red")
            self.say(mark, f" {check['name']}: {check['found']}")
            if not check["ok"]:
                self.say(f"     expected {check['expected']}; {check['fix']}")

    def plot(
        self, title: str, series: Mapping[str, Sequence[int]], times: Sequence[datetime]
    ) -> None:
        """Print each series as a row of bars over the same times, its largest value behind it."""
        self.say((title, "bold"), f"  {iso(times[0])} .. {iso(times[-1])}")
        width = max(map(len, series))
        for name, values in series.items():
            self.say(f"  {name:<{width}} |{bars(values)}| max {max(values)}")


def wrapped(texts: Iterable[str], width: int) -> list[str]:
    """Return the texts as a list in prose, on lines of at most `width`; none is broken in two."""
    listed = ", ".join(text.replace(" ", "\xa0") for text in texts)
    lines = textwrap.wrap(listed, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in lines]


def bars(values: Sequence[int]) -> str:
    """Return a bar for each value, the largest one full height; 0 is a blank."""
    top = max(values) or 1
    return "".join(_BARS[-(-value * (len(_BARS) - 1) // top)] for value in values)


def _steps(seconds: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {value:.1f}s" for name, value in seconds.items())


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else text_of(value)
