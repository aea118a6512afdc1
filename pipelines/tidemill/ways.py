"""Which way gold is brought up to date, and why.

    recompute     read the longest window, compare every key: the reference, first build and repair
    incremental   read what entered and left the windows since gold's ledger, change those keys
    auto          incremental; once a day of as_of gold is compared with the recompute first
    stateful      merge what the stateful engine emitted; it alone takes this way, and no other

Either way gives the same rows. The incremental one starts from what gold's ledger says, so it is
taken only where that can be trusted; what the ledger's rules say of recompute stays as it is. And
it is taken only where it reads no more: after a jump of as_of the rows of both ways are counted, by
the hours that they stand in.

An incremental refresh of a small gold is `small`: its statements are interpreted. To compile them
takes longer than to run them, anew in every tick, as the times stand in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession

from tidemill import ledger, tables
from tidemill.binding import ask
from tidemill.features import FeatureView
from tidemill.features.definition import Mode
from tidemill.features.windows import HOUR
from tidemill.lake import Lake
from tidemill.ledger import Commit, Standing
from tidemill.settings import iso
from tidemill.statements import statement

CHECK_EVERY = timedelta(days=1)
SMALL_GOLD, SMALL_BATCH = 512 * 2**10, 100_000  # bytes; rows that came since gold's ledger


@dataclass(frozen=True)
class Way:
    """The mode of a refresh, `why` it is a recompute where incremental was asked for, and
    `checked`, the as_of at which gold was last held against a recompute. `small`: see above."""

    mode: str
    checked: datetime | None
    why: str | None = None
    drift: int = 0
    small: bool = False

    def told(self) -> dict[str, Any]:
        """Yield what the ledger keeps of it."""
        return {
            "mode": self.mode,
            **({"checked": iso(self.checked)} if self.checked else {}),
            **({"why": self.why} if self.why else {}),
            **({"drift": self.drift} if self.drift else {}),
        }


STATEFUL = Way(ledger.STATEFUL, None)


def choose(
    lake: Lake,
    view: FeatureView,
    wished: Mode,
    there: Standing,
    as_of: datetime,
    distrust: str | None,
    buckets: Sequence[Commit],
) -> Way:
    """Yield the way to bring gold from where it stands to `as_of`.

    `distrust` says why gold's ledger cannot be built on, if it cannot; `buckets` are the bucket
    table's newest commits. With `auto`, a gold that was
    not checked for a day of as_of is compared with the recompute first; `drift` is then the number
    of keys that differ, and more than 0 leads to a recompute.
    """
    if wished == "recompute":
        return Way("recompute", as_of)
    if why := distrust or _distrust_of_buckets(lake, view, there, buckets):
        return Way("recompute", as_of, why)
    assert there.as_of is not None and there.ledger is not None
    if why := _reads_more(lake, view, there.as_of, there.batch, as_of):
        return Way("recompute", as_of, why)
    small = _is_small(lake, view, there, buckets)
    checked = there.ledger.get("checked")
    checked = ledger.instant(checked) if checked else None
    if wished == "incremental" or (checked and abs(as_of - checked) < CHECK_EVERY):
        return Way("incremental", checked, small=small)
    drift = compare(lake.spark, view, there.version, there.as_of, there.batch)[1]
    if drift:
        return Way("recompute", as_of, f"the check found {drift} keys that differ", drift)
    return Way("incremental", as_of, small=small)


def _distrust_of_buckets(
    lake: Lake, view: FeatureView, there: Standing, found: Sequence[Commit]
) -> str | None:
    """Say why the bucket rows that gold was made of may not be the same today; None when they are.

    `found` are the bucket table's newest commits. Appends of ours add rows, which the next refresh
    reads as new; anything else that changed rows since then (DELETE, RESTORE, a foreign write) was
    never subtracted from gold.
    """
    name = tables.buckets(view).name
    after = int((there.ledger or {}).get("buckets", -1))
    if after < 0:
        return f"the ledger names no version of {name}"
    return ledger.changed_by_another(lake, name, after, found)


def _reads_more(
    lake: Lake, view: FeatureView, before: datetime, batch_before: int, as_of: datetime
) -> str | None:
    """Say why an incremental refresh would read more than a recompute; None where it does not.

    Where as_of moves by an hour at most the rows in question are those of a few hours, which nobody
    counts: the lengths of time are compared.
    """
    moved = abs(as_of - before)
    if moved <= HOUR:
        longer = moved * (len(view.windows) + 1) >= view.horizon
        return f"as_of moves by {moved}, which is not less to read" if longer else None
    low, high = min(as_of, before), max(as_of, before)
    args = {"as_of": as_of, "batch_before": batch_before, "low": low, "high": high}
    rows = ask(lake.spark, statement("rows_to_read", view), args).collect()[0]
    if rows["incremental"] <= rows["recompute"]:
        return None
    return (
        f"as_of moves by {moved}, and {rows['incremental']} bucket rows would be read "
        f"instead of {rows['recompute']}"
    )


def _is_small(lake: Lake, view: FeatureView, there: Standing, buckets: Sequence[Commit]) -> bool:
    """Tell whether gold is small, which only a folder's log tells without a query, and so is what
    arrived since its ledger."""
    size = lake.size(tables.features(view).name, there.version)
    after = int((there.ledger or {})["buckets"])
    arrived = (c.metric("numOutputRows") for c in ledger.appends(buckets) if c.version > after)
    return size is not None and size <= SMALL_GOLD and sum(arrived) <= SMALL_BATCH


def compare(
    spark: SparkSession, view: FeatureView, version: int, as_of: datetime, batch: int
) -> tuple[int, int]:
    """Compare a version of gold with the recompute at (batch, as_of); yield how many keys are not
    empty on either side, and how many of them have an unequal feature."""
    rows = spark.read.option("versionAsOf", version).table(tables.features(view).name)
    text, args = statement("differences", view), {"as_of": as_of, "batch": batch}
    row = ask(spark, text, args, {"gold_rows": rows}).collect()[0]
    return row["keys"], row["different"]
