"""The first page of several pipelines: is each fresh, behind, refused, failed, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tidemill.errors import TidemillError
from tidemill.monitoring.pages.content import Card, Page
from tidemill.monitoring.pages.lake_reads import Shown
from tidemill.monitoring.report.html import Link, Section, Table
from tidemill.monitoring.status import span

_COLUMNS = ("pipeline", "lake", "oldest view", "rows wait", "refused", "the last run", "what to do")


class _State(NamedTuple):
    """Where a pipeline stands; `error` and `cure` of its last run, or of the look at it."""

    age: int | None
    waiting: int
    refused: int
    error: str | None
    cure: str | None


def glance(shown: Sequence[Shown]) -> Page:
    """Return the page; a lake that cannot be read is a line that says so."""
    states = [_state(each) for each in shown]
    failed = sum(state.error is not None for state in states)
    cards = [
        Card(f"{len(shown)}", "pipelines"),
        Card(f"{failed}", "failed"),
        Card(f"{sum(state.waiting for state in states):,}", "rows wait"),
        Card(f"{sum(state.refused for state in states):,}", "refused records are open"),
    ]
    rows = [_row(each, state) for each, state in zip(shown, states, strict=True)]
    table = Section("Pipelines", "Each one leads to its pages.", Table(_COLUMNS, rows))
    return Page("All pipelines", "What their tables say now.", cards, [table])


def _row(shown: Shown, state: _State) -> list[Any]:
    age = "never refreshed" if state.age is None else f"{span(state.age)} old"
    said = state.error or "ended well"
    link = Link(shown.pipeline, f"{shown.path}/")
    return [link, shown.place, age, state.waiting, state.refused, said, state.cure]


def _state(shown: Shown) -> _State:
    lake = shown.lake
    try:
        ages = [lake.describe(view)["age_seconds"] for view in shown.views]
        frame = next(lake.frames())
        refused = lake.quarantine.summary()["open"]
        failed = lake.last_error() or {}
    except TidemillError as error:
        return _State(None, 0, 0, f"cannot be read: {error.message}", error.expected)
    waiting = sum(
        query["backlog"] or 0
        for each in frame["pipelines"]
        if each["pipeline"] == shown.pipeline
        for query in each["queries"]
    )
    age = None if None in ages else max(ages)
    return _State(age, waiting, refused, failed.get("message"), failed.get("expected"))
