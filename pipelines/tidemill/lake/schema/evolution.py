"""What a changed view needs: nothing, other gold columns, a part of the buckets, or all of them.

    the bucket table says what it holds      tidemill.grain     keys, bucket, event time
    (its properties, of its last settling)   tidemill.partials  each partial, and what it is made of

    same grain, every partial held    gold        the next refresh writes gold with its new columns
    buckets needed that expired       since       `rebuild --since` makes them from the events
    a partial missing                 features    `rebuild --features` adds it from the events
    both, or buckets lack events      views       `rebuild --views` makes them from the events
    another grain, or column type,    bronze      `rebuild --from bronze` makes all again
    no feature held, its events
    refused as of an unknown value,
    or made of other dimensions

A partial that no feature needs any more is let go: its column stays, empty from then on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from pyspark.sql import SparkSession

from tidemill.config.settings import instant, iso
from tidemill.errors import LakeError
from tidemill.features import Feature, FeatureView
from tidemill.features.columns import partials_of
from tidemill.features.feature import RATIO
from tidemill.features.windows import BEGINNING
from tidemill.lake import provenance
from tidemill.lake.catalog import Lake
from tidemill.lake.parameters import quoted
from tidemill.lake.provenance import DECLARED, GRAIN, PARTIALS, VERSION, grain, made_of
from tidemill.lake.schema import accepted_values, enrichment, expired_before
from tidemill.lake.schema.table_properties import tell as tell
from tidemill.lake.tables import Column, Table

Kind = Literal["none", "gold", "since", "features", "views", "bronze"]


@dataclass(frozen=True)
class Change:
    """How a view differs from its tables, and what that needs.

    `added` and `removed` are gold's columns; `missing` the partials that the buckets do not hold,
    `let_go` those that no feature needs any more; `features` the names, without windows, of the
    features that need the missing ones, of several views together (see `changes`); `since` the hour
    from which on buckets are needed that expiry has removed.
    """

    view: str
    kind: Kind
    why: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    let_go: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    since: str | None = None

    def way(self, pipeline: str) -> str:
        """Return what to do, in words."""
        return {
            "none": "nothing to do",
            "gold": "the next refresh writes gold with its new columns",
            "since": f"run `tidemill rebuild {pipeline} --since {self.since}`",
            "features": f"run `tidemill rebuild {pipeline} --features {','.join(self.features)}`",
            "views": f"run `tidemill rebuild {pipeline} --views {self.view}`",
            "bronze": f"run `tidemill rebuild {pipeline} --from bronze`",
        }[self.kind]


def add_columns(lake: Lake, table: Table) -> None:
    """Add to the table, in one commit, the columns that a later version declared and it is without;
    its partition columns stay last."""
    names = lake.metadata(table.name).types
    missing = [column for column in table.columns if column.added and column.name not in names]
    after = [n for n in names if n not in table.partitioned_by][-1:]
    added = []
    for column in missing:
        added.append(
            f"{column.name} {column.type} COMMENT {quoted(column.comment)} AFTER {after[0]}"
        )
        after = [column.name]
    if added:
        lake.spark.sql(f"ALTER TABLE {table.name} ADD COLUMNS ({', '.join(added)})")


def append_columns(spark: SparkSession, name: str, columns: Sequence[Column]) -> None:
    """Add columns, null in every row, at the end of a table, in one commit; none makes no
    commit."""
    if columns:
        listed = ", ".join(f"{c.name} {c.type} COMMENT {quoted(c.comment)}" for c in columns)
        spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({listed})")


def allow_nulls(lake: Lake, table: Table) -> None:
    """Let the columns be null that a later version declared so."""
    required = lake.metadata(table.name).required
    for column in table.columns:
        if column.nullable and column.name in required:
            lake.spark.sql(f"ALTER TABLE {table.name} ALTER COLUMN {column.name} DROP NOT NULL")


def change(lake: Lake, view: FeatureView) -> Change:
    """Return how a view of the lake's pipeline differs from its bucket and gold tables, and from
    the values that the events table has taken. Gold that does not exist lacks every column."""
    declared = lake.tables.of(view)
    buckets, gold = declared.buckets, declared.gold
    said = lake.metadata(buckets.name)
    types, table_properties = said.types, said.properties
    held = _held(table_properties, types, view)
    wanted = {partial.name: made_of(view, partial) for partial in view.partials}
    retyped = _retyped(table_properties, view)
    missing = tuple(n for n, made in wanted.items() if held.get(n) != made or n in retyped)
    shown = lake.metadata(gold.name).types if lake.has(gold.name) else {}
    columns = {
        "added": tuple(c.name for c in gold.columns if c.name not in shown and not c.added),
        "removed": tuple(name for name in shown if name not in gold.column_names),
        "missing": missing,
        "let_go": tuple(name for name in held if name not in wanted),
    }
    kind, why = _kind(view, buckets, table_properties, types, columns)
    differs = Change(
        view.name,
        kind,
        why,
        columns["added"],
        columns["removed"],
        missing,
        columns["let_go"],
        tuple(_stems(view, missing)),
    )
    if kind == "bronze":
        return differs
    if why := enrichment.difference(lake) or accepted_values.refused_value(lake, view):
        return replace(differs, kind="bronze", why=why)
    return _with_expired(lake, buckets.name, view, table_properties, differs)


def changes(lake: Lake, views: Iterable[FeatureView]) -> list[Change]:
    """Return how each of the views differs, with the features that all of them lack together: one
    rebuild makes them, and is refused where one is not named."""
    found = [change(lake, view) for view in views]
    lacking = [each for each in found if each.kind == "features"]
    names = tuple(dict.fromkeys(name for each in lacking for name in each.features))
    return [replace(each, features=names) if each in lacking else each for each in found]


def _with_expired(
    lake: Lake,
    buckets: str,
    view: FeatureView,
    table_properties: Mapping[str, str],
    differs: Change,
) -> Change:
    """Return the change of a view of which windows may need buckets that have expired; only another
    declaration than the tables' last can."""
    if table_properties.get(DECLARED) == json.dumps(view.words()):
        return differs
    if (lost := expired_before.lost_since(lake, buckets, view, table_properties)) is None:
        return differs
    needed, before = lost
    missing = f"those before {iso(before)} expired or were not made"
    why = f"the windows need buckets from {iso(needed)} on, and {missing}"
    if differs.kind == "features":  # neither of the two rebuilds can begin before the other
        return replace(differs, kind="views", why=f"{differs.why}, and {why}")
    return replace(differs, kind="since", why=why, since=f"{needed:%Y-%m-%dT%H:%M}")


def _kind(
    view: FeatureView,
    buckets: Table,
    table_properties: Mapping[str, str],
    types: Mapping[str, str],
    columns: Mapping[str, tuple[str, ...]],
) -> tuple[Kind, str]:
    if other := _other_columns(view, buckets, types):
        return "bronze", other
    if table_properties.get(GRAIN, grain(view)) != grain(view):
        return "bronze", "keys, bucket or event time are others"
    if columns["missing"] and not any(
        held(view, feature, columns["missing"]) for feature in view.features
    ):
        return "bronze", "the buckets hold nothing that the view declares"
    if columns["missing"]:
        return "features", f"the buckets hold nothing for {', '.join(columns['missing'])}"
    if columns["added"] or columns["removed"] or columns["let_go"]:
        parts = (f"gold gets {n}" for n in columns["added"])
        gone = (f"gold loses {n}" for n in columns["removed"])
        return "gold", ", ".join((*parts, *gone)) or "buckets keep less"
    return "none", "the tables are as declared"


def _other_columns(view: FeatureView, buckets: Table, types: Mapping[str, str]) -> str:
    """Return which column of the buckets has another type than declared, or is missing as a key."""
    wanted = {c.name: c.type.lower().replace(" ", "") for c in buckets.columns}
    partials = {partial.name for partial in view.partials}
    for name, type_ in wanted.items():
        if name not in types and name not in partials:
            return f"the buckets have no column {name}"
        if name in types and types[name] != type_:
            return f"column {name} of the buckets is {types[name]}, declared {type_}"
    return ""


def _held(
    table_properties: Mapping[str, str], types: Mapping[str, str], view: FeatureView
) -> Mapping[str, str]:
    """Return what each partial that the buckets hold is made of; a table that does not say holds
    the columns it has."""
    if PARTIALS in table_properties:
        held: dict[str, str] = json.loads(table_properties[PARTIALS])
        return held
    return {p.name: made_of(view, p) for p in view.partials if p.name in types}


def _retyped(table_properties: Mapping[str, str], view: FeatureView) -> set[str]:
    """Return the partials that read a selected column which had another type when the table was
    last declared: a partial's hash has the column's expression alone."""
    selected: dict[str, dict[str, str]] = {}
    if DECLARED in table_properties:
        selected = json.loads(table_properties[DECLARED]).get("select", {})
    others = [n for n, one in view.select.items() if one.type not in selected.get(n, {one.type})]
    return {p.name for p in view.partials if any(name in p.bucket for name in others)}


def _stems(view: FeatureView, missing: tuple[str, ...]) -> dict[str, None]:
    """Return the names of the features that need a missing partial, each once."""
    return {name_of(f): None for f in view.features if needs(view, f, missing)}


def held(view: FeatureView, feature: Feature, missing: tuple[str, ...]) -> Feature | None:
    """Return a feature as far as the buckets hold it, with those of the values it is split by of
    which no partial is missing; None where nothing is left, and for a ratio."""
    if feature.aggregate == RATIO:
        return None
    if not needs(view, feature, missing):
        return feature
    each = (feature.model_copy(update={"values": (value,)}) for value in feature.values)
    values = tuple(one.values[0] for one in each if not needs(view, one, missing))
    return feature.model_copy(update={"values": values}) if values else None


def needs(view: FeatureView, feature: Feature, partials: tuple[str, ...]) -> bool:
    """Return whether a feature is made of one of the partials."""
    made = partials_of(feature, view.types, view.event_time)
    return any(partial.name in partials for partial in made)


def name_of(feature: Feature) -> str:
    """Return the name of a feature without its windows and the values it is split by."""
    return "_".join(filter(None, (feature.stem, feature.aggregate)))


def settle(lake: Lake, view: FeatureView, view_change: Change) -> None:
    """Have the view's bucket table say that it holds what the view declares, and nothing else."""
    buckets = lake.tables.of(view).buckets.name
    declaration, stands = provenance.told(view), lake.metadata(buckets)
    if all(stands.properties.get(key) == value for key, value in declaration.items()):
        return
    let_go(lake, view, view_change)
    hold(lake.spark, buckets, view, stands.properties)


def let_go(lake: Lake, view: FeatureView, view_change: Change) -> None:
    """Let the columns of the view's bucket table be null that no feature needs any more."""
    buckets = lake.tables.of(view).buckets.name
    required = lake.metadata(buckets).required
    for partial in view_change.let_go:
        if partial in required:
            lake.spark.sql(f"ALTER TABLE {buckets} ALTER COLUMN {partial} DROP NOT NULL")


def hold(
    spark: SparkSession,
    buckets: str,
    view: FeatureView,
    said: Mapping[str, str],
    besides: Mapping[str, str] | None = None,
) -> None:
    """Have the bucket table, by name, say that it was made for the view, one version on from what
    it `said` in its properties; and other properties `besides`, in the same commit."""
    version = str(int(said.get(VERSION, "0")) + 1)
    table_properties = {**provenance.told(view), VERSION: version, **(besides or {})}
    tell(spark, buckets, table_properties)


def refuse(pipeline: str, view_change: Change, filled_from: datetime | None = None) -> None:
    """Raise LakeError when the tables cannot serve the view as they are; buckets that a rebuild is
    about to make again, from a time on, are not missed."""
    if filled_from and (
        (view_change.kind == "views" and filled_from == BEGINNING)
        or (view_change.since and filled_from <= instant(view_change.since, where=view_change.view))
    ):
        return
    if view_change.kind in ("since", "features", "views", "bronze"):
        raise LakeError(
            f"is declared otherwise than its tables were made: {view_change.why}",
            where=f"view {view_change.view}",
            expected=f"{view_change.way(pipeline)}; `tidemill plan {pipeline}` tells more",
        )
