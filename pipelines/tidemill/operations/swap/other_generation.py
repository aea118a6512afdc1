"""The other generation of a pipeline: made from its source, in a lake of its own beside the living
one.

The living one is not held: it runs on. What follows gold (alerts, sinks, the online store) does not
follow this one. Stopped, it goes on where it was; run again later, it catches up with its source.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.errors import LakeError, UsageError
from tidemill.features import FeatureView
from tidemill.lake import catalog as lakes
from tidemill.lake import tables
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import metadata
from tidemill.lake.integrity import interrupted_swaps
from tidemill.lake.open import as_found
from tidemill.lake.schema import evolution
from tidemill.lake.schema.verification import has_other_keys
from tidemill.operations.rebuild import from_bronze
from tidemill.pipeline import connection
from tidemill.pipeline.connection import Opening
from tidemill.pipeline.observer import Callback, Tell
from tidemill.pipeline.queries import Pipeline
from tidemill.pipeline.runner import Stop
from tidemill.sources import Source


def opening_of(opening: Opening, definition: PipelineDefinition) -> Opening:
    """Return how to open the other generation; refuse a lake that is half-way in a swap."""
    lakes.check_root(opening.place)
    interrupted_swaps.refuse(opening.place, definition)
    return replace(opening, place=interrupted_swaps.beside(opening.place, definition.pipeline))


def followed_by_none(definition: PipelineDefinition) -> PipelineDefinition:
    """Return the pipeline without what follows its gold."""
    nothing = {"sink": None, "alerts": (), "alert_sinks": None, "publish": None}
    return definition.model_copy(update=nothing)


def make(opening: Opening, definition: PipelineDefinition, tell: Tell) -> dict[str, Any]:
    """Bring the other generation up to its source; return the totals of `run`, where it lies and
    its generation. UsageError for a view whose keys are others than those of the living gold, and
    where what lies there already was made by a definition that this one cannot go on from."""
    there = opening_of(opening, definition)
    for view in definition.views:
        _refuse_other_keys(opening, definition, view)
    quiet = followed_by_none(definition)
    started, stop = time.monotonic(), Stop()
    source = connection.checked_source(there, quiet, once=True)
    with connection.writing_session(there, f"tidemill rebuild {definition.pipeline}") as spark:
        pipeline = _going_on(spark, there, quiet, source)
        with stop.on_signals():
            totals = from_bronze.whole(pipeline, stop, [Callback(tell)])
        summary = totals.summary(pipeline, time.monotonic() - started)
        return {
            **summary,
            "generation": pipeline.lake.generation,
            "place": str(there.place),
            "complete": not stop,
        }


def _going_on(
    spark: SparkSession, there: Opening, definition: PipelineDefinition, source: Source
) -> Pipeline:
    """Return the pipeline of what lies there. A rebuild of a part is no way out of a difference: it
    would be one of the living lake."""
    try:
        return connection.held_pipeline(spark, there, definition, source)
    except LakeError as error:
        whose = f"{error.where}: " if error.where and error.where != str(there.place) else ""
        raise LakeError(
            f"what lies there cannot be gone on with: {whose}{error.message}",
            where=str(there.place),
            expected="an empty folder: remove this one, unless a swap is to take back what is in "
            f"it, and run `tidemill rebuild {definition.command_name} --from source` again",
        ) from error


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
    """Refuse tables that need a rebuild to be what the view declares. Its gold may not be there:
    what was living has none."""
    name = lake.tables.of(view).buckets.name
    if not lake.has(name):
        why = f"it has no {name}"
    else:
        change = evolution.change(lake, view)
        why = change.why if change.kind not in ("none", "gold") else ""
    if why:
        raise LakeError(
            f"was made by another declaration of view {view.name}: {why}",
            where=str(lake.place),
            expected="the definition that it was made by; or `tidemill rebuild "
            f"{lake.pipeline.command_name} --from source` with this one, in an empty folder",
        )


def _refuse_other_keys(opening: Opening, definition: PipelineDefinition, view: FeatureView) -> None:
    """Refuse a view of which the living gold has other keys, or keys of other types."""
    root, gold = opening.place.folder, tables.of(definition).views[view.name].gold
    assert root is not None
    folder = root / gold.name
    if (folder / "_delta_log").is_dir() and has_other_keys(metadata.of_folder(folder), gold):
        raise UsageError(
            f"view {view.name} has other keys than its gold table, which would take its place",
            where="keys",
            expected="a view of another name, beside this one",
        )
