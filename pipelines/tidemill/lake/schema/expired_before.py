"""Before when a bucket table may lack buckets, as it says itself: `tidemill.expired_before`; and
that they were not lost but folded into the keys' base: `tidemill.folded_before`, the same time.

Expiry removes them, and a rebuild of features or of a view makes no more of them than the history
of that day keeps. Either writes the property, so it outlives the log and today's `history`. A view
whose windows reach back beyond it lacks buckets, whatever its declaration says; `rebuild --since`
makes them again from the events, which are never expired.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from pyspark.sql import functions as F

from tidemill.config.settings import EPOCH, iso
from tidemill.features import FeatureView
from tidemill.features.windows import BEGINNING
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.schema.table_properties import tell

PROPERTY = "tidemill.expired_before"
FOLDED = "tidemill.folded_before"
WORDS = "expired before "  # of maintenance's ledger, all there is in a lake of version 0.1


def lost_since(
    lake: Lake, buckets: str, view: FeatureView, said: Mapping[str, str]
) -> tuple[datetime, datetime] | None:
    """Return the hour from which the view's windows need buckets, and the time before which expiry
    has removed them; None where no window of now reaches so far back. `buckets` is the bucket
    table's name, `said` are its properties, here and below."""
    before = expired_before(lake, buckets, said)
    if before is None:
        return None
    newest = F.unix_seconds(F.max("bucket_start"))
    seconds = lake.spark.table(buckets).agg(newest).collect()[0][0]
    if seconds is None:
        return None
    end = EPOCH + timedelta(seconds=seconds) + view.bucket_length
    if not view.has_lifetimes:
        needed = (end - view.horizon).replace(minute=0, second=0, microsecond=0)
        return (needed, before) if end - view.horizon < before else None
    known = folded_before(said) is not None and end - view.apart >= before
    return None if known or before <= BEGINNING else (BEGINNING, before)


def expired_before(lake: Lake, buckets: str, said: Mapping[str, str]) -> datetime | None:
    """Return the time before which expiry has removed buckets, None when it never has."""
    if PROPERTY in said:
        return ledger.instant(said[PROPERTY])
    commits = lake.commits(buckets, None)
    notes = (str((commit.ledger or {}).get(ledger.UPKEEP, "")) for commit in commits)
    times = (ledger.instant(n.removeprefix(WORDS)) for n in notes if n.startswith(WORDS))
    return max(times, default=None)


def folded_before(said: Mapping[str, str]) -> datetime | None:
    """Return the time before which buckets may be folded into the keys' base; None where none is,
    or where some expired since."""
    folded = said.get(FOLDED)
    return ledger.instant(folded) if folded and folded == said.get(PROPERTY) else None


def of_table(lake: Lake, buckets: str) -> datetime:
    """Return the time before which a bucket table may lack buckets, `BEGINNING` for none."""
    return expired_before(lake, buckets, lake.metadata(buckets).properties) or BEGINNING


def properties(before: datetime, *, folded: bool = False) -> dict[str, str]:
    """Return the properties that say that no bucket before a time is sure to be there, or but for
    the base that it is `folded` into."""
    return {PROPERTY: iso(before), FOLDED: iso(before) if folded else ""}


def note(lake: Lake, buckets: str, before: datetime, *, folded: bool = False) -> None:
    """Have the bucket table say `properties`, of a later time where it said that already."""
    said = lake.metadata(buckets).properties
    later = max(before, expired_before(lake, buckets, said) or BEGINNING)
    told, nothing = properties(later, folded=folded), properties(BEGINNING)
    if any(said.get(key, nothing[key]) != value for key, value in told.items()):
        tell(lake.spark, buckets, told)


def keep(lake: Lake, buckets: str, said: Mapping[str, str]) -> None:
    """Have the bucket table say what its log alone says, before that is removed from the log."""
    if PROPERTY not in said and (before := expired_before(lake, buckets, said)) is not None:
        tell(lake.spark, buckets, properties(before))


def filled(lake: Lake, buckets: str, since: datetime, *, alone: bool = False) -> None:
    """Have the bucket table say that every bucket from a time on was made again; where they are all
    that was made, `alone`, that no bucket before it is sure to be there."""
    before = of_table(lake, buckets)
    if since < before or (alone and since > before):
        tell(lake.spark, buckets, properties(since))
