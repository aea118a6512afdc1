"""A request's way to its answer, over HTTP or in the same process:

document ──read──► request ──► keys of each view ──► one read of the store ──► answer
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from tidemill.config.settings import Clock
from tidemill.errors import RequestError, StoreError
from tidemill.features.suggestions import did_you_mean
from tidemill.online.answers import feature_request, key_values, sliced_answers, view_answer
from tidemill.online.answers.feature_request import FeatureRequest, ViewQuestion
from tidemill.online.answers.limits import Limits
from tidemill.online.answers.served_view import ServedView
from tidemill.online.answers.shared_reads import SharedReads
from tidemill.online.answers.sliced_answers import SlicedRows
from tidemill.online.answers.view_answer import Answer
from tidemill.online.open_store import open_store
from tidemill.online.published_view import PublishedView
from tidemill.online.slices.slice_store import SliceStore
from tidemill.online.store import Key, Row

Rows = SlicedRows | list[Row | None]
EVERY = 1.0  # seconds between two looks at what is published
ATTEMPTS = 3  # at rows whose layout changes meanwhile


@dataclass(frozen=True, slots=True)
class Read:
    """What to read for a question: rows of these keys of a view."""

    view: ServedView
    question: ViewQuestion
    keys: list[Key]

    @property
    def of(self) -> tuple[ServedView, ViewQuestion, list[Key]]:
        """All of it."""
        return self.view, self.question, self.keys


class FeatureService:
    """Answers requests from a store; knows its views as of the last `look`."""

    def __init__(self, store: SliceStore, limits: Limits, clock: Clock | None = None):
        """Hold the store; nothing is read yet."""
        self.store, self.limits = store, limits
        self._clock = clock or Clock()
        self.views: dict[str, ServedView] = {}
        self._looked = float("-inf")

    @classmethod
    def of_store(cls, address: str, limits: Mapping[str, Any] | None) -> FeatureService:
        """Return a service of the store at an address, by the clock of this process."""
        return cls(open_store(address), Limits.of(limits or {}), Clock.from_environment())

    def described(self, name: str) -> Answer:
        """Return what there is to ask of a view, and how fresh it is."""
        return view_answer.described(self.view(name), self.now(), self.limits.stale_after)

    def look(self) -> None:
        """Read what the store says of its views; StoreError when it does not answer."""
        states = self.store.views()
        sliced = {state.view for state in self.store.sliced([state.view for state in states])}
        self.adopt({state.view: ServedView(state, state.view in sliced) for state in states})

    def look_if_due(self) -> None:
        """Look where the last time is a second ago."""
        if time.monotonic() - self._looked > EVERY:
            self.look()

    def adopt(self, views: dict[str, ServedView]) -> None:
        """Take views that were read; one that did not change keeps what was worked out."""
        for name, view in self.views.items():
            if views.get(name) == view:
                views[name] = view
        self.views, self._looked = views, time.monotonic()

    def now(self) -> datetime:
        """Return the time by which ages are told."""
        return self._clock.now()

    def view(self, name: str) -> ServedView:
        """Return a view; RequestError (404) where the store does not have it, StoreError where no
        publish of it has ended yet."""
        view = self.views.get(name)
        if view is None:
            hint = did_you_mean(name, sorted(self.views)) or "; nothing is published yet"
            raise RequestError(f"unknown view {name!r}{hint}", status=404, where="view")
        if not view.state.is_whole:
            raise StoreError("no publish of it has ended yet", where=name)
        return view

    def reads(self, request: FeatureRequest) -> list[Read]:
        """Return what to read; RequestError (404, 422) for what cannot be asked, StoreError where
        all that is asked is older than the limit."""
        found = []
        for question in request.questions:
            view = self.view(question.view)
            view.check(question)
            columns, many = view.state.keys, request.of_many
            keys = key_values.read(request.keys, columns, self.limits, of_many=many)
            found.append(Read(view, question, keys))
        self.check_age([read.view for read in found])
        return found

    def check_age(self, views: Sequence[ServedView]) -> None:
        """Raise StoreError where all of these views are too old to be answered."""
        now, most = self.now(), self.limits.refuse_after
        ages = [view.age(now) for view in views]
        if ages and min(ages) > most:
            raise StoreError(
                f"the values are of {min(ages):,.0f} s ago",
                where=views[0].state.view,
                expected=f"a publish in the last {most:,.0f} s: is the pipeline running?",
            )

    def answer(self, request: FeatureRequest) -> Answer:
        """Return the answer to a request, reading without an event loop."""
        self.look_if_due()
        for _ in range(ATTEMPTS):
            reads = self.reads(request)
            rows = [self._rows(read) for read in reads]
            doubted = _doubted(reads, rows)
            if not self.learn([self.store.view(name) for name in doubted]):
                return self.answered(request, reads, rows)
        raise _moving(request)

    def _rows(self, read: Read) -> Rows:
        sliced = sliced_answers.read(self.store, *read.of, self._clock)
        return sliced or self.store.read(read.view.state, read.keys)

    def learn(self, states: Sequence[PublishedView | None]) -> bool:
        """Return whether one of these views has another layout by now, and take it: rows of the one
        that was read may be removed already, and are then no unknown keys."""
        moved = [s for s in states if s and s.layout != self.views[s.view].state.layout]
        self.views |= {s.view: replace(self.views[s.view], state=s, mergers={}) for s in moved}
        return bool(moved)

    async def answer_async(self, request: FeatureRequest, shared: SharedReads) -> Answer:
        """Return the answer to a request, reading together with others of the event loop."""
        for _ in range(ATTEMPTS):
            reads = self.reads(request)
            rows = await self._rows_async(reads, shared)
            doubted = _doubted(reads, rows)
            if not doubted:
                return self.answered(request, reads, rows)
            if not self.learn([await self.store.view_async(name) for name in doubted]):
                return self.answered(request, reads, rows)
        raise _moving(request)

    async def _rows_async(self, reads: Sequence[Read], shared: SharedReads) -> list[Rows]:
        """Return the rows of each read: of slices where the view has some, else of gold."""
        sliced = [
            await sliced_answers.read_async(self.store, *read.of, self._clock) for read in reads
        ]
        left = [
            (read.view, read.keys) for read, rows in zip(reads, sliced, strict=True) if not rows
        ]
        of_gold = iter(await shared.rows(left) if left else ())
        return [rows or next(of_gold) for rows in sliced]

    def answered(
        self, request: FeatureRequest, reads: Sequence[Read], rows: Sequence[Rows]
    ) -> Answer:
        """Return the answer from the rows that were read."""
        now, stale_after = self.now(), self.limits.stale_after
        each = [
            sliced_answers.answer(read.view, read.question, request.keys, found, now, stale_after)
            if isinstance(found, SlicedRows)
            else view_answer.answer(read.view, read.question, request.keys, found, now, stale_after)
            for read, found in zip(reads, rows, strict=True)
        ]
        return {"views": {one["view"]: one for one in each}} if request.of_many else each[0]

    def answer_document(self, document: Any) -> Answer:
        """Return the answer to a request that is a JSON document."""
        return self.answer(feature_request.read(document, self.limits))


def _doubted(reads: Sequence[Read], rows: Sequence[Rows]) -> list[str]:
    """Return the views of which a key was not there: is it unknown, or the layout another?"""
    return [
        read.view.state.view
        for read, found in zip(reads, rows, strict=True)
        if not isinstance(found, SlicedRows) and None in found
    ]


def _moving(request: FeatureRequest) -> StoreError:
    views = ", ".join(question.view for question in request.questions)
    return StoreError("the layout changed with every read", where=views)
