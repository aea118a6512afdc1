"""Named points at which tests end the process, so that every crash can be tried on purpose.

`TIDEMILL_FAIL_AT=<point>[:kill]` makes the point raise, or kill the process as `kill -9` does;
`<point>@<n>` waits for the n-th time it is reached. Without the variable a point does nothing.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

POINTS = (
    "clean.judged",
    "clean.quarantine_written",
    "clean.events_written",
    "feature.buckets_computed",
    "feature.buckets_written",
    "refresh.changes_computed",
    "refresh.merged",
    "batches.recorded",
)
# A run that publishes passes these too.
PUBLISH_POINTS = ("publish.begun", "publish.rows_written")
SLICE_POINTS = ("slices.written", "slices.merged")
ALERT_POINTS = ("alerts.looked", "alerts.written")
SWAP_POINTS = ("swap.leave", "swap.come", "swap.stay", "swap.moved")
EXPIRY_POINTS = ("expiry.noted", "expiry.folded")
STREAM_POINTS = ("stream.counted", "stream.appended")
RECOMPUTE_POINTS = ("recompute.computed", "recompute.written")
VARIABLE = "TIDEMILL_FAIL_AT"
_reached: Counter[str] = Counter()


class Injected(Exception):
    """The exception that a test asked for at a point."""


def reach(point: str) -> None:
    """Pass the point, unless a test asked for the process to end here."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return
    place, _, how = wanted.partition(":")
    name, _, time = place.partition("@")
    if name != point:
        return
    _reached[point] += 1
    if _reached[point] != int(time or 1):
        return
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise Injected(point)
