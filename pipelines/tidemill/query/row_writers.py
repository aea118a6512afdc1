"""Who wrote a row of gold last: the refresh, from the ledgers, where several share an as_of from
the change data feed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from pyspark.errors import PySparkException

from tidemill.config.settings import iso
from tidemill.errors import TidemillError
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.relations import Relation
from tidemill.lake.statements import statement

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
    for row in lake.ask(statement("refreshes_at", view), {"as_of": as_of}).rows:
        if row["ledger"]:
            yield row["version"], json.loads(row["ledger"]), row["committed_at"]


def _changed_in(lake: Lake, view: FeatureView, key: Mapping[str, str], versions: list[int]) -> int:
    """Return the newest of the versions that changed the row; the newest of all where the feed is
    no longer kept."""
    feed = Relation(lake.tables.of(view).gold.name, changes=(versions[0], versions[-1]))
    named = {f"key_{name}": value for name, value in key.items()}
    try:
        rows = lake.ask(statement("key_changed", view), named, {"gold_changes": feed}).rows
        newest = rows[0]["version"]
    except (PySparkException, TidemillError):
        newest = None
    return newest if newest in versions else versions[-1]
