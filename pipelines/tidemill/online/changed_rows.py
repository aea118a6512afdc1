"""What a publish brings: the rows of gold that changed between two versions, or all of one.

    feed       for each key that changed after `since`: its row at `until`, or that it was deleted
    snapshot   every row at `until`

Both have the keys, the features and `deleted`; one row per key.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import change_feed
from tidemill.lake.relations import Relation

if TYPE_CHECKING:
    import pyarrow

log = logging.getLogger(__name__)
DELETED = "deleted"


def feed(lake: Lake, view: FeatureView, since: int, until: int) -> DataFrame:
    """Return the newest change of each key in gold's change data feed after `since`, up to and
    with `until`.

    In one version a key may be deleted and inserted, by a RESTORE: then the inserted row counts.
    `until` is of a refresh, which changes a key once, so of that version alone all rows count.
    """
    gold = Relation(lake.tables.of(view).gold.name, changes=(since + 1, until))
    changes = gold.frame(lake.spark)
    deleted = F.col("_change_type") == "delete"
    changes = changes.where("_change_type <> 'update_preimage'").withColumn(DELETED, deleted)
    if until == since + 1:
        return changes.select(*view.keys, *_features(view), DELETED)
    newest = F.max_by(
        F.struct(*_features(view), DELETED), F.struct("_commit_version", ~F.col(DELETED))
    )
    of_keys = changes.groupBy(*view.keys).agg(newest.alias("newest"))
    return of_keys.select(*view.keys, "newest.*")


def feed_of_refresh(lake: Lake, view: FeatureView, version: int) -> pyarrow.Table | None:
    """Return what `feed` does of one version alone, in a folder and without Spark, which takes
    longer to plan than to read some thousand rows; None where Spark has to read it."""
    import pyarrow

    names = [*view.keys, *_features(view)]
    if (folder := lake.place.folder) is None:
        return None
    try:
        table = folder / lake.tables.of(view).gold.name
        changes = change_feed.of_folder(
            table, version, version, [*names, "_change_type"], "_change_type <> 'update_preimage'"
        )
    except Exception as error:  # deltalake has many
        log.info("Spark reads the changes of %s: %s", view.name, error)
        return None
    deleted = [kind == "delete" for kind in changes["_change_type"].to_pylist()]
    return changes.select(names).append_column(DELETED, pyarrow.array(deleted, pyarrow.bool_()))


def snapshot(lake: Lake, view: FeatureView, until: int, *, living: bool = False) -> DataFrame:
    """Return every row of gold at a version; with `living` none whose every feature is empty."""
    gold = Relation(lake.tables.of(view).gold.name, until).frame(lake.spark)
    if living:
        filled = (f"`{c.name}` IS DISTINCT FROM CAST({c.empty} AS {c.type})" for c in view.shown)
        gold = gold.where(" OR ".join(filled))
    return gold.select(*view.keys, *_features(view), F.lit(False).alias(DELETED))


def _features(view: FeatureView) -> Sequence[str]:
    return [column.name for column in view.shown]
