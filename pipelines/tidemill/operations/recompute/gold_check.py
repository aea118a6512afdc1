"""Gold compared before its days are recomputed, and corrected where that is wanted.

gold ≠ features of the buckets   cause `gold`: another wrote to it; a repair recomputes it
buckets ≠ accepted events        cause `buckets`: they have lost rows, or have them twice; they are
                                 made again from the events, as far back as windows reach
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from tidemill.errors import LakeError
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.operations.reconcile import mended_since, reconcile, repaired

log = logging.getLogger(__name__)

GOLD, BUCKETS = "gold", "buckets"


def found(lake: Lake, view: FeatureView) -> dict[str, int]:
    """Return how many keys of gold are different, by cause; nothing of a gold that was never
    refreshed. Where gold is not what the buckets say, it is not asked what these are."""
    if lake.gold_state(view).as_of is None:
        return {}
    if different := reconcile(lake, view).different:
        return {GOLD: different}
    try:
        different = reconcile(lake, view, source="events").different
    except LakeError as error:
        log.info("%s is not compared with the events: %s", view.name, error)
        return {}
    return {BUCKETS: different} if different else {}


def corrected(lake: Lake, view: FeatureView, remake: Callable[[datetime], None]) -> dict[str, int]:
    """Correct the view's gold; return what was different, by cause. `remake` makes the buckets
    again from a time on, and gold with them. UsageError with the stateful engine, which has no
    such parts."""
    before = found(lake, view)
    if GOLD in before:
        repaired(lake, view)
        before |= {cause: n for cause, n in found(lake, view).items() if cause == BUCKETS}
    if BUCKETS in before:
        as_of = lake.gold_state(view).as_of
        assert as_of is not None
        remake(mended_since(view, as_of))
    return before
