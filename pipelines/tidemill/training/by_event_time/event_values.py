"""The features of keys at edges from the buckets: what was true then, by all that is known now.

    edges ──┬─ running_sums  terms that add up       ──┐
            └─ range_terms   the others, by ranges   ──┴─ event_values ──► features

A value is the one that a refresh to that edge would give. Buckets are read at one version, of the
edges' keys alone and of the hours that their windows reach.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.features import FeatureView
from tidemill.features.columns import Term
from tidemill.features.windows import BEGINNING_SECONDS
from tidemill.lake.catalog import Lake
from tidemill.lake.parameters import ask
from tidemill.lake.statements import spine_terms, statement
from tidemill.pipeline.silver import minute_buckets
from tidemill.training.by_event_time import running_sums
from tidemill.training.by_event_time.running_sums import WindowSum

SECOND = timedelta(seconds=1)
_FEW_KEYS = 200_000  # so many go to every task; more are joined by a shuffle
_BIN_ROWS, _MOST_BINS = 1_000_000, 2_000  # bucket rows of a part of the keys; parts


def values(
    lake: Lake, view: FeatureView, edges: DataFrame, first: datetime, last: datetime, keys: int
) -> DataFrame:
    """Return the view's features at each of the edges, `{keys, __edge, features}`.

    `edges` are distinct, `__edge` in microseconds since 1970, from `first` to `last`; about so many
    different `keys` are in them.
    """
    in_seconds = edges.withColumn("__edge", F.expr("__edge DIV 1000000"))
    numbered = _numbered(lake, view, in_seconds, keys)
    rows = _bucket_rows(lake, view, numbered, first, last)
    frames = {
        f"{view.name}_spine_edges": in_seconds,
        f"{view.name}_spine_keys": numbered,
        f"{view.name}_spine_buckets": rows,
    }
    terms = spine_terms.needed(view)
    added = [term for term in terms if spine_terms.adds_up(term)]
    # Of every edge there are sums, so without other terms the edges need not be joined.
    of_terms = _sums(lake, view, frames, added) if added else in_seconds
    if len(added) < len(terms):
        args = {"oldest": _oldest_day(lake, view)}
        found = ask(lake.spark, statement("range_terms", view), args, frames)
        of_terms = of_terms.join(found, [*view.keys, "__edge"], "left")
    text = statement("event_values", view)
    found = ask(lake.spark, text, {}, {f"{view.name}_edge_terms": of_terms})
    return found.withColumn("__edge", F.expr("__edge * 1000000"))


def _oldest_day(lake: Lake, view: FeatureView) -> int:
    """Return the day since 1970 of the oldest bucket, asked for only where a lifetime would else
    look at each day of centuries."""
    if not view.has_lifetimes:
        return -(2**31)
    rows = lake.spark.table(lake.tables.of(view).buckets.name)
    ours = rows.where(F.unix_seconds("bucket_hour") > BEGINNING_SECONDS)
    oldest = ours.agg(F.unix_seconds(F.min("bucket_hour"))).collect()[0][0]
    return (oldest or 0) // 86_400


def _sums(
    lake: Lake,
    view: FeatureView,
    frames: Mapping[str, DataFrame],
    terms: Sequence[Term],
) -> DataFrame:
    """Return the terms that add up at each edge; of some keys at a time, as many as their rows."""
    rows = ask(lake.spark, statement("running_rows", view), {}, frames)
    numbered = frames[f"{view.name}_spine_keys"]
    wanted = [window_sum(term) for term in terms]
    schema = ", ".join(
        ["__key BIGINT, __moment BIGINT", *(f"{one.name} {one.type}" for one in wanted)]
    )
    placed = rows.withColumn("__place", F.expr(running_sums.PLACE))
    placed = placed.drop("__key", "__moment", "__is_edge")
    parts = placed.repartition(_bins(lake, view), F.expr(running_sums.KEY_OF_PLACE))
    found = parts.mapInArrow(partial(running_sums.sums, wanted=wanted), schema)
    return found.join(numbered, "__key").withColumnRenamed("__moment", "__edge").drop("__key")


def window_sum(term: Term) -> WindowSum:
    """Return the sum that a term is."""
    window = term.window
    start = spine_terms.start_name(window) if window.period else window.reach // SECOND
    end = window.offset // SECOND
    digits = re.fullmatch(r"DECIMAL\((\d+), ?(\d+)\)", term.partial.type)
    of_decimal = (int(digits[1]), int(digits[2])) if digits else (None, 0)
    return WindowSum(spine_terms.name_of(term), term.partial.name, start, end, *of_decimal)


def _bins(lake: Lake, view: FeatureView) -> int:
    """Return into how many parts the keys go, so that a part's rows fit the memory of a task; as
    many for each core."""
    rows = lake.rows(lake.tables.of(view).buckets.name)
    least = int(lake.spark.conf.get("spark.sql.shuffle.partitions") or 1)
    return -(-max(1, min(rows // _BIN_ROWS, _MOST_BINS)) // least) * least


def _numbered(lake: Lake, view: FeatureView, edges: DataFrame, keys: int) -> DataFrame:
    """Return the keys of the edges, each with a number; to be sent to every task where they are
    few."""
    frames = {f"{view.name}_spine_edges": edges}
    numbered = ask(lake.spark, statement("spine_keys", view), {}, frames)
    return F.broadcast(numbered) if keys <= _FEW_KEYS else numbered


def _bucket_rows(
    lake: Lake, view: FeatureView, keys: DataFrame, first: datetime, last: datetime
) -> DataFrame:
    """Return the bucket rows that a window may hold, at the table's newest version."""
    bucketed, name = minute_buckets.bucketed(lake, view), lake.tables.of(view).buckets.name
    version = bucketed.commits[0].version
    known = lake.spark.read.option("versionAsOf", version).table(name)
    frames = {f"{view.name}_known_buckets": known, f"{view.name}_spine_keys": keys}
    args = {"first": first - view.horizon, "end": last, "batch": bucketed.batch}
    return ask(lake.spark, statement("spine_buckets", view), args, frames)
