"""The other generation of a pipeline: made from its source, in a lake of its own beside the living
one.

The living one is not held: it runs on. What follows gold (alerts, sinks, the online store) does not
follow this one. Stopped, it goes on where it was; run again later, it catches up with its source.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.errors import LakeError, UsageError
from tidemill.features import FeatureView
from tidemill.lake import catalog as lakes
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import metadata
from tidemill.lake.integrity import interrupted_swaps
from tidemill.lake.open import as_found
from tidemill.lake.provenance import GRAIN, PARTIALS, grain, made_of
from tidemill.operations.rebuild import from_bronze
from tidemill.pipeline import connection
from tidemill.pipeline.connection import Opening
from tidemill.pipeline.observer import Callback, Tell
from tidemill.pipeline.runner import Stop


def opening_of(opening: Opening, definition: PipelineDefinition) -> Opening:
    """Return how to open the other generation; refuse a lake that is half-way in a swap."""
    lakes.check_root(opening.place)
    interrupted_swaps.refuse(opening.place, definition.pipeline)
    return replace(opening, place=interrupted_swaps.beside(opening.place, definition.pipeline))


def followed_by_none(definition: PipelineDefinition) -> PipelineDefinition:
    """Return the pipeline without what follows its gold."""
    nothing = {"sink": None, "alerts": (), "alert_sinks": None, "publish": None}
    return definition.model_copy(update=nothing)


def make(opening: Opening, definition: PipelineDefinition, tell: Tell) -> dict[str, Any]:
    """Bring the other generation up to its source; return the totals of `run`, where it lies and
    its generation. UsageError for a view whose keys are others than those of the living gold."""
    there = opening_of(opening, definition)
    for view in definition.views:
        _refuse_other_keys(opening, view)
    quiet = followed_by_none(definition)
    started, stop = time.monotonic(), Stop()
    source = connection.checked_source(there, quiet, once=True)
    with connection.writing_session(there, f"tidemill rebuild {definition.pipeline}") as spark:
        pipeline = connection.held_pipeline(spark, there, quiet, source)
        with stop.on_signals():
            totals = from_bronze.whole(pipeline, stop, [Callback(tell)])
        summary = totals.summary(pipeline, time.monotonic() - started)
        return {
            **summary,
            "generation": pipeline.lake.generation,
            "place": str(there.place),
            "complete": not stop,
        }


def read(opening: Opening, definition: PipelineDefinition) -> Lake:
    """Return the other generation for reading; LakeError where there is none, or it is of another
    declaration."""
    there = opening_of(opening, definition)
    if there.place.folder is None or not (there.place.folder / lakes.MARKER).is_file():
        raise LakeError(
            "has no other generation",
            where=str(opening.place),
            expected=f"run `tidemill rebuild {definition.command_name} --from source`",
        )
    lake = as_found(connection.unchecked_lake(there, followed_by_none(definition)))
    for view in definition.views:
        _refuse_another_declaration(lake, view)
    return lake


def _refuse_another_declaration(lake: Lake, view: FeatureView) -> None:
    """Refuse buckets that do not hold what the view declares. Its gold may not be there: what was
    living has none."""
    name = lake.tables.of(view).buckets.name
    said = lake.metadata(name).properties if lake.has(name) else {}
    held = json.loads(said.get(PARTIALS, "{}"))
    missing = [p.name for p in view.partials if held.get(p.name) != made_of(view, p)]
    if missing or said.get(GRAIN) != grain(view):
        raise LakeError(
            f"was made by another declaration of view {view.name}",
            where=str(lake.place),
            expected="the definition that it was made by; or `tidemill rebuild "
            f"{lake.pipeline.command_name} --from source` with this one, in an empty folder",
        )


def _refuse_other_keys(opening: Opening, view: FeatureView) -> None:
    """Refuse a view of which the living gold has other keys, or keys of other types."""
    root = opening.place.folder
    assert root is not None
    gold, buckets = (root / f"{view.name}_{end}" for end in ("features", "buckets"))
    if not ((gold / "_delta_log").is_dir() and (buckets / "_delta_log").is_dir()):
        return
    types = metadata.of_folder(gold).types
    said = metadata.of_folder(buckets).properties.get(GRAIN)
    names = [name for name, _ in json.loads(said)[0]] if said else list(view.keys)
    wanted = {key: view.types[key].lower() for key in view.keys}
    if names != list(view.keys) or {key: types.get(key) for key in view.keys} != wanted:
        raise UsageError(
            f"view {view.name} has other keys than its gold table, which would take its place",
            where="keys",
            expected="a view of another name, beside this one",
        )
