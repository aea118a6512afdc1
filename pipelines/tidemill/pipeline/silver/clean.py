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
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from tidemill.errors import LedgerError
from tidemill.lake.append import Appended, append, other_rows
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.commits.failpoints import reach
from tidemill.lake.tables import Table
from tidemill.pipeline.silver import lateness, lookup
from tidemill.pipeline.silver.duplicates import Accepted, accepted_events
from tidemill.pipeline.silver.judged_batch import JudgedBatch, judged, refused_rows, valid_events
from tidemill.pipeline.silver.known_events import KnownEvents
from tidemill.pipeline.silver.lookup import Readings
from tidemill.pipeline.silver.validation import changed_fields, record

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Cleaned:
    """What became of a batch of records; always events = accepted + quarantined + duplicates."""

    events: int
    accepted: int
    quarantined: int
    duplicates: int


def clean(
    batch: DataFrame,
    batch_id: int,
    *,
    lake: Lake,
    readings: Readings | None = None,
    known: KnownEvents | None = None,
) -> Cleaned:
    """Append the batch's valid, distinct events and its refused records, each once.

    An event is a duplicate when an accepted one has the same event_id and event time: in this batch
    the smallest record_id is kept, across batches the one accepted before. Rows that an earlier try
    of this batch wrote do not count. What events take of dimensions is looked up once, in the
    versions that `readings` says, the newest by default, and stays as it was written. `known` is
    what a run knows of accepted events from one batch to the next. Raises LedgerError when the
    batch id was used for other rows.
    """
    lake = lake.within(batch.sparkSession)
    started = time.monotonic()
    with judged(batch, batch_id, lake) as records:
        if not records.records:
            return Cleaned(0, 0, 0, 0)
        events = valid_events(records, batch_id, lake)
        with accepted_events(events, records, batch_id, lake, known) as accepted:
            result = _checked(records, accepted, batch_id, lake)
            _write_refused(records, result, batch_id, lake)
            with lookup.taken(accepted.rows, lake, readings) as taken:
                seconds = {"clean": round(time.monotonic() - started, 3)}
                expected = _expected(records, lake)
                told = {**_told_events(result, records, accepted, expected, seconds), **taken.told}
                _write_events(taken.rows, result, told, batch_id, lake)
            log.info("clean batch %d: %s", batch_id, result)
            return result


def _checked(records: JudgedBatch, accepted: Accepted, batch_id: int, lake: Lake) -> Cleaned:
    result = Cleaned(records.records, accepted.totals.events, records.refused, accepted.duplicates)
    _check_sum(result, batch_id, lake.tables.events.name)
    reach("clean.judged")
    return result


def _write_refused(records: JudgedBatch, result: Cleaned, batch_id: int, lake: Lake) -> None:
    quarantine = lake.tables.quarantine
    if result.quarantined:
        refused = refused_rows(records, batch_id, lake)
        told = _told(result, records.refused_digest, {})
        append(lake, quarantine, refused, batch_id, told, _newest(lake, quarantine))
    reach("clean.quarantine_written")


def _write_events(
    rows: DataFrame, result: Cleaned, told: Mapping[str, Any], batch_id: int, lake: Lake
) -> None:
    events = lake.tables.events
    stands = append(lake, events, rows, batch_id, told, _newest(lake, events))
    _check_counts(result, stands, batch_id, events)
    reach("clean.events_written")


def _told_events(
    result: Cleaned,
    records: JudgedBatch,
    accepted: Accepted,
    expected: Mapping[str, str],
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    return {
        **_told(result, accepted.totals.digest, seconds),
        "refused": records.by_reason,
        **({"expected": expected} if expected else {}),
        **lateness.told(accepted.totals.late, result.accepted),
    }


def _expected(records: JudgedBatch, lake: Lake) -> dict[str, str]:
    every = [*record.fields(lake.pipeline), record.event_time(lake.pipeline)]
    return changed_fields.expected(records.by_reason, every)


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
