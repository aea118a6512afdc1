"""Where a generation lies beside the living one, and whether it is half-way in its place.

`<root>/_rebuild/<pipeline>` is a lake; its `_swap.json` is there while tables are moved:

    {phase, items, gold}      leave, come, stay: which move is under way; moved: none any more, but
                              gold and what is told of batches are not brought to it yet; the names
                              in the lake's folder that are moved, and those of gold, which are not
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Place
from tidemill.errors import LakeError, UsageError
from tidemill.lake.integrity.whole_file import write_json

MOVED = "moved"
_FOLDER, _STATE = "_rebuild", "_swap.json"


def beside(place: Place, pipeline: str) -> Place:
    """Return where the other generation of a pipeline is; UsageError for a catalog's lake."""
    root = place.folder
    if root is None:
        raise UsageError(
            "a generation beside the living one is of a folder's lake",
            where=str(place),
            expected="--root; in a catalog run the new definition into another schema",
        )
    return Place(root / _FOLDER / pipeline)


def state(place: Place, pipeline: str) -> dict[str, Any] | None:
    """Return what a swap that is under way has written down, None without one."""
    try:
        said: dict[str, Any] = json.loads(_file(place, pipeline).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return said


def keep(place: Place, pipeline: str, said: dict[str, Any] | None) -> None:
    """Write down how far a swap is, whole; None when it is done."""
    file = _file(place, pipeline)
    if said is None:
        file.unlink(missing_ok=True)
        return
    write_json(file, said)


def refuse(place: Place, pipeline: PipelineDefinition) -> None:
    """Raise LakeError while tables of a pipeline are moved, or were when the process died."""
    said = state(place, pipeline.pipeline) if place.folder is not None else None
    if said is not None and said["phase"] != MOVED:
        raise LakeError(
            "a swap was interrupted: some of its tables are beside it",
            where=str(place),
            expected=f"run `tidemill swap {pipeline.command_name}` again, which finishes it",
        )


def moved(place: Place, pipeline: str) -> frozenset[str]:
    """Return the names of the tables that were moved, and of which no batch has been told since."""
    said = state(place, pipeline) if place.folder is not None else None
    return frozenset(said["items"]) if said is not None and said["phase"] == MOVED else frozenset()


def _file(place: Place, pipeline: str) -> Path:
    folder = beside(place, pipeline).folder
    assert folder is not None
    return folder / _STATE
