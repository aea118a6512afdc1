"""What gold held for one key, version by version, from its change data feed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlglot.expressions as exp

from tidemill.config.settings import iso
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.relations import Relation
from tidemill.query.gold_history import versions

MOST = 100  # newest versions of gold that are looked through
_KEPT = ("insert", "update_postimage", "delete")


def key_changes(lake: Lake, view: FeatureView, key: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return `{gold_version, as_of, values}` of each of gold's newest versions that changed the
    key, oldest first; `values` is None where the row was removed. Keys are given as text."""
    history = {each.version: each for each in versions(lake, view)[:MOST]}
    if not history:
        return []
    gold = lake.tables.of(view).gold.name
    changes = Relation(gold, changes=(min(history), max(history)))
    names = [column.name for column in view.shown]
    columns = [exp.column(name, quoted=True) for name in (*names, "_change_type")]
    version = exp.column("_commit_version")
    is_key = [
        exp.cast(exp.column(name, quoted=True), "string").eq(exp.Placeholder(this=f"key_{name}"))
        for name in view.keys
    ]
    kept = exp.column("_change_type").isin(*map(exp.Literal.string, _KEPT))
    select = exp.select(*columns, version).from_("changes").where(*is_key, kept).order_by(version)
    values = {f"key_{name}": value for name, value in key.items()}
    rows = lake.ask(select.sql(dialect="spark"), values, {"changes": changes}).rows
    return [
        {
            "gold_version": row["_commit_version"],
            "as_of": iso(history[row["_commit_version"]].as_of),
            "values": None
            if row["_change_type"] == "delete"
            else {name: row[name] for name in names},
        }
        for row in rows
        if row["_commit_version"] in history
    ]
