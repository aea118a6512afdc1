"""Answers from slices: a key's events merged over windows that end at the request's minute.

    state ──► slices of each key in the hours of the windows ──merge──► values

By the wall clock windows end with the minute of the request, by the event clock with the newest
bucket. `through` names the last batch of clean that counts, `visible_at` when it became visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidemill.config.settings import Clock, exact
from tidemill.errors import RequestError, StoreError
from tidemill.online.answers.feature_request import ViewQuestion
from tidemill.online.answers.served_view import ServedView
from tidemill.online.slices import slice_records
from tidemill.online.slices.slice_state import SliceState
from tidemill.online.slices.slice_store import Hours, SliceStore
from tidemill.online.slices.slice_values import Merger
from tidemill.online.store import Key

ATTEMPTS = 3


@dataclass(frozen=True)
class SlicedRows:
    """The values of each key, None for one without an event in its windows, which end at `end`."""

    state: SliceState
    end: datetime
    values: list[list[Any] | None]


def read(
    store: SliceStore, view: ServedView, question: ViewQuestion, keys: Sequence[Key], clock: Clock
) -> SlicedRows | None:
    """Return what slices say of these keys; None where gold is to answer."""
    if not _are_asked(view, question):
        return None
    for _ in range(ATTEMPTS):
        state = _fitting(store.sliced([question.view]), view, question)
        if state is None:
            return None
        merger, end = _merger(state, view), _end(state, clock)
        found = store.read_slices(state, keys, merger.hours(end))
        if (rows := _rows(merger, state, end, found)) is not None:
            return rows
    raise _moving(question)


async def read_async(
    store: SliceStore, view: ServedView, question: ViewQuestion, keys: Sequence[Key], clock: Clock
) -> SlicedRows | None:
    """Return what `read` does, without holding up an event loop."""
    if not _are_asked(view, question):
        return None
    for _ in range(ATTEMPTS):
        state = _fitting(await store.sliced_async([question.view]), view, question)
        if state is None:
            return None
        merger, end = _merger(state, view), _end(state, clock)
        found = await store.read_slices_async(state, keys, merger.hours(end))
        if (rows := _rows(merger, state, end, found)) is not None:
            return rows
    raise _moving(question)


def answer(
    view: ServedView,
    question: ViewQuestion,
    keys: Sequence[Any],
    rows: SlicedRows,
    now: datetime,
    stale_after: float,
) -> dict[str, Any]:
    """Return the answer of one view: an entry for each key, in the order of the request.

    By the wall clock the age is that of the newest sign of life: a batch that became visible, or a
    publish of gold, which comes each minute.
    """
    state, names = view.state, question.features or view.names
    alive = max(rows.state.visible_at, state.published_at)
    age = (now - (alive if rows.state.clock == "wall" else rows.end)).total_seconds()
    age = round(max(0.0, age), 3)
    when = {"as_of": exact(rows.end), "age_seconds": age, "stale": age > stale_after}
    entries = [
        {
            "key": key,
            "found": values is not None,
            **when,
            "values": {
                name: (state.empty if values is None else values)[view.places[name]]
                for name in names
            },
        }
        for key, values in zip(keys, rows.values, strict=True)
    ]
    return {
        "view": state.view,
        "gold_version": state.gold_version,
        "mode": "slices",
        "through": rows.state.through,
        "visible_at": exact(rows.state.visible_at),
        **when,
        "rows": entries,
    }


def _are_asked(view: ServedView, question: ViewQuestion) -> bool:
    """Return whether slices may answer: a request that names them has them looked for."""
    return question.mode == "slices" or (view.has_slices and question.mode is None)


def _fitting(
    states: Sequence[SliceState], view: ServedView, question: ViewQuestion
) -> SliceState | None:
    """Return the state of slices of the features that are published; RequestError (422) where there
    are none and the request asks for them."""
    state = next(iter(states), None)
    if state is not None and state.through >= 0:
        shown = tuple(column.name for column in state.declared.shown)
        if shown == view.names:
            return state
    if question.mode == "slices":
        expected = "publish: {slices: true} in its pipeline, and its first batch"
        raise RequestError("has no slices", status=422, where=question.view, expected=expected)
    return None


def _merger(state: SliceState, view: ServedView) -> Merger:
    """Return what merges a view's slices, worked out once for each publish."""
    known = view.mergers.get(state.words)
    if known is None:
        known = view.mergers[state.words] = Merger(state.declared, view.state.empty)
    return known


def _end(state: SliceState, clock: Clock) -> datetime:
    return clock.end_of(state.declared.bucket_length) if state.clock == "wall" else state.newest


def _rows(
    merger: Merger, state: SliceState, end: datetime, found: Sequence[Hours]
) -> SlicedRows | None:
    """Return the values; None where an hour holds more than the state that was read says."""
    values = []
    for hours in found:
        each = {hour: slice_records.read(of, state.through) for hour, of in hours.items()}
        if any(hour.through > state.through for hour in each.values()):
            return None
        values.append(merger.values(each, end))
    return SlicedRows(state, end, values)


def _moving(question: ViewQuestion) -> StoreError:
    return StoreError("slices were merged with every read", where=question.view)
