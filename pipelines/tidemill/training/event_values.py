"""The features of keys at edges from the buckets: what was true then, by all that is known now.

    edges ──┬─ prefix_sums   terms that add up       ──┐
            └─ range_terms   the others, by ranges   ──┴─ event_values ──► features

A value is the one that a refresh to that edge would give. Buckets are read at one version, of the
edges' keys alone and of the hours that their windows reach.
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.parameters import ask
from tidemill.lake.statements import spine_terms, statement
from tidemill.pipeline.silver import minute_buckets

_FEW_KEYS = 200_000  # so many go to every task; more are joined by a shuffle


def values(
    lake: Lake, view: FeatureView, edges: DataFrame, first: datetime, last: datetime, keys: int
) -> DataFrame:
    """Return the view's features at each of the edges, `{keys, __edge, features}`.

    `edges` are distinct, `__edge` in microseconds since 1970, from `first` to `last`; about so many
    different `keys` are in them.
    """
    rows = _bucket_rows(lake, view, edges, first, last, keys)
    in_seconds = edges.withColumn("__edge", F.expr("__edge DIV 1000000"))
    frames = {f"{view.name}_spine_edges": in_seconds, f"{view.name}_spine_buckets": rows}
    terms = spine_terms.needed(view)
    names = ["prefix_sums"] if any(map(spine_terms.adds_up, terms)) else []
    names += ["range_terms"] if not all(map(spine_terms.adds_up, terms)) else []
    at = [*view.keys, "__edge"]
    of_terms = in_seconds
    for name in names:
        found = ask(lake.spark, statement(name, view), {}, frames)
        # Of every edge there are sums, so without other terms the edges need not be joined again.
        of_terms = found if names == ["prefix_sums"] else of_terms.join(found, at, "left")
    text = statement("event_values", view)
    found = ask(lake.spark, text, {}, {f"{view.name}_edge_terms": of_terms})
    return found.withColumn("__edge", F.expr("__edge * 1000000"))


def _bucket_rows(
    lake: Lake, view: FeatureView, edges: DataFrame, first: datetime, last: datetime, keys: int
) -> DataFrame:
    """Return the bucket rows that a window may hold, at the table's newest version."""
    bucketed, name = minute_buckets.bucketed(lake, view), lake.tables.of(view).buckets.name
    version = bucketed.commits[0].version
    known = lake.spark.read.option("versionAsOf", version).table(name)
    of_spine = edges.select(*view.keys).distinct()
    frames = {
        f"{view.name}_known_buckets": known,
        f"{view.name}_spine_edges": F.broadcast(of_spine) if keys <= _FEW_KEYS else of_spine,
    }
    args = {"first": first - view.horizon, "end": last, "batch": bucketed.batch}
    return ask(lake.spark, statement("spine_buckets", view), args, frames)
