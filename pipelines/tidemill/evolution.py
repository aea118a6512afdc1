"""What a changed view needs: nothing, other gold columns, a part of the buckets, or all of them.

    the bucket table says what it holds      tidemill.grain     keys, bucket, event time
    (its properties, of its last settling)   tidemill.partials  each partial, and what it is made of

    same grain, every partial held    gold        the next refresh writes gold with its new columns
    a partial missing                 features    `rebuild --features` adds it from the events
    another grain, or column type     bronze      `rebuild --from bronze` makes all again

A partial that no feature needs any more is let go: its column stays, empty from then on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import SparkSession

from tidemill import tables
from tidemill.binding import quoted
from tidemill.errors import LakeError
from tidemill.features import Feature, FeatureView
from tidemill.features.columns import partials_of
from tidemill.tables import GRAIN, PARTIALS, VERSION

Kind = Literal["none", "gold", "features", "bronze"]


@dataclass(frozen=True)
class Change:
    """How a view differs from its tables, and what that needs.

    `added` and `removed` are gold's columns; `missing` the partials that the buckets do not hold,
    `let_go` those that no feature needs any more; `features` the names, without windows, of the
    features that need the missing ones.
    """

    view: str
    kind: Kind
    why: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    let_go: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    def way(self, pipeline: str) -> str:
        """Yield what to do, in words."""
        return {
            "none": "nothing to do",
            "gold": "the next refresh writes gold with its new columns",
            "features": f"run `tidemill rebuild {pipeline} --features {','.join(self.features)}`",
            "bronze": f"run `tidemill rebuild {pipeline} --from bronze`",
        }[self.kind]


def add_columns(spark: SparkSession, table: tables.Table) -> None:
    """Add to the table, in one commit, the columns that a later version declared and it is without;
    its partition columns stay last."""
    names = spark.table(table.name).columns
    missing = [column for column in table.columns if column.added and column.name not in names]
    after = [n for n in names if n not in table.partitioned_by][-1:]
    added = []
    for column in missing:
        added.append(
            f"{column.name} {column.type} COMMENT {quoted(column.comment)} AFTER {after[0]}"
        )
        after = [column.name]
    if added:
        spark.sql(f"ALTER TABLE {table.name} ADD COLUMNS ({', '.join(added)})")


def change(spark: SparkSession, view: FeatureView) -> Change:
    """Yield how the view differs from its bucket and gold tables."""
    buckets, gold = tables.buckets(view), tables.features(view)
    found = {f.name: f.dataType.simpleString().lower() for f in spark.table(buckets.name).schema}
    told = properties(spark, buckets.name)
    held = _held(told, found, view)
    wanted = {partial.name: tables.made_of(view, partial) for partial in view.partials}
    missing = tuple(name for name, made in wanted.items() if held.get(name) != made)
    shown = [f.name for f in spark.table(gold.name).schema]
    columns = {
        "added": tuple(name for name in gold.column_names if name not in shown),
        "removed": tuple(name for name in shown if name not in gold.column_names),
        "missing": missing,
        "let_go": tuple(name for name in held if name not in wanted),
        "features": tuple(_stems(view, missing)),
    }
    kind, why = _kind(view, told, found, columns)
    return Change(view.name, kind, why, **columns)


def _kind(
    view: FeatureView,
    told: Mapping[str, str],
    found: Mapping[str, str],
    columns: Mapping[str, tuple[str, ...]],
) -> tuple[Kind, str]:
    if other := _other_columns(view, found):
        return "bronze", other
    if told.get(GRAIN, tables.grain(view)) != tables.grain(view):
        return "bronze", "keys, bucket or event time are others"
    if columns["missing"]:
        return "features", f"the buckets hold nothing for {', '.join(columns['missing'])}"
    if columns["added"] or columns["removed"] or columns["let_go"]:
        parts = (f"gold gets {n}" for n in columns["added"])
        gone = (f"gold loses {n}" for n in columns["removed"])
        return "gold", ", ".join((*parts, *gone)) or "buckets keep less"
    return "none", "the tables are as declared"


def _other_columns(view: FeatureView, found: Mapping[str, str]) -> str:
    """Say which column of the buckets has another type than declared, or is missing as a key."""
    wanted = {c.name: c.type.lower().replace(" ", "") for c in tables.buckets(view).columns}
    partials = {partial.name for partial in view.partials}
    for name, type_ in wanted.items():
        if name not in found and name not in partials:
            return f"the buckets have no column {name}"
        if name in found and found[name] != type_:
            return f"column {name} of the buckets is {found[name]}, declared {type_}"
    return ""


def _held(
    told: Mapping[str, str], found: Mapping[str, str], view: FeatureView
) -> Mapping[str, str]:
    """Yield what each partial that the buckets hold is made of; a table that does not say holds the
    columns it has."""
    if PARTIALS in told:
        held: dict[str, str] = json.loads(told[PARTIALS])
        return held
    return {p.name: tables.made_of(view, p) for p in view.partials if p.name in found}


def _stems(view: FeatureView, missing: tuple[str, ...]) -> dict[str, None]:
    """Yield the names of the features that need a missing partial, each once."""
    return {name_of(f): None for f in view.features if needs(view, f, missing)}


def needs(view: FeatureView, feature: Feature, partials: tuple[str, ...]) -> bool:
    """Tell whether a feature is made of one of the partials."""
    made = partials_of(feature, view.types, view.event_time)
    return any(partial.name in partials for partial in made)


def name_of(feature: Feature) -> str:
    """Yield the name of a feature without its windows and the values it is split by."""
    return "_".join(filter(None, (feature.stem, feature.aggregate)))


def settle(spark: SparkSession, view: FeatureView, found: Change) -> None:
    """Have the bucket table say that it holds what the view declares, and nothing else."""
    name = tables.buckets(view).name
    told, said = tables.told(view), properties(spark, name)
    if all(said.get(key) == value for key, value in told.items()):
        return
    required = {f.name for f in spark.table(name).schema if not f.nullable}
    for partial in found.let_go:
        if partial in required:
            spark.sql(f"ALTER TABLE {name} ALTER COLUMN {partial} DROP NOT NULL")
    hold(spark, view, said)


def hold(spark: SparkSession, view: FeatureView, said: Mapping[str, str]) -> None:
    """Have the bucket table say that it was made for the view, one version on from what it `said`
    in its properties."""
    version = str(int(said.get(VERSION, "0")) + 1)
    tell(spark, tables.buckets(view).name, {**tables.told(view), VERSION: version})


def properties(spark: SparkSession, name: str) -> dict[str, str]:
    """Yield a table's properties."""
    return {row.key: row.value for row in spark.sql(f"SHOW TBLPROPERTIES {name}").collect()}


def tell(spark: SparkSession, name: str, said: Mapping[str, str]) -> None:
    """Write properties of a table."""
    listed = ", ".join(f"{quoted(key)} = {quoted(value)}" for key, value in said.items())
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({listed})")


def refuse(pipeline: str, found: Change) -> None:
    """Raise LakeError when the tables cannot serve the view as they are."""
    if found.kind in ("features", "bronze"):
        raise LakeError(
            f"is declared otherwise than its tables were made: {found.why}",
            where=f"view {found.view}",
            expected=f"{found.way(pipeline)}; `tidemill plan {pipeline}` tells more",
        )
