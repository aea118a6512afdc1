"""The swap: the other generation's tables and checkpoints for the living ones, then gold.

    leave   <root>/<item>               ──► _rebuild/<pipeline>/_leaving/<item>
    come    _rebuild/<pipeline>/<item>  ──► <root>/<item>
    stay    _leaving/<item>             ──► _rebuild/<pipeline>/<item>
    gold    one MERGE for each view of the rows that differ, its ledger of the new generation

An item is a table before gold, bronze too, or a checkpoint. Each move is a rename, and done at
most once: `_swap.json` says which phase is under way, and within one an item is where it was or
where it goes. Until the last move the lake is refused; died between that and gold, `run` or the
same swap finishes it. Items are known by what they say of themselves, so a view that only one of
the two definitions has is moved too, whichever of them swaps.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Place
from tidemill.errors import LakeError
from tidemill.lake import tables
from tidemill.lake.catalog import Lake, table_names
from tidemill.lake.checkpoints import Checkpoint
from tidemill.lake.commits import metadata
from tidemill.lake.commits.failpoints import reach
from tidemill.lake.integrity import interrupted_swaps
from tidemill.lake.schema.table_properties import GENERATION, OWNER
from tidemill.lake.tables.day_tables import PARTITION
from tidemill.operations.rebuild import from_bronze
from tidemill.operations.swap import other_generation
from tidemill.pipeline import batch_log, connection
from tidemill.pipeline.connection import Opening
from tidemill.pipeline.queries import Pipeline
from tidemill.pipeline.runner import Stop
from tidemill.sources.null_source import Absent

_LEAVING, _CHECKPOINTS = "_leaving", "_checkpoints"
# Gold, what it answered and recomputed days: by the end of their names and a column.
_STAYS = {"_features": "updated_at", "_history": "served_day", "_batch": PARTITION}


def swap(spark: SparkSession, opening: Opening, definition: PipelineDefinition) -> dict[str, Any]:
    """Put the other generation in the place of the living one, whose lake the caller holds; return
    for each view how many keys of gold changed, and both generations."""
    place, name = opening.place, definition.pipeline
    beside = interrupted_swaps.beside(place, name)
    before = _generation(place, definition)
    with ExitStack() as held:
        if interrupted_swaps.state(place, name) is None:
            lake = other_generation.read(opening, definition)
            _refuse_unfinished(lake)
            there = other_generation.opening_of(opening, definition)
            held.enter_context(connection.writing(there, f"tidemill swap {name}"))
            items = sorted(_items(place, beside, definition))
            gold = [lake.tables.of(view).gold.name for view in definition.views]
            begun = {"phase": "leave", "items": items, "gold": gold}
            interrupted_swaps.keep(place, name, begun)
        _move(place, beside, name)
        _forget_logs(spark)
    pipeline = connection.held_pipeline(spark, opening, definition, Absent())
    views = _refresh(pipeline)
    return {"views": views, "generation": pipeline.lake.generation, "before": before}


def _refuse_unfinished(lake: Lake) -> None:
    """Refuse a generation that has not come to its refresh, by its own gold; what was living has
    none."""
    known = [v for v in lake.pipeline.views if lake.has(lake.tables.of(v).gold.name)]
    if any(lake.gold_state(view).as_of is None for view in known):
        again = f"`tidemill rebuild {lake.pipeline.command_name} --from source`"
        raise LakeError(
            "is not finished",
            where=str(lake.place),
            expected=f"run {again} again, which goes on",
        )


def _items(place: Place, beside: Place, definition: PipelineDefinition) -> set[str]:
    """Return the names, in a lake's folder, of what is moved: also what another definition has that
    this one has not, such as a view, or it would be neither here nor there when that comes back."""
    found = set()
    for folder in (place.folder, beside.folder):
        assert folder is not None
        found |= {name for name in table_names(folder) if _is_moved(folder / name, definition)}
        checkpoints = (folder / _CHECKPOINTS).glob(f"{definition.pipeline}_*")
        found |= {f"{_CHECKPOINTS}/{each.name}" for each in checkpoints if _is_of(each, definition)}
    return found


def _is_moved(table: Path, definition: PipelineDefinition) -> bool:
    """Return whether a folder is a table of the pipeline's that comes before gold; of a view or
    stream that the definition has not, only its name and columns tell."""
    declared, said = tables.of(definition), metadata.of_folder(table)
    stays = table.name in [each.name for each in (declared.alerts, *declared.shared)] or any(
        table.name.endswith(end) and column in said.types for end, column in _STAYS.items()
    )
    return said.properties.get(OWNER) == definition.pipeline and not stays


def _is_of(folder: Path, definition: PipelineDefinition) -> bool:
    return Checkpoint("", folder, "").identity().get("pipeline") == definition.pipeline


def _move(place: Place, beside: Place, name: str) -> None:
    """Do the moves that are left, phase by phase."""
    root, other = place.folder, beside.folder
    said = interrupted_swaps.state(place, name)
    assert said is not None and root is not None and other is not None
    phases = {
        "leave": (root, other / _LEAVING),
        "come": (other, root),
        "stay": (other / _LEAVING, other),
    }
    names = [*phases, interrupted_swaps.MOVED]
    for phase in names[names.index(said["phase"]) : -1]:
        interrupted_swaps.keep(place, name, {**said, "phase": phase})
        reach(f"swap.{phase}")
        come, go = phases[phase]
        for item in said["items"]:
            _rename(come / item, go / item)
    for gold in said["gold"]:  # of what has come; what lies here now has its values in the living
        shutil.rmtree(other / gold, ignore_errors=True)
    interrupted_swaps.keep(place, name, {**said, "phase": interrupted_swaps.MOVED})
    reach("swap.moved")


def _rename(old: Path, new: Path) -> None:
    if old.exists() and not new.exists():
        new.parent.mkdir(parents=True, exist_ok=True)
        old.rename(new)


def _forget_logs(spark: SparkSession) -> None:
    """Have Delta forget what it knows of tables by their folders, which are others now."""
    jvm = getattr(spark, "_jvm", None)
    if jvm is not None:
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    spark.catalog.clearCache()


def _refresh(pipeline: Pipeline) -> list[dict[str, Any]]:
    """Bring gold to the tables that are living now; return what changed."""
    results = []
    if pipeline.states:  # gold is merged from the state alone
        from_bronze.from_bronze(pipeline, Stop())
    for view in pipeline.definition.views:
        if not pipeline.states:
            from_bronze.refresh_whole(pipeline, view.name)
        told = pipeline.lake.gold_state(view).ledger or {}
        results.append(
            {
                "view": view.name,
                "as_of": told.get("as_of"),
                "keys_changed": told.get("changed"),
                "gold_version": pipeline.lake.gold_state(view).version,
            }
        )
    batch_log.record(pipeline.lake)
    return results


def _generation(place: Place, definition: PipelineDefinition) -> str:
    root = place.folder
    events = tables.of(definition).events.name
    if root is None or not (root / events).is_dir():
        return ""
    lake = Lake(lambda: None, place, definition)  # type: ignore[arg-type, return-value]
    return str(lake.metadata(events).properties.get(GENERATION, ""))
