"""Rebuilds that were stopped half-way: where they are recorded, and what other commands do then.

    --from bronze     gold's newest ledger is of an earlier generation than silver: `run` finishes
                      it, other writers refuse the lake
    --keys, --since   a staging table (see `staging`), which no other command reads
    --features        a property of the bucket table; the view that needs them is refused (see
                      `evolution`)

Version 0.1 replaced the rows of keys and since day by day in the bucket table itself, and recorded
the last day in that property. Each day stands for itself there; what was made of the table before
does not, and is made again when the lake is next opened for writing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import Any

from tidemill.errors import LakeError
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger, writer
from tidemill.lake.integrity import coverage
from tidemill.lake.schema import table_properties

log = logging.getLogger(__name__)

STATE = "tidemill.rebuild"  # the property
Rebuild = dict[str, Any]


def state(lake: Lake, table: str) -> Rebuild:
    """Return what a table's property records of a rebuild, empty without one."""
    text = lake.metadata(table).properties.get(STATE)
    rebuild: Rebuild = json.loads(text) if text else {}
    return rebuild


def stagings(lake: Lake, view: FeatureView) -> list[Rebuild]:
    """Return what the staging tables of a view record, each with the `table`'s name."""
    prefix = f"{view.name}_rebuild_".lower()
    rebuilds = [state(lake, name) for name in lake.names() if name.lower().startswith(prefix)]
    return [each for each in rebuilds if each.get("view") == view.name]


def of_view(lake: Lake, view: FeatureView) -> list[dict[str, str]]:
    """Return the unfinished rebuilds of a part of the view's buckets: `{of, table, way}`."""
    rebuilds = [
        {"of": "keys or since", "table": each["table"], "way": "the same `tidemill rebuild` again"}
        for each in stagings(lake, view)
    ]
    name = lake.tables.of(view).buckets.name
    recorded = state(lake, name)
    if "through" in recorded:
        way = "any command that writes makes gold again; then the same `tidemill rebuild` again"
        rebuilds.append({"of": "keys or since", "table": name, "way": way})
    elif recorded:
        way = "the same `tidemill rebuild --features` again"
        rebuilds.append({"of": "features", "table": name, "way": way})
    return rebuilds


def end_replaced_in_place(lake: Lake, view: FeatureView) -> None:
    """Have gold, hours and arrivals made again where version 0.1 replaced bucket rows half-way.

    One commit drops the property and carries a ledger that says so.
    """
    name = lake.tables.of(view).buckets.name
    recorded = state(lake, name)
    if "through" not in recorded:
        return
    through = recorded["through"]
    log.warning(
        "%s: a rebuild was stopped after %s: what was made of it is made again; later days are as "
        "they were, the same rebuild makes them again",
        name,
        through,
    )
    newest = ledger.newest_append(lake, name, lake.generation)
    fields = {
        "generation": lake.generation,
        "batch": int((newest.ledger or {})["batch"]) if newest else -1,
        ledger.UPKEEP: f"rebuild ended after {through}",
        ledger.REBUILD: recorded.get("id", ""),
    }
    with writer.carrying(lake.spark, fields):
        table_properties.delete(lake.spark, name, STATE)


def forget_features(lake: Lake, view: FeatureView) -> None:
    """Have the view's bucket table forget a rebuild of features that was stopped, now that all of
    its rows are made: gone on with, it would add to them."""
    name = lake.tables.of(view).buckets.name
    recorded = state(lake, name)
    if recorded and "through" not in recorded:
        table_properties.delete(lake.spark, name, STATE)


def from_bronze(lake: Lake) -> bool:
    """Return whether a rebuild from bronze stopped before it refreshed the gold of every view. A
    view that lacks events may have been left out of it."""
    of_before = {
        view.name
        for view in lake.pipeline.views
        if _generation(lake, view) not in (None, lake.generation)
    }
    return bool(of_before and of_before - coverage.late(lake).keys())


def _generation(lake: Lake, view: FeatureView) -> str | None:
    """Return the generation of gold's newest ledger, None when no ledger is kept."""
    name = lake.tables.of(view).gold.name
    commits: Iterable[ledger.Commit] = lake.commits(name)
    newest = next((commit.ledger for commit in commits if commit.ledger), None)
    return str(newest["generation"]) if newest else None


def refuse_from_bronze(lake: Lake) -> None:
    """Raise LakeError while a rebuild from bronze is half-way: gold is still of the tables before
    it, and what silver holds is a part."""
    if from_bronze(lake):
        name = lake.pipeline.command_name
        raise LakeError(
            "a rebuild from bronze was interrupted before gold was refreshed",
            where=str(lake.place),
            expected=f"run `tidemill run {name} --once`, which finishes it, or "
            f"`tidemill rebuild {name} --from bronze` again",
        )
