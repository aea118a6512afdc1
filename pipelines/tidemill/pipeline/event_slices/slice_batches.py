"""A view's slices brought to the newest batch of clean, and merged by maintenance.

    store's state ──► batches that it lacks ──added──► slices ──► state, last
                      or hours to make anew ──merged──►

The state in the store says through which batch its slices are whole. What a dead process wrote
beyond it is written again as it stands; what a lost store lacks is all of it. A batch adds its own
fields. Many batches at once, a first time, and events that were changed in place are merged hour by
hour: the hours of the longest window, each from all of its events.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.errors import StoreError
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import failpoints, ledger
from tidemill.lake.commits.ledger import Commit
from tidemill.online.open_store import open_store
from tidemill.online.slices.slice_state import SliceState
from tidemill.online.slices.slice_store import SliceStore
from tidemill.online.slices.slice_values import HOUR
from tidemill.online.store_address import StoreAddress
from tidemill.pipeline.event_slices.slice_writer import SliceWriter

log = logging.getLogger(__name__)

ATTEMPTS = 3
FEW = 8  # batches that are added one by one


@dataclass(frozen=True)
class SliceWork:
    """The slices of one view in one store."""

    lake: Lake
    view: FeatureView
    address: StoreAddress

    def bring(self) -> bool:
        """Bring the store to the newest batch; return whether anything was new. StoreError where
        the store does not take it; called again, it goes on."""
        return self._attempted(self._brought)

    def merge(self) -> bool:
        """Merge the hours that batches have touched since the last time, and remove those that no
        window reaches; return whether there were any."""
        return self._attempted(self._merged)

    def state(self) -> SliceState | None:
        """Return what the store says of the view's slices; None where it has none."""
        store = open_store(self.address)
        try:
            return state_of(store, self.view.name)
        finally:
            store.close()

    def _attempted(self, work: Callable[[SliceStore], bool | None]) -> bool:
        store = open_store(self.address, writes=True)
        try:
            store.check_writable()
            for _ in range(ATTEMPTS):
                if (done := work(store)) is not None:
                    return done
        finally:
            store.close()
        raise StoreError(
            f"the store's state of {self.view.name}'s slices changed {ATTEMPTS} times meanwhile",
            where=self.address.url,
            expected="one pipeline that writes a view's slices; run again",
        )

    def _brought(self, store: SliceStore) -> bool | None:
        """Return whether anything was new; None when another one advanced the state."""
        table = self.lake.tables.events.name
        commits = self.lake.commits(table)
        appended = ledger.newest_append(self.lake, table, self.lake.generation, commits)
        if appended is None or appended.ledger is None:
            return False
        through, seen = int(appended.ledger["batch"]), state_of(store, self.view.name)
        state = self._state(seen, commits[0].version)
        lacking = self._lacking(state, seen, commits)
        if lacking == []:
            return False
        if lacking is None:
            log.info("slices of %s: all hours of the longest window", self.view.name)
            newest = self._made(state, through)
            state = replace(state, compacted=through)
        else:
            newest = self._added(state, lacking)
        failpoints.reach("slices.written")
        end = newest + self.view.bucket_length if newest else state.newest
        now = datetime.now(timezone.utc)
        done = replace(state, through=through, newest=max(state.newest, end), visible_at=now)
        return True if store.advance_slices(done, seen) else None

    def _state(self, seen: SliceState | None, version: int) -> SliceState:
        """Return the store's state, if it is of this layout; else one of nothing."""
        lake = self.lake
        events = f"{lake.detail(lake.tables.events.name).id}:{lake.generation}"
        words = json.dumps(self.view.words())
        fresh = SliceState(self.view.name, words, events, lake.pipeline.clock)
        if seen is None or seen.layout != fresh.layout:
            return replace(fresh, version=version)
        return replace(seen, words=fresh.words, clock=fresh.clock, version=version)

    def _lacking(
        self, state: SliceState, seen: SliceState | None, commits: Sequence[Commit]
    ) -> list[int] | None:
        """Return the batches that the store lacks; None where hours are to be made anew."""
        table = self.lake.tables.events.name
        if seen is None or state.through < 0:
            return None
        if ledger.changed_by_another(self.lake, table, seen.version, commits):
            return None
        appends = ledger.appends(commits, self.lake.generation)
        batches = sorted({int((commit.ledger or {})["batch"]) for commit in appends})
        lacking = [batch for batch in batches if batch > state.through]
        reaches_back = len(lacking) < len(batches) or len(commits) < ledger.RECENT
        return lacking if len(lacking) <= FEW and reaches_back else None

    def _added(self, state: SliceState, batches: Sequence[int]) -> datetime | None:
        """Write what each batch adds; return the start of their newest bucket."""
        writer, events = SliceWriter(self.address, state), self._events()
        newest = [writer.add(events.where(F.col("batch") == n), n) for n in batches]
        return max(filter(None, newest), default=None)

    def _made(self, state: SliceState, through: int) -> datetime | None:
        """Make all hours that the windows reach; return the start of the newest bucket."""
        events = self._events().where(F.col("batch") <= through)
        last = events.agg(F.unix_seconds(F.max("event_hour"))).collect()[0][0]
        if last is None:
            return None
        reached = events.where(F.unix_seconds("event_hour") >= _first_hour(state, last))
        return SliceWriter(self.address, state).merge(reached, through)

    def _merged(self, store: SliceStore) -> bool | None:
        """Return whether there was anything to merge; None when another one advanced the state."""
        state = state_of(store, self.view.name)
        if state is None or state.compacted >= state.through:
            return False
        events = self._events().where(F.col("batch") <= state.through)
        first = _first_hour(state, int(state.newest.timestamp()))
        touched = events.where(F.col("batch") > state.compacted)
        touched = touched.where(F.unix_seconds("event_hour") >= first).select("event_hour")
        hours = [row[0] for row in touched.select(_hour_second()).distinct().collect()]
        if hours:
            within = events.where(_hour_second().isin(hours))
            SliceWriter(self.address, state).merge(within, state.through)
        failpoints.reach("slices.merged")
        if not store.advance_slices(replace(state, compacted=state.through), state):
            return None
        store.sweep_slices(state, first // HOUR)
        return True

    def _events(self) -> DataFrame:
        return self.lake.spark.table(self.lake.tables.events.name)


def state_of(store: SliceStore, view: str) -> SliceState | None:
    """Return what a store says of a view's slices; None where it has none."""
    return next(iter(store.sliced([view])), None)


def _first_hour(state: SliceState, last: int) -> int:
    """Return the second of the first hour that windows reach from one on."""
    return (last - state.reach) // HOUR * HOUR


def _hour_second() -> Column:
    return F.unix_seconds("event_hour")
