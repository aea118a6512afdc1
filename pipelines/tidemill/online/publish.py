"""Publish: bring an online store's rows of a view to gold's newest version.

    store's state ──► what to bring ──► rows, each by its version ──► state, last
    gold's ledgers    feed or snapshot    newer ones stay               only if still as seen

The store itself remembers the version that it was brought to, so a store that was lost, restored or
emptied is noticed. Whatever dies when: rows without their state are brought again by the next
publish, and no row is ever older than one that the store had.

A snapshot writes each row of gold under the next epoch, then removes what is of an older one; a
feed is read where the versions in between are all there.
"""

from __future__ import annotations

import logging
import math
import re
import time
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tidemill.errors import StoreError
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import failpoints, ledger
from tidemill.lake.commits.ledger import Commit
from tidemill.online import changed_rows, row_writer
from tidemill.online.open_store import open_store
from tidemill.online.published_view import PublishedView
from tidemill.online.row_writer import RowWriter
from tidemill.online.store import OnlineStore
from tidemill.online.store_address import StoreAddress

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

ATTEMPTS = 3
MARGIN = timedelta(days=1)  # a row lives longer than the longest window by so much
RENEWALS = 3  # within a row's time to live
MANY = 2**31
_SPARKS = (PySparkException, Py4JError)  # of `toArrow` Spark 4.2 leaves an error as py4j has it


@dataclass(frozen=True)
class Published:
    """What a publish did: `mode` is feed, snapshot, renewal or none; `reason` is why all rows were
    brought; `keys` were written or removed."""

    view: str
    mode: str
    reason: str | None
    gold_version: int | None
    as_of: datetime | None
    keys: int
    swept: int
    seconds: float


def publish(
    lake: Lake,
    view: FeatureView,
    address: StoreAddress,
    *,
    rebuild: bool = False,
    ttl: timedelta | None = None,
    within: timedelta | None = None,
) -> Published:
    """Bring the store to gold's newest version; with `rebuild` every row again.

    `ttl` is a row's time to live, `within` how long the writing of rows may take; without it there
    is no limit.

    StoreError where the store does not answer in its time, is full, or may evict rows; run again,
    it goes on.
    """
    started = time.monotonic()
    deadline = time.time() + within.total_seconds() if within else math.inf
    store = open_store(address, writes=True)
    try:
        store.check_writable()
        for _ in range(ATTEMPTS):
            work = _Work(
                lake, view, address, store, rebuild, ttl or view.horizon + MARGIN, deadline
            )
            if (done := work.run(started)) is not None:
                return done
    finally:
        store.close()
    raise StoreError(
        f"the store's state of {view.name} changed {ATTEMPTS} times while rows were brought",
        where=address.url,
        expected="one publisher of a view, and a store that keeps what it has; run again",
    )


def target_of(lake: Lake, view: FeatureView) -> Commit | None:
    """Return gold's newest commit with a ledger of this generation; None while there is none. A
    refresh to an earlier time is for its asker, and is not published."""
    table = lake.tables.of(view).gold.name
    recent = lake.commits(table)
    found = next(filter(lambda commit: _publishable(commit, lake), recent), None)
    if found is None and len(recent) == ledger.RECENT:
        found = next((c for c in lake.commits(table, None) if _publishable(c, lake)), None)
    return found


def _publishable(commit: Commit, lake: Lake) -> bool:
    return commit.is_served and (commit.ledger or {})["generation"] == lake.generation


@dataclass(frozen=True)
class _Work:
    """One attempt of a publish."""

    lake: Lake
    view: FeatureView
    address: StoreAddress
    store: OnlineStore
    rebuild: bool
    ttl: timedelta
    deadline: float

    def run(self, started: float) -> Published | None:
        """Return what was done; None when another publisher was first, or the store lost its
        state."""
        seen = self.store.view(self.view.name)
        target = target_of(self.lake, self.view)
        if target is None or target.ledger is None:
            return self._done("none", None, seen, 0, 0, started)
        state = self._state(target, seen)
        reason = self._why_all(seen, state)
        if reason is None and seen is not None:
            if self._renews(seen):
                return self._renewed(seen, state, started)
            if seen.gold_version == state.gold_version:
                return self._done("none", None, seen, 0, 0, started)
            try:
                return self._fed(seen, state, started)
            except _SPARKS as error:
                reason = f"the change data feed cannot be read: {_first_line(error)}"
        return self._snapshot(seen, state, reason or "", started)

    def _state(self, target: Commit, seen: PublishedView | None) -> PublishedView:
        """Return the state that the store shall have."""
        view, now = self.view, datetime.now(timezone.utc)
        shown = view.shown
        return PublishedView(
            view=view.name,
            pipeline=self.lake.pipeline.pipeline,
            keys={key: view.types[key] for key in view.keys},
            features={column.name: column.type for column in shown},
            empty=self._empty(seen),
            generation=self.lake.generation,
            table=self.lake.detail(self.lake.tables.of(view).gold.name).id,
            epoch=seen.epoch if seen else 0,
            gold_version=target.version,
            as_of=ledger.instant((target.ledger or {})["as_of"]),
            published_at=now,
            renewed_at=seen.renewed_at if seen else now,
            ttl_seconds=int(self.ttl.total_seconds()),
        )

    def _empty(self, seen: PublishedView | None) -> tuple[Any, ...]:
        """Return the declared empty values, as Spark has them."""
        features = {column.name: column.type for column in self.view.shown}
        if seen and dict(seen.features) == features:
            return seen.empty
        values = (f"CAST({c.empty} AS {c.type}) AS `{c.name}`" for c in self.view.shown)
        (row,) = self.lake.spark.sql(f"SELECT {', '.join(values)}").toArrow().to_pylist()
        return tuple(row.values())

    def _why_all(self, seen: PublishedView | None, state: PublishedView) -> str | None:
        """Return why every row must be brought; None where the changes do."""
        if seen is None:
            return "the store has nothing of the view"
        if self.rebuild:
            return "asked for"
        if not seen.is_whole:
            return "a first publish has not ended"
        if seen.layout != state.layout:
            return "keys or features changed"
        if (seen.generation, seen.table) != (state.generation, state.table):
            return "gold was made again"
        if seen.gold_version > state.gold_version:
            return f"gold is at version {state.gold_version}, the store at {seen.gold_version}"
        return None

    def _renews(self, seen: PublishedView) -> bool:
        """Tell whether rows that did not change would soon be gone: their time to live runs from
        their last write."""
        age = datetime.now(timezone.utc) - seen.renewed_at
        return age >= timedelta(seconds=seen.ttl_seconds) / RENEWALS

    def _fed(self, seen: PublishedView, state: PublishedView, started: float) -> Published | None:
        expected, until = self._changed(seen, state), state.gold_version
        rows: DataFrame | pa.Table | None = None
        if until == seen.gold_version + 1 and expected <= row_writer.HERE:
            rows = changed_rows.feed_of_refresh(self.lake, self.view, until)
        if rows is None:
            rows = changed_rows.feed(self.lake, self.view, seen.gold_version, until)
        keys = self._write(rows, state, expected)
        if not self.store.advance(state, seen):
            return None
        return self._done("feed", None, state, keys, 0, started)

    def _renewed(
        self, seen: PublishedView, state: PublishedView, started: float
    ) -> Published | None:
        """Write every row that is not empty again, and those that changed to be so or are gone."""
        log.info("publish %s: rows' time to live begins anew", self.view.name)
        if seen.gold_version < state.gold_version and self._fed(seen, state, started) is None:
            return None
        seen = self.store.view(self.view.name) or seen
        renewed = replace(state, renewed_at=state.published_at)
        rows = changed_rows.snapshot(self.lake, self.view, state.gold_version, living=True)
        keys = self._write(rows, renewed, MANY)
        if not self.store.advance(renewed, seen):
            return None
        return self._done("renewal", "time to live", renewed, keys, 0, started)

    def _snapshot(
        self, seen: PublishedView | None, state: PublishedView, reason: str, started: float
    ) -> Published | None:
        log.info("publish %s: all rows, as %s", self.view.name, reason)
        state = replace(state, epoch=(seen.epoch if seen else 0) + 1, renewed_at=state.published_at)
        if seen is None or not seen.is_whole:
            # So a store that is emptied half-way is noticed: this state is gone then.
            begun = replace(state, gold_version=-1)
            if not self.store.advance(begun, seen):
                return None
            seen = begun
        rows = changed_rows.snapshot(self.lake, self.view, state.gold_version)
        keys = self._write(rows, state, self.lake.rows(self.lake.tables.of(self.view).gold.name))
        if not self.store.advance(state, seen):
            return None
        return self._done("snapshot", reason, state, keys, self.store.sweep(state), started)

    def _write(self, rows: DataFrame | pa.Table, state: PublishedView, expected: int) -> int:
        failpoints.reach("publish.begun")
        writer = RowWriter(self.address, state, self.deadline)
        if isinstance(rows, DataFrame):
            keys = writer.write(rows, expected)
        else:
            keys = writer.write_here(rows)
        failpoints.reach("publish.rows_written")
        return keys

    def _changed(self, seen: PublishedView, state: PublishedView) -> int:
        """Return how many rows the feed has at most, by gold's ledgers; many where one says
        nothing of it."""
        versions = state.gold_version - seen.gold_version
        commits = self.lake.commits(self.lake.tables.of(self.view).gold.name, versions + 20)
        between = [c for c in commits if seen.gold_version < c.version <= state.gold_version]
        changed = [(c.ledger or {}).get("changed") for c in between if c.moves_data]
        if len(between) < versions or None in changed:
            return MANY
        return sum(map(int, filter(None, changed)))

    def _done(
        self,
        mode: str,
        reason: str | None,
        state: PublishedView | None,
        keys: int,
        swept: int,
        started: float,
    ) -> Published:
        seconds = round(time.monotonic() - started, 3)
        version, as_of = (state.gold_version, state.as_of) if state else (None, None)
        done = Published(self.view.name, mode, reason, version, as_of, keys, swept, seconds)
        log.info("publish %s: %s, %s keys, %s s", done.view, done.mode, done.keys, done.seconds)
        return done


def _first_line(error: Exception) -> str:
    """Return Spark's condition and message, without its stacks."""
    found = re.search(r"\[[A-Z_.]+\][^\n]*", str(error))
    return found[0][:200] if found else str(error).strip().splitlines()[0][:200]
