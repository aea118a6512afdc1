"""Answers of a question in other forms than a table: CSV, JSON, a chart in a file.

What is asked for is checked before Spark starts: a question may take long.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from tidemill.errors import UsageError
from tidemill.features.suggestions import did_you_mean
from tidemill.query import charts
from tidemill.query.chart_axes import check_kind
from tidemill.query.json_values import json_of, text_of

FORMATS = ("table", "csv", "json", "plot")
PICTURE = Path("query.svg")


@dataclass(frozen=True)
class Form:
    """How an answer is given: its format, the file it goes to, and what a plot draws."""

    format: str
    output: Path | None = None
    kind: str | None = None
    x: str | None = None
    y: tuple[str, ...] = ()
    color: str | None = None

    @classmethod
    def wished(
        cls,
        format: str | None,
        as_json: bool,
        output: Path | None,
        kind: str | None,
        x: str | None,
        y: Sequence[str],
        color: str | None,
    ) -> Form:
        """Return the form; without a format the output's suffix tells it, else it is a table.

        UsageError for what does not go together, SetupError for a plot without its packages.
        """
        format = format or ("json" if as_json else _of_suffix(output))
        if format not in FORMATS:
            message = f"unknown format {format!r}{did_you_mean(format, FORMATS)}"
            raise UsageError(message, where="--format", expected=", ".join(FORMATS))
        if as_json and format != "json":
            raise UsageError(f"--json is not {format}", where="--format", expected="one of them")
        if format == "table" and output:
            expected = "csv, json or plot for a file"
            raise UsageError("a table goes to the terminal", where="--output", expected=expected)
        if format == "plot":
            output = output or PICTURE
            charts.check_suffix(output)
            check_kind(kind)
            charts.require_altair()
        elif kind or x or y or color:
            raise UsageError(
                f"--kind, --x, --y and --color are a plot's, and this is {format}",
                where="--format",
                expected="--format plot",
            )
        return cls(format, output, kind, x, tuple(y), color)


def _of_suffix(output: Path | None) -> str:
    if output is None:
        return "table"
    return "plot" if output.suffix not in {".csv", ".json"} else output.suffix[1:]


def as_csv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return the rows as RFC 4180 has them, names first: a null is an empty field, a list or a map
    is its JSON."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([_field(value) for value in row] for row in rows)
    return text.getvalue()


def _field(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return json_of(value)
    return text_of(value) if isinstance(value, Decimal) else value


def drawn(form: Form, answer: Mapping[str, Any], title: str) -> Path:
    """Draw the answer into the form's file; return the file."""
    made = charts.chart(
        answer["columns"],
        answer["rows"],
        kind=form.kind,
        x=form.x,
        y=form.y or None,
        color=form.color,
        title=title,
    )
    return charts.save(made, form.output or PICTURE)


def write(text: str, output: Path) -> Path:
    """Write an answer to a file; return the file. UsageError where it cannot be written."""
    try:
        output.write_bytes(text.encode("utf-8"))
    except OSError as error:
        message = f"cannot be written: {error.strerror}"
        expected = "a file you may write"
        raise UsageError(message, where=str(output), expected=expected) from error
    return output
