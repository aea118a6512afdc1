"""How Delta keeps the log of a folder's tables: properties of each table.

    maintenance.log 6h      Delta removes nothing: maintenance does, and knows who reads what
    maintenance.log null    Delta removes what is older than delta.logRetentionDuration

A checkpoint every 30 commits, not 10: each is a pass over all files that the table has. What a user
set is left as it is, but for the cleaning, of which there may be only one. A catalog's tables are
as the catalog has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Place
from tidemill.lake.schema.table_properties import tell
from tidemill.lake.tables import Table

if TYPE_CHECKING:
    from tidemill.lake.catalog import Lake

CLEANING, INTERVAL = "delta.enableExpiredLogCleanup", "delta.checkpointInterval"
EVERY = "30"


def declared(place: Place, pipeline: PipelineDefinition) -> dict[str, str]:
    """Return the properties of a new table's log."""
    if place.folder is None:
        return {}
    kept = pipeline.maintenance and pipeline.maintenance.log
    return {INTERVAL: EVERY, CLEANING: "false" if kept else "true"}


def settle(lake: Lake, table: Table, said: Mapping[str, str]) -> None:
    """Give a table of an earlier version, or of another declaration, its properties; `said` are
    those that it has. One table is of all pipelines: there, the cleaning stays off for good."""
    wanted = declared(lake.place, lake.pipeline)
    if table == lake.tables.batches and wanted.get(CLEANING) == "true":
        del wanted[CLEANING]
    before = {CLEANING: "true", **said}
    missing = {
        name: value
        for name, value in wanted.items()
        if (name == CLEANING and before[name] != value) or name not in before
    }
    if missing:
        tell(lake.spark, table.name, missing)
