"""What gold held for one key, version by version, from its change data feed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidemill.config.settings import iso
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.relations import Relation
from tidemill.lake.statements import statement
from tidemill.query.gold_history import versions

MOST = 100  # newest versions of gold that are looked through


def key_changes(lake: Lake, view: FeatureView, key: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return `{gold_version, as_of, values}` of each of gold's newest versions that changed the
    key, oldest first; `values` is None where the row was removed. Keys are given as text."""
    history = {each.version: each for each in versions(lake, view)[:MOST]}
    if not history:
        return []
    feed = Relation(lake.tables.of(view).gold.name, changes=(min(history), max(history)))
    named = {f"key_{name}": value for name, value in key.items()}
    rows = lake.ask(statement("key_versions", view), named, {"gold_changes": feed}).rows
    return [
        {
            "gold_version": row["version"],
            "as_of": iso(history[row["version"]].as_of),
            "values": None if row["removed"] else {c.name: row[c.name] for c in view.shown},
        }
        for row in rows
        if row["version"] in history
    ]
