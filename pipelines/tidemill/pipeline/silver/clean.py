"""`clean` makes events of records.

    bronze batch ──judge──► refused ───────────────────────────► quarantine   (append, txn = batch)
                        └─► valid ──known before?──► duplicate
                                                └─► accepted ──► events       (append, txn = batch)
                                                         ▲ dimensions, where events take of them

It takes any frame and any batch id and may be called again with both after a crash at any point:
what stands is verified, what is missing is written.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from tidemill.errors import LedgerError
from tidemill.lake.append import Appended, append, digest, digest_of_all, other_rows
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.commits.failpoints import reach
from tidemill.lake.tables import Table
from tidemill.pipeline.silver import duplicates, lateness, lookup, replays, validation
from tidemill.pipeline.silver.frame_cache import cached
from tidemill.pipeline.silver.lookup import Readings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Cleaned:
    """What became of a batch of records; always events = accepted + quarantined + duplicates."""

    events: int
    accepted: int
    quarantined: int
    duplicates: int


def clean(
    batch: DataFrame, batch_id: int, *, lake: Lake, readings: Readings | None = None
) -> Cleaned:
    """Append the batch's valid, distinct events and its refused records, each once.

    An event is a duplicate when an accepted one has the same event_id and event time: in this batch
    the smallest record_id is kept, across batches the one accepted before. Rows that an earlier try
    of this batch wrote do not count. What events take of dimensions is looked up once, in the
    versions that `readings` says, the newest by default, and stays as it was written. Raises
    LedgerError when the batch id was used for other rows.
    """
    lake = lake.within(batch.sparkSession)
    started = time.monotonic()
    rows = replays.set_aside(validation.judge(batch, lake.pipeline), lake)
    with cached(_slim(rows, lake)) as judged:
        read = _read(judged, batch_id, lake)
        if not read.records:
            return Cleaned(0, 0, 0, 0)
        valid = _valid(judged, batch_id, lake)
        with duplicates.flagged(valid, read.records, read.minutes, batch_id, lake) as flagged:
            return _write_clean(judged, flagged, read, batch_id, lake, started, readings)


def _slim(judged: DataFrame, lake: Lake) -> DataFrame:
    """Return the judged rows without what only quarantine keeps, where a row is not refused, and
    their place, which tells rows apart that are the same."""
    kept = lake.tables.events.column_names
    only = [c.name for c in lake.tables.bronze.columns if c.name not in kept]
    refused = F.size("reasons") > 0
    slim = judged.withColumns({name: F.when(refused, F.col(name)) for name in only})
    return slim.withColumn(duplicates.PLACE, F.monotonically_increasing_id())


def _read(judged: DataFrame, batch_id: int, lake: Lake) -> _Read:
    """Return what the batch holds: a row for each combination of reasons, which are few."""
    valid = (F.size("reasons") == 0) & F.col(validation.EVENT_ID).isNotNull()
    minute = F.floor(F.unix_seconds(lake.pipeline.events.event_time) / 60)
    with_batch = judged.withColumn("batch", F.lit(batch_id).cast("bigint"))
    by_reasons = with_batch.groupBy("reasons").agg(
        F.count("*").alias("records"),
        digest(lake.tables.quarantine, "size(reasons) > 0").alias("digest"),
        F.collect_set(F.when(valid, minute)).alias("minutes"),
    )
    return _Read.of(by_reasons.coalesce(1).collect())


@dataclass(frozen=True)
class _Read:
    """A batch of records as judged: how many, those refused with their digest, by reason, and the
    event times, in whole minutes since 1970, at which an event of the batch may have been accepted
    before."""

    records: int
    refused: int
    by_reason: Mapping[str, int]
    digest: str
    minutes: list[int]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> _Read:
        """Add up the combinations of reasons; a record of two reasons counts in both."""
        refused = [row for row in rows if row["reasons"]]
        by_reason: Counter[str] = Counter()
        for row in refused:
            by_reason.update(dict.fromkeys(row["reasons"], row["records"]))
        return cls(
            sum(row["records"] for row in rows),
            sum(row["records"] for row in refused),
            dict(sorted(by_reason.items())),
            digest_of_all(row["digest"] for row in refused),
            sorted({minute for row in rows for minute in row["minutes"]}),
        )


def _valid(judged: DataFrame, batch_id: int, lake: Lake) -> DataFrame:
    """Return the batch's valid events in the events table's columns, and their place."""
    hour = F.floor(F.unix_seconds(lake.pipeline.events.event_time) / 3600) * 3600
    return (
        judged.where(F.size("reasons") == 0)
        .withColumn("batch", F.lit(batch_id).cast("bigint"))
        .withColumn("event_hour", F.timestamp_seconds(hour))
        .select(*lake.tables.events.column_names, duplicates.PLACE)
    )


def _write_clean(
    judged: DataFrame,
    valid: DataFrame,
    read: _Read,
    batch_id: int,
    lake: Lake,
    started: float,
    readings: Readings | None,
) -> Cleaned:
    quarantine, events = lake.tables.quarantine, lake.tables.events
    totals = valid.agg(
        F.count_if(~F.col("duplicate")).alias("accepted"),
        F.count_if("duplicate").alias("duplicates"),
        digest(events, "NOT duplicate").alias("digest"),
        F.expr(lateness.expression(lake.pipeline.events.event_time, "NOT duplicate")).alias("late"),
    ).collect()[0]
    result = Cleaned(read.records, totals["accepted"], read.refused, totals["duplicates"])
    _check_sum(result, batch_id, events.name)
    reach("clean.judged")
    if result.quarantined:
        refused = judged.where(F.size("reasons") > 0)
        refused = refused.withColumn("batch", F.lit(batch_id).cast("bigint"))
        told_refused = _told(result, read.digest, {})
        append(lake, quarantine, refused, batch_id, told_refused, _newest(lake, quarantine))
    reach("clean.quarantine_written")
    accepted = valid.where(~F.col("duplicate"))
    late = lateness.told(totals["late"], result.accepted)
    with lookup.taken(accepted, lake, readings) as taken:
        seconds = {"clean": round(time.monotonic() - started, 3)}
        told_events = {
            **_told(result, totals["digest"], seconds),
            "refused": read.by_reason,
            **late,
            **taken.told,
        }
        stands = append(lake, events, taken.rows, batch_id, told_events, _newest(lake, events))
    _check_counts(result, stands, batch_id, events)
    reach("clean.events_written")
    log.info("clean batch %d: %s", batch_id, result)
    return result


def _told(result: Cleaned, rows_digest: str, seconds: Mapping[str, float]) -> dict[str, Any]:
    return {**vars(result), "digest": rows_digest, "seconds": dict(seconds)}


def _check_sum(result: Cleaned, batch_id: int, table: str) -> None:
    accounted = result.accepted + result.quarantined + result.duplicates
    if result.events != accounted:
        raise LedgerError(
            f"batch {batch_id} has {result.events} events, but {accounted} are accounted for",
            where=table,
            expected="events = accepted + quarantined + duplicates; please report this",
        )


def _check_counts(result: Cleaned, stands: Appended, batch_id: int, table: Table) -> None:
    """Refuse a batch whose events stand already, but beside another number of other records."""
    then = {name: stands.ledger[name] for name in vars(result)}
    if then != vars(result):
        raise other_rows(table, batch_id, then, vars(result))


def _newest(lake: Lake, table: Table) -> ledger.Commit | None:
    return ledger.newest_append(lake, table.name, lake.generation)
