"""Maintenance between the batches of a run, in a thread and a session of its own.

    on_idle   due, and no query in a batch (or long overdue) ─► a pass in the thread
              a pass that ended                              ─► told; its error raised
    on_stop   the statement under way is interrupted; what is left is for the next run

Neither ticks nor a stop wait for it: an OPTIMIZE may take minutes. Each step is one commit, and a
commit that meets a batch's is tried again by one of the two.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from tidemill.features.windows import duration
from tidemill.lake.batches import BatchRow
from tidemill.lake.catalog import Lake, register
from tidemill.lake.session.separate_session import separate_session
from tidemill.operations import maintenance
from tidemill.pipeline.observer import Observer, Tell
from tidemill.pipeline.queries import Pipeline

log = logging.getLogger(__name__)

DAY = timedelta(days=1)
PATIENCE = 60.0  # seconds to wait for a statement that was interrupted


@dataclass
class MaintenanceSchedule(Observer):
    """Maintains the lake as often as the pipeline says: vacuum and tidy once a day, the rest each
    time."""

    tell: Tell
    due: datetime | None = field(default=None, init=False)
    _every: timedelta | None = field(default=None, init=False)
    _pass: Pass | None = field(default=None, init=False)

    def on_start(self, pipeline: Pipeline) -> None:
        """Count from the last maintenance that the lake tells of, else from now."""
        declared, now = pipeline.definition.maintenance, datetime.now(timezone.utc)
        if declared:
            self._every = duration(declared.every)
            self.due = (maintenance.last(pipeline.lake) or now) + self._every

    def on_idle(self, pipeline: Pipeline, busy: bool) -> None:
        """Begin a pass when it is due and no query is in a batch; when they never rest, after
        twice the time beside them, which is as safe and slower."""
        if self._pass:
            if not self._pass.is_alive():
                self._end()
            return
        now = datetime.now(timezone.utc)
        if self.due is None or self._every is None or now < self.due:
            return
        if not busy or now >= self.due + self._every:
            self._pass = Pass(pipeline, now)
            self._pass.start()

    def on_stop(self) -> None:
        """Interrupt the pass that is under way, and tell of what it did."""
        if self._pass:
            self._pass.interrupt()
            self._end()

    def _end(self) -> None:
        ended, self._pass = self._pass, None
        if ended is None or self._every is None:
            return
        self.due = datetime.now(timezone.utc) + self._every
        if ended.row:
            self.tell([ended.row])
        if ended.error:
            raise ended.error


class Pass(threading.Thread):
    """One pass of maintenance; `row` tells what it did, `error` why it ended."""

    def __init__(self, pipeline: Pipeline, now: datetime) -> None:
        """Be ready to start; it does not keep the process alive."""
        super().__init__(name="maintenance", daemon=True)
        self.row: BatchRow | None = None
        self.error: Exception | None = None
        self._pipeline, self._now = pipeline, now
        self._stopping = threading.Event()
        self._lake: Lake | None = None

    def run(self) -> None:
        """Plan, and run the steps one by one until interrupted."""
        done: list[maintenance.Done] = []
        try:
            lake = self._lake = self._lake_apart()
            steps = maintenance.plan(lake, self._pipeline.clock, self._actions(lake))
            maintenance.maintain(lake, self._until_interrupted(steps), done.append)
        except Exception as error:  # told on the main thread
            if self._stopping.is_set():  # cancelled; a classic session leaves that as py4j has it
                log.info("maintenance was interrupted: %s", error)
            else:
                self.error = error
        if done and self._lake:
            self.row = maintenance.row_of(self._lake, done)

    def interrupt(self) -> None:
        """End the statement under way, and wait until the pass has ended."""
        self._stopping.set()
        until = time.monotonic() + PATIENCE
        while self.is_alive() and time.monotonic() < until:
            if self._lake:  # again and again: a step may be between two statements
                self._lake.spark.interruptAll()
            self.join(1.0)
        if self.is_alive():
            log.warning("maintenance did not end within %g s", PATIENCE)

    def _lake_apart(self) -> Lake:
        lake = self._pipeline.lake
        spark = separate_session(lake.spark)
        register(spark, lake.place)
        return lake.within(spark)

    def _actions(self, lake: Lake) -> Sequence[str]:
        vacuumed = maintenance.last(lake, "vacuum")
        daily = vacuumed is None or self._now - vacuumed >= DAY
        return maintenance.ACTIONS if daily else maintenance.OFTEN

    def _until_interrupted(self, steps: Sequence[maintenance.Step]) -> Iterator[maintenance.Step]:
        """Yield the steps until the pass is interrupted."""
        for step in steps:
            if self._stopping.is_set():
                return
            yield step
