"""Empty rows of gold, which maintenance removes when they are old enough (`keep_empty`)."""

from __future__ import annotations

from datetime import datetime

from tidemill.config.settings import iso
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.parameters import ask
from tidemill.lake.statements import statement
from tidemill.pipeline.gold.merge import merge
from tidemill.pipeline.row_writes.frame_cache import cached

_OF_ONE_REFRESH = ("why", "drift", "events_drift")  # in a ledger, that maintenance does not repeat


def remove_empty(lake: Lake, view: FeatureView, before: datetime) -> int | None:
    """Remove the rows of gold that have been empty since before a time, in a commit whose ledger
    says what gold held; return how many, None when a refresh came first or is needed first."""
    state = lake.gold_state(view)
    if state.recompute_reason or state.ledger is None or state.as_of is None:
        return None
    rows = ask(lake.spark, statement("emptied", view), {"before": before})
    with cached(rows):
        counts = {"delete": rows.count()}
        if not counts["delete"]:
            return 0
        kept = {n: value for n, value in state.ledger.items() if n not in _OF_ONE_REFRESH}
        fields = {
            **kept,
            "refresh": state.refresh,
            "from_batch": state.batch,
            "seconds": {},
            ledger.UPKEEP: f"removed {counts['delete']} keys empty since {iso(before)}",
        }
        return merge(lake, view, rows, counts, fields)
