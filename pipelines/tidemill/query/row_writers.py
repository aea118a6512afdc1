"""Who wrote a row of gold last: the refresh, from the ledgers, where several share an as_of from
the change data feed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from tidemill.config.settings import iso
from tidemill.features import FeatureView
from tidemill.lake import times
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger

Told = tuple[int, Mapping[str, Any], datetime]  # a version, its ledger, when it was committed


def last_writer(
    lake: Lake, view: FeatureView, key: Mapping[str, str], updated_at: datetime
) -> dict[str, Any] | None:
    """Return `{gold_version, refresh, batch, from_batch, mode, as_of, committed_at}` of the refresh
    that wrote the key's row last; None when no ledger of that time is kept.

    `updated_at` is the row's: the as_of of its last change.
    """
    as_of = iso(updated_at)
    commits = {
        version: (fields, at)
        for version, fields, at in (*_recorded(lake, view, updated_at), *_recent(lake, view))
        if fields["as_of"] == as_of and fields.get("changed") and ledger.UPKEEP not in fields
    }
    if not commits:
        return None
    version = _changed_in(lake, view, key, sorted(commits)) if len(commits) > 1 else min(commits)
    fields, at = commits[version]
    words = ("refresh", "batch", "from_batch", "mode", "as_of")
    said = {word: fields.get(word) for word in words}
    return {"gold_version": version, **said, "committed_at": iso(at)}


def _recent(lake: Lake, view: FeatureView) -> Iterator[Told]:
    for commit in lake.commits(lake.tables.of(view).gold.name):
        if commit.ledger:
            yield commit.version, commit.ledger, commit.at


def _recorded(lake: Lake, view: FeatureView, as_of: datetime) -> Iterator[Told]:
    """Yield what `tidemill_batches` tells, which is more than a log may keep, but trails it."""
    batches = lake.spark.table(lake.tables.batches.name)
    of_view = (F.col("view") == view.name) & (F.col("as_of") == times.at(as_of))
    for row in times.collect(batches.where(of_view).select("version", "ledger", "committed_at")):
        if row["ledger"]:
            yield row["version"], json.loads(row["ledger"]), row["committed_at"]


def _changed_in(lake: Lake, view: FeatureView, key: Mapping[str, str], versions: list[int]) -> int:
    """Return the newest of the versions that changed the row; the newest of all where the feed is
    no longer kept."""
    reader = lake.spark.read.option("readChangeFeed", "true")
    reader = reader.option("startingVersion", versions[0]).option("endingVersion", versions[-1])
    try:
        feed = reader.table(lake.tables.of(view).gold.name)
        for name, value in key.items():
            feed = feed.where(F.col(name) == F.lit(value).cast(view.types[name]))
        newest = feed.agg(F.max("_commit_version")).collect()[0][0]
    except PySparkException:
        newest = None
    return newest if newest in versions else versions[-1]
