"""A batch's records as judged: events, or refused with their reasons.

    records ──plain?──► yes ─────────────────────────► an event
                    └─► no ──parsed, every rule──┬───► an event
                                                 └───► refused: reasons, payload, position

Plain records are told from their texts. Only a batch that has others, which are few, pays for
parsing them. Both kinds are kept while the batch is read again, with what only quarantine has in
one column, REFUSED, which is null of an event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from tidemill.lake.append import digest, digest_of_all
from tidemill.lake.catalog import Lake
from tidemill.lake.parameters import beside_code
from tidemill.pipeline.row_writes.frame_cache import cached
from tidemill.pipeline.silver import lateness, replays, validation

PLACE = "__place"  # the column that tells rows apart which are the same
REFUSED = "__refused"
IS_EVENT, IS_JUDGED = f"{REFUSED} IS NULL", f"({REFUSED} IS NULL OR {REFUSED}.reasons IS NOT NULL)"


@dataclass(frozen=True)
class Totals:
    """What a ledger says of events: how many, their digest, and how late they came."""

    events: int
    digest: str
    late: Sequence[int]


@dataclass(frozen=True)
class JudgedBatch:
    """A batch of records as judged.

    `rows` are kept. `events` are the totals of all valid events, duplicates among them; `refused`
    how many were refused, with their digest and how many for each reason; `minutes` the event
    times, in whole minutes since 1970, at which one of them may have been accepted before.
    """

    rows: DataFrame
    events: Totals
    refused: int
    refused_digest: str
    by_reason: Mapping[str, int]
    minutes: list[int]

    @property
    def records(self) -> int:
        """How many records the batch has."""
        return self.events.events + self.refused


@contextmanager
def judged(batch: DataFrame, batch_id: int, lake: Lake) -> Iterator[JudgedBatch]:
    """Yield a batch of bronze's records as judged; they are kept while the block runs."""
    with cached(_plain(batch, lake)) as plain:
        # One pass: it keeps the rows as well.
        counts = _counted(plain, batch_id, lake)
        if all(row["judged"] for row in counts):
            yield _judged(plain, counts)
            return
        with cached(_parsed(plain, lake)) as parsed:
            rows = plain.where(IS_JUDGED).unionByName(parsed)
            yield _judged(rows, [*counts, *_counted(parsed, batch_id, lake)])


def _plain(batch: DataFrame, lake: Lake) -> DataFrame:
    """Return the batch with its plain records judged, the others with null for their reasons."""
    rows = validation.plain(batch, lake.pipeline, lake.longer)
    reasons = F.expr(f"CASE WHEN {validation.PLAIN} THEN {validation.NONE} END")
    rows = rows.withColumn("reasons", reasons).drop(validation.PLAIN)
    rows = replays.set_aside(validation.tried(rows, lake.pipeline), lake)
    return _slim(rows, lake).withColumn(PLACE, F.monotonically_increasing_id())


def _parsed(plain: DataFrame, lake: Lake) -> DataFrame:
    """Return the records that are not plain, judged."""
    others = plain.where(f"NOT {IS_JUDGED}")
    bronze = lake.tables.bronze.column_names
    records = others.select(
        *(F.col(name if name in plain.columns else f"{REFUSED}.{name}") for name in bronze),
        PLACE,
    )
    rows = validation.judge(records, lake.pipeline, lake.longer)
    return _slim(replays.set_aside(rows, lake), lake, PLACE)


def _slim(rows: DataFrame, lake: Lake, *more: str) -> DataFrame:
    """Return judged rows with what only quarantine keeps in one column."""
    kept = [name for name in lake.tables.events.column_names if name in rows.columns]
    only = [name for name in lake.tables.bronze.column_names if name not in kept]
    refused = F.when(F.expr("NOT (size(reasons) <=> 0)"), F.struct(*only, "reasons"))
    return rows.select(*kept, refused.alias(REFUSED), *more)


def _counted(rows: DataFrame, batch_id: int, lake: Lake) -> Sequence[Row]:
    """Return a row for each combination of reasons, which are few."""
    event_time = lake.pipeline.events.event_time
    has_id = F.expr(IS_EVENT) & F.col(validation.EVENT_ID).isNotNull()
    minute = F.floor(F.unix_seconds(event_time) / 60)
    by_reasons = (
        with_batch(rows, batch_id, lake)
        .selectExpr("*", f"{REFUSED}.*", f"{IS_JUDGED} AS judged")
        .groupBy("judged", "reasons")
        .agg(
            F.count("*").alias("records"),
            digest(lake.tables.quarantine, "reasons IS NOT NULL").alias("refused_digest"),
            digest(lake.tables.events, IS_EVENT).alias("digest"),
            F.expr(lateness.expression(event_time, IS_EVENT)).alias("late"),
            F.collect_set(F.when(has_id, minute)).alias("minutes"),
        )
    )
    return by_reasons.coalesce(1).collect()


def _judged(rows: DataFrame, counts: Sequence[Row]) -> JudgedBatch:
    """Add up the combinations of reasons; a record of two reasons counts in both."""
    events = [row for row in counts if row["judged"] and row["reasons"] is None]
    refused = [row for row in counts if row["reasons"] is not None]
    by_reason: Counter[str] = Counter()
    for row in refused:
        by_reason.update(dict.fromkeys(row["reasons"], row["records"]))
    return JudgedBatch(
        rows,
        Totals(
            sum(row["records"] for row in events),
            digest_of_all(row["digest"] for row in events),
            lateness.added(row["late"] for row in events),
        ),
        sum(row["records"] for row in refused),
        digest_of_all(row["refused_digest"] for row in refused),
        dict(sorted(by_reason.items())),
        sorted({minute for row in events for minute in row["minutes"]}),
    )


def totals(events: DataFrame, lake: Lake) -> Totals:
    """Return the totals of events, in the columns of their table."""
    late = F.expr(lateness.expression(lake.pipeline.events.event_time, "TRUE"))
    row = events.agg(F.count("*"), digest(lake.tables.events), late).collect()[0]
    return Totals(*row)


def with_batch(rows: DataFrame, batch_id: int, lake: Lake) -> DataFrame:
    """Return judged rows with the columns that clean adds."""
    hour = F.floor(F.unix_seconds(lake.pipeline.events.event_time) / 3600) * 3600
    batch = beside_code(batch_id, "record_id")
    return rows.withColumns({"batch": batch, "event_hour": F.timestamp_seconds(hour)})


def refused_rows(batch: JudgedBatch, batch_id: int, lake: Lake) -> DataFrame:
    """Return the refused records in the quarantine table's columns."""
    rows = with_batch(batch.rows.where(f"NOT ({IS_EVENT})"), batch_id, lake)
    return rows.selectExpr("*", f"{REFUSED}.*").select(*lake.tables.quarantine.column_names)


def valid_events(batch: JudgedBatch, batch_id: int, lake: Lake) -> DataFrame:
    """Return the valid events in the events table's columns, and their place."""
    rows = with_batch(batch.rows.where(IS_EVENT), batch_id, lake)
    return rows.select(*lake.tables.events.column_names, PLACE)
