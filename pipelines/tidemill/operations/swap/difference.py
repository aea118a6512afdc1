"""How the other generation's features differ from gold, by feature and by key.

    gold at its newest version, of as_of T ──┐
                                             ├──by keys──► which features are others, and examples
    the other generation's features at T   ──┘             (computed; nothing is written)

Both are compared at gold's as_of, so that a difference is one of the definition or of the data, and
not of the time. Features of one name and type are compared; a sketch by the checksum of what it was
made of; a key without a row has the empty values. A view that the living lake has no gold of is
all of it new, at the other generation's as_of.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import iso
from tidemill.features import FeatureView
from tidemill.features.columns import Column
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger, metadata
from tidemill.lake.parameters import ask
from tidemill.lake.statements import statement
from tidemill.operations.swap import other_generation
from tidemill.pipeline.connection import Opening
from tidemill.pipeline.row_writes.frame_cache import cached
from tidemill.pipeline.silver import minute_buckets


def differences(
    opening: Opening, definition: PipelineDefinition, examples: int
) -> list[dict[str, Any]]:
    """Return for each view how many keys differ, by feature, what each generation has alone, and
    so many keys as examples, with both values."""
    lake, root = other_generation.read(opening, definition), opening.place.folder
    assert root is not None
    return [_of_view(lake, view, root, examples) for view in definition.views]


def _of_view(lake: Lake, view: FeatureView, root: Path, examples: int) -> dict[str, Any]:
    name = lake.tables.of(view).gold.name
    standing = _standing(root / name)
    if standing is None:
        return _of_new(lake, view)
    as_of, version = standing
    types = metadata.of_folder(root / name).types
    both = [c for c in view.shown if types.get(c.name) == c.type.lower().replace(" ", "")]
    args = {"as_of": ledger.instant(as_of), "batch": minute_buckets.bucketed(lake, view).batch}
    fresh = ask(lake.spark, statement("features", view), args).alias("fresh")
    reader = lake.spark.read.format("delta").option("versionAsOf", version)
    gold = reader.load(str(root / name)).alias("gold")
    same = [F.col(f"fresh.{key}") == F.col(f"gold.{key}") for key in view.keys]
    joined = fresh.join(gold, same, "full_outer")
    keys = [F.coalesce(f"fresh.{key}", f"gold.{key}").alias(key) for key in view.keys]
    values = [column for c in both for column in _values(view, c, types)]
    here, there = F.col(f"gold.{view.keys[0]}"), F.col(f"fresh.{view.keys[0]}")
    sides = (here.isNotNull().alias("__gold"), there.isNotNull().alias("__fresh"))
    rows = joined.select(*keys, *sides, *values)
    any_other = " OR ".join(f"`__other_{c.name}`" for c in both) or "FALSE"
    with cached(rows.withColumn("__other", F.expr(any_other))) as found:
        counts = found.agg(
            F.count("*").alias("keys"),
            F.count_if("__other").alias("different"),
            F.count_if(F.expr("__other AND NOT __fresh")).alias("gone"),
            F.count_if(F.expr("__other AND NOT __gold")).alias("new"),
            *(F.count_if(f"__other_{c.name}").alias(f"__n_{c.name}") for c in both),
        ).collect()[0]
        shown = _examples(found, view, both, examples)
    features = [{"feature": c.name, "different": counts[f"__n_{c.name}"]} for c in both]
    mine, theirs = {c.name for c in view.shown}, set(types) - {*view.keys, "updated_at"}
    return {
        "view": view.name,
        "as_of": as_of,
        "gold_version": version,
        "other_as_of": _as_of(lake, view),
        "keys": counts["keys"],
        "different": counts["different"],
        "only_in_gold": counts["gone"],
        "only_in_other": counts["new"],
        "features": features,
        "added": sorted(mine - theirs),
        "removed": sorted(n for n in theirs - mine if not n.startswith("__")),
        "changed_type": sorted((mine & theirs) - {c.name for c in both}),
        "examples": shown,
    }


def _of_new(lake: Lake, view: FeatureView) -> dict[str, Any]:
    """Return the same of a view that the living lake has no gold of."""
    name, as_of = lake.tables.of(view).gold.name, _as_of(lake, view)
    keys = lake.spark.table(name).count() if as_of else 0
    return {
        "view": view.name,
        "as_of": as_of,
        "gold_version": None,
        "other_as_of": as_of,
        "keys": keys,
        "different": keys,
        "only_in_gold": 0,
        "only_in_other": keys,
        "features": [],
        "added": sorted(column.name for column in view.shown),
        "removed": [],
        "changed_type": [],
        "examples": [],
    }


def _as_of(lake: Lake, view: FeatureView) -> str | None:
    """Return the as_of of the other generation's own gold; what was living has none."""
    has_gold = lake.has(lake.tables.of(view).gold.name)
    as_of = lake.gold_state(view).as_of if has_gold else None
    return iso(as_of) if as_of else None


def _standing(gold: Path) -> tuple[str, int] | None:
    """Return the as_of and the version of gold's newest ledger, None without one."""
    log = gold / "_delta_log"
    for commit in ledger.of_log(log, None) if log.is_dir() else ():
        if commit.ledger and commit.ledger.get("as_of"):
            return str(commit.ledger["as_of"]), commit.version
    return None


def _values(view: FeatureView, column: Column, types: Any) -> list[Any]:
    """Return both values of a feature, and whether they are others."""
    shown = [
        F.expr(f"coalesce({side}.{column.name}, {column.empty})").alias(f"__{side}_{column.name}")
        for side in ("gold", "fresh")
    ]
    witness = column.witness and f"__{column.witness.name}"
    if witness and witness in types:
        empty = column.witness.partial.part.empty if column.witness else "NULL"
        pair = [f"coalesce({side}.{witness}, {empty})" for side in ("gold", "fresh")]
    else:
        pair = [f"coalesce({side}.{column.name}, {column.empty})" for side in ("gold", "fresh")]
    other = F.expr(f"{pair[0]} IS DISTINCT FROM {pair[1]}").alias(f"__other_{column.name}")
    return [*shown, other]


def _examples(
    found: DataFrame, view: FeatureView, columns: Sequence[Column], most: int
) -> list[dict[str, Any]]:
    rows = found.where("__other").orderBy(*view.keys).limit(most).toArrow().to_pylist()
    return [
        {
            "key": {key: row[key] for key in view.keys},
            "values": {
                c.name: {
                    "gold": row[f"__gold_{c.name}"],
                    "other": row[f"__fresh_{c.name}"],
                }
                for c in columns
                if row[f"__other_{c.name}"]
            },
        }
        for row in rows
    ]
