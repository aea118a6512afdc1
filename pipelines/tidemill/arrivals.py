"""What the state reads: a table of what is new to it, which follows the buckets.

    buckets ──rows with batch in (b0, b]────────────────┐
            ──keys that were live at T0 (event clock)───┼─► arrivals {batch b, as_of T} ──► state
    clock ──one row without keys────────────────────────┘

Each append says how far it has read, as gold does. So the first one brings the whole of the longest
window, and one after batches without an append brings them all.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import datetime

from tidemill import lake as lakes
from tidemill import ledger, tables
from tidemill.features import FeatureView
from tidemill.lake import Lake
from tidemill.settings import iso
from tidemill.statements import statement

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Arrived:
    """Where the arrivals of a view stand, and the table's version."""

    batch: int
    as_of: datetime | None
    version: int


def arrived(lake: Lake, view: FeatureView) -> Arrived:
    """Yield where the arrivals stand, from the table's history; at nothing after it was made
    again."""
    found = ledger.commits(lake.spark, tables.arrivals(view).name)
    for commit in found:
        if "REPLACE TABLE" in commit.operation:
            break
        if commit.ledger and commit.ledger["generation"] == lake.generation:
            as_of = ledger.instant(commit.ledger["as_of"])
            return Arrived(int(commit.ledger["batch"]), as_of, found[0].version)
    return Arrived(-1, None, found[0].version)


def arrive(lake: Lake, view: FeatureView, *, as_of: datetime | None, batch: int) -> bool:
    """Bring the arrivals to the buckets with `batch <= batch` at `as_of`, in one commit; tell
    whether there was something to bring.

    Neither is ever lowered. Buckets that no window holds at as_of do not arrive. With the event
    clock each live key gets a tick, so that its windows pass; with the wall clock timers do that.
    """
    there, table = arrived(lake, view), tables.arrivals(view)
    if as_of is None:
        return False
    goal = max(as_of, there.as_of or as_of), max(batch, there.batch)
    if goal == (there.as_of, there.batch):
        return False
    args = {
        "as_of": goal[0],
        "batch": goal[1],
        "as_of_before": there.as_of or goal[0],
        "batch_before": there.batch,
        "ticks": lake.pipeline.clock == "event",
    }
    told = {"generation": lake.generation, "batch": goal[1], "as_of": iso(goal[0])}
    (
        lake.spark.sql(statement("arrivals", view), args=args)
        .select(*table.column_names)
        .write.format("delta")
        .mode("append")
        .option("txnAppId", lake.app_id(table))
        .option("txnVersion", there.version + 1)
        .option("userMetadata", json.dumps(told))
        .saveAsTable(table.name)
    )
    log.info("%s: batch %d at %s", table.name, goal[1], told["as_of"])
    return True


def begin_anew(lake: Lake, view: FeatureView) -> None:
    """Empty the arrivals, so that the next ones bring the whole of the longest window again."""
    table = tables.arrivals(view)
    if not lake.is_as_made(table.name):
        lakes.create(lake.spark, lake.place, lake.pipeline, table, lake.generation, replace=True)
