"""What a run tells while it goes on: the lines of `run`, metrics and the schedule of maintenance
are observers of it.

The runner calls every observer on its own thread, in the order in which they were given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.lake.batches import BatchRow

if TYPE_CHECKING:
    from tidemill.pipeline.queries import Pipeline

Tell = Callable[[Sequence[BatchRow]], None]


class Observer:
    """Does nothing when told; a subclass takes what it wants to hear."""

    def on_start(self, pipeline: Pipeline) -> None:
        """Hear that the queries are going to be started."""

    def on_batch(self, rows: Sequence[BatchRow]) -> None:
        """Hear of commits, oldest first; one batch of a query is told once."""

    def on_idle(self, pipeline: Pipeline, busy: bool) -> None:
        """Hear, several times a second, whether any query is in a batch."""

    def on_stop(self) -> None:
        """Hear that the run ends: its queries have been stopped, or have failed."""

    @property
    def has_enough(self) -> bool:
        """Whether the run may end by itself; asked several times a second."""
        return False


@dataclass(frozen=True)
class Callback(Observer):
    """Calls a function with the commits."""

    tell: Tell

    def on_batch(self, rows: Sequence[BatchRow]) -> None:
        """Call it."""
        self.tell(rows)
