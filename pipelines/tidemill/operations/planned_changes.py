"""How declared views differ from the tables of a lake, and which commands settle it."""

from __future__ import annotations

from typing import Any

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.lake.integrity import interrupted_rebuilds
from tidemill.pipeline.connection import Opening, changes_as_found, unchecked_lake


def plan(opening: Opening, definition: PipelineDefinition) -> list[dict[str, Any]]:
    """Return for each view `{view, kind, why, ..., way, unfinished}`; nothing is made or
    settled."""
    changes = changes_as_found(opening, definition)
    lake = unchecked_lake(opening, definition)
    return [
        {
            **vars(change),
            "way": change.way(definition.command_name),
            "unfinished": interrupted_rebuilds.of_view(lake, view)
            if change.kind != "views"
            else [],
        }
        for change, view in zip(changes, definition.views, strict=True)
    ]
