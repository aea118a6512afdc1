"""The stateful engine: a ring of minute buckets per key in Spark's own state, which tells changes.

    arrivals ──by key──► ring: buckets, values told last ──values that changed──► MERGE into gold
                          ▲
      as_of: the arrivals' own (event), or the minute's end by a timer (wall)

The state is Spark's, in RocksDB beside the checkpoint: one row per live key. A key that becomes
empty tells its empty values once, and its row is removed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.config import dataflow
from tidemill.errors import LedgerError
from tidemill.features import FeatureView
from tidemill.features.ring_buffer import Shape
from tidemill.lake import times
from tidemill.lake.catalog import Lake
from tidemill.lake.checkpoints import Checkpoint
from tidemill.lake.session.temporary_conf import temporary_conf
from tidemill.pipeline.batch_failures import of_batch
from tidemill.pipeline.gold import refresh as gold
from tidemill.pipeline.gold.refresh import Refreshed
from tidemill.pipeline.row_writes.frame_cache import cached
from tidemill.pipeline.stateful import state_input
from tidemill.pipeline.stateful.processor import Keeper, Names, ddl

log = logging.getLogger(__name__)

PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def emitted(arrived: DataFrame, view: FeatureView, follows: str) -> DataFrame:
    """Return the keys whose values changed, with `__as_of` in minutes and `__batch`, from a stream
    of arrivals; a row without keys tells both when no key changed."""
    keys, partials = list(view.keys), [partial.name for partial in view.partials]
    rows = arrived.select(
        *keys,
        F.expr("unix_seconds(bucket_start) DIV 60").alias("__minute"),
        *partials,
        F.expr("unix_seconds(as_of) DIV 60").alias("__as_of"),
        F.col("batch").alias("__batch"),
    )
    return rows.groupBy(*keys).transformWithState(
        Keeper(Shape.of(view), Names.of(view), by_timer=follows == "wall"),
        outputStructType=ddl(_emitted_columns(view)),
        outputMode="update",
        timeMode="ProcessingTime",
    )


def _emitted_columns(view: FeatureView) -> Iterator[tuple[str, str]]:
    yield from ((key, view.types[key]) for key in view.keys)
    yield from ((column.name, column.type) for column in view.values)
    yield from (("__as_of", "BIGINT"), ("__batch", "BIGINT"))


def merge_batch(batch: DataFrame, batch_id: int, *, lake: Lake, view_name: str) -> Refreshed | None:
    """One batch of state: merge what it emitted into gold; a first batch emits every live key."""
    lake, view = lake.within(batch.sparkSession), lake.pipeline.view(view_name)
    table = lake.tables.of(view).gold.name
    with (
        of_batch(lake, query_of(view), batch_id, table),
        cached(batch) as rows,
    ):  # read again, it would be computed from another state
        newest = rows.agg(F.max("__as_of"), F.max("__batch")).collect()[0]
        if newest[0] is None:
            return None
        as_of = times.of_epoch(newest[0] * 60)
        changed = rows.where(F.col(view.keys[0]).isNotNull())
        return gold.merge_emitted(
            lake, view, changed, as_of=as_of, batch=newest[1], whole=batch_id == 0
        )


def state_kept(spark: SparkSession, *, idle_batches: bool) -> AbstractContextManager[None]:
    """Let a query that starts now keep its state in RocksDB and, with `idle_batches`, have batches
    without rows too, in which timers fire."""
    settings = {
        "spark.sql.streaming.stateStore.providerClass": PROVIDER,
        "spark.sql.streaming.noDataMicroBatches.enabled": str(idle_batches).lower(),
    }
    return temporary_conf(spark, settings)


def claim(lake: Lake, view: FeatureView) -> None:
    """Take the checkpoint of the view's state, which is made anew where it cannot be built on.

    State and arrivals follow from the buckets. So when either is not there, gold is not as the
    state left it (another engine's refresh, a RESTORE, another definition), or the buckets are not
    as they arrived, both begin again, and the first batch is compared with the whole of gold. A
    checkpoint of something else is refused.
    """
    checkpoint = lake.checkpoint(query_of(view))
    if why := _why_anew(lake, view, checkpoint):
        log.info("the state of %s is made anew: %s", view.name, why)
        checkpoint.forget()
        state_input.begin_anew(lake, view)
    identity = {
        "pipeline": lake.pipeline.pipeline,
        "query": query_of(view),
        "kind": "delta",
        "table": lake.tables.of(view).arrivals.name,
        "clock": lake.pipeline.clock,
        "generation": lake.generation,
    }
    checkpoint.claim(identity, lambda: False)


def _why_anew(lake: Lake, view: FeatureView, checkpoint: Checkpoint) -> str | None:
    state = lake.gold_state(view)
    if not state.kept_by_state:
        return state.recompute_reason or "gold is not as the state left it"
    if not checkpoint.has_read:
        return "there is none"
    try:
        buckets = lake.commits(lake.tables.of(view).buckets.name)
        state_input.check(lake, view, state_input.arrived(lake, view), buckets)
    except LedgerError as error:
        return error.message
    return None


def query_of(view: FeatureView) -> str:
    """Return the name of the query that keeps the view's state."""
    return dataflow.STATE.of_view(view.name).checkpoint
