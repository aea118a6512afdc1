"""A batch of a dimension's records: refused ones into quarantine, changes into the dimension.

    bronze batch ──judge──► refused ──► quarantine   (append, txn = batch)
                        └─► changes ──► dimension    (MERGE, txn = batch)

Per batch: events = accepted + quarantined + tombstones. It takes any frame and any batch id and may
be called again with both after a crash at any point: a batch that stands is verified by its digest,
and its changes would find themselves there.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.config.dimension import Dimension
from tidemill.lake.append import append, columns, digest, digest_of_all, other_rows
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger, writer
from tidemill.lake.commits.failpoints import reach
from tidemill.lake.commits.ledger import Commit
from tidemill.lake.commits.races import past_others
from tidemill.lake.parameters import beside_code
from tidemill.lake.tables import Table
from tidemill.pipeline.dimensions import change_records, dimension_merge
from tidemill.pipeline.row_writes.frame_cache import cached
from tidemill.pipeline.silver.validation import changed_fields

log = logging.getLogger(__name__)


def apply(batch: DataFrame, batch_id: int, *, lake: Lake, dimension: Dimension) -> None:
    """Bring the batch's changes into the dimension, and its refused records into quarantine, each
    once. Raises LedgerError when the batch id was used for other records."""
    lake, started = lake.within(batch.sparkSession), time.monotonic()
    tables = lake.tables.dimensions[dimension.name]
    judged = change_records.judge(batch, dimension)
    with cached(judged.withColumn("batch", beside_code(batch_id, "tombstone"))) as rows:
        counts = _counted(rows, dimension, tables.quarantine)
        if not counts["events"]:
            return
        reach("dimension.judged")
        _quarantine(rows, counts, batch_id, lake, tables.quarantine)
        reach("dimension.quarantine_written")
        if _is_there(lake, tables.rows, batch_id, counts["digest"]):
            return
        changes = change_records.changes(rows, dimension)
        with cached(dimension_merge.newest(changes, dimension)) as latest:
            fields = {
                "generation": lake.generation,
                "batch": batch_id,
                "columns": columns(tables.rows),
                **counts,
                "seconds": {"dimension": round(time.monotonic() - started, 3)},
            }
            _merge(latest, fields, dimension, lake, batch_id)
    reach("dimension.merged")
    log.info("dimension %s batch %d: %s", dimension.name, batch_id, counts)


def _quarantine(
    rows: DataFrame, counts: Mapping[str, Any], batch_id: int, lake: Lake, table: Table
) -> None:
    """Append the refused records, where there are any."""
    if counts["quarantined"]:
        refused = rows.where(F.size("reasons") > 0)
        fields = {**counts, "digest": counts["refused_digest"]}
        newest = ledger.newest_append(lake, table.name, lake.generation)
        append(lake, table, refused, batch_id, fields, newest)


def _merge(
    latest: DataFrame, fields: Mapping[str, Any], dimension: Dimension, lake: Lake, batch_id: int
) -> None:
    """MERGE the latest changes, again where another commit came first, as maintenance's may."""
    table = lake.tables.dimensions[dimension.name].rows
    transaction = (lake.app_id(table), batch_id)

    def write() -> None:
        with writer.carrying(lake.spark, fields, transaction):
            dimension_merge.merge(latest, dimension, lake, batch_id)

    past_others(write)


def _counted(rows: DataFrame, dimension: Dimension, quarantine: Table) -> Mapping[str, Any]:
    """Return what became of the batch's records, their digests, and the refused ones by reason."""
    names = ("deleted", "changed_at", "__place", *dimension.column_types)
    change = f"xxhash64({', '.join(names)})"
    said = rows.groupBy("reasons").agg(
        F.count("*").alias("records"),
        F.count_if("tombstone").alias("tombstones"),
        digest(quarantine, "size(reasons) > 0").alias("refused_digest"),
        F.expr(f"concat_ws(':', count(*), hex(coalesce(bit_xor({change}), 0L)))").alias("digest"),
    )
    each = said.coalesce(1).collect()
    by_reason: Counter[str] = Counter()
    for row in each:
        by_reason.update(dict.fromkeys(row["reasons"], row["records"]))
    expected = changed_fields.expected(by_reason, change_records.fields(dimension))
    events, quarantined, tombstones = (
        sum(row["records"] for row in each),
        sum(row["records"] for row in each if row["reasons"]),
        sum(row["tombstones"] for row in each),
    )
    return {
        "events": events,
        "accepted": events - quarantined - tombstones,
        "quarantined": quarantined,
        "tombstones": tombstones,
        "refused": dict(sorted(by_reason.items())),
        **({"expected": expected} if expected else {}),
        "refused_digest": digest_of_all(row["refused_digest"] for row in each if row["reasons"]),
        "digest": digest_of_all(row["digest"] for row in each),
    }


def _is_there(lake: Lake, table: Table, batch_id: int, rows_digest: str) -> bool:
    """Return whether the dimension has the batch; LedgerError where it was one of other records.
    Where the log no longer tells of it, or other columns were declared then, a batch up to the
    newest one is taken as it is."""
    newest = ledger.newest_append(lake, table.name, lake.generation)
    if newest is None or newest.ledger is None or int(newest.ledger["batch"]) < batch_id:
        return False
    for commit in ledger.appends(lake.commits(table.name, None), lake.generation):
        if _batch(commit) == batch_id and commit.ledger:
            same_columns = commit.ledger["columns"] == columns(table)
            if same_columns and commit.ledger["digest"] != rows_digest:
                raise other_rows(table, batch_id, commit.ledger["digest"], rows_digest)
            break
    log.info("%s holds batch %d already", table.name, batch_id)
    return True


def _batch(commit: Commit) -> int:
    return int(commit.ledger["batch"]) if commit.ledger else -1
