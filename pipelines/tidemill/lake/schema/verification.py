"""Whether a lake's tables are the pipeline's, and as it declares them."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Place
from tidemill.errors import LakeError
from tidemill.lake import tables
from tidemill.lake.catalog import Lake
from tidemill.lake.commits.metadata import Metadata
from tidemill.lake.schema.table_properties import FORMAT_VERSION, OWNER
from tidemill.lake.tables import ENTITY_KEY, FORMAT, Table

MADE_IT = "the definition that made the table, or `tidemill rebuild ... --from bronze`"


def absent_of(lake: Lake) -> list[str]:
    """Return the names of the required tables that the lake does not have."""
    return [table.name for table in lake.tables.required if not lake.has(table.name)]


def check_whose(lake: Lake) -> None:
    """Raise LakeError when a table that stands under a name of the pipeline's is of another
    pipeline or format, or when bronze is not as declared."""
    for table in lake.tables.required:
        if lake.has(table.name):
            check_owner(lake.place, lake.pipeline, table, lake.metadata(table.name).properties)
    refuse_difference(lake, lake.tables.bronze)


def check_owner(
    place: Place, pipeline: PipelineDefinition, table: Table, said: Mapping[str, str]
) -> None:
    """Raise LakeError when a table is of another pipeline or format, by what it `said` in its
    properties."""
    owner = said.get(OWNER, "")
    if owner != pipeline.pipeline and table not in tables.of(pipeline).shared:
        raise LakeError(
            f"table {table.name} belongs to pipeline {owner!r}",
            where=str(place),
            expected=f"a table of {pipeline.pipeline!r}; rename the view or take another root",
        )
    version = said.get(FORMAT_VERSION, "none")
    if version != FORMAT:
        raise LakeError(
            f"table {table.name} has format {version}",
            where=str(place),
            expected=f"format {FORMAT}",
        )


def refuse_difference(lake: Lake, table: Table, way: str = MADE_IT) -> None:
    """Raise LakeError when the table's columns are not as declared, with the way out."""
    differences = difference(lake, table)
    if differences:
        raise LakeError(
            f"is not as the pipeline declares it: {differences}",
            where=table.name,
            expected=way,
        )


def difference(lake: Lake, table: Table) -> str:
    """Return how the table's columns differ from the declaration, in words; empty when they do
    not."""
    types = lake.metadata(table.name).types
    wanted = {column.name: column.type.lower().replace(" ", "") for column in table.columns}
    added = {column.name for column in table.columns if column.added}
    parts = [f"no column {name}" for name in wanted if name not in types and name not in added]
    parts += [f"column {name} is not declared" for name in types if name not in wanted]
    parts += [
        f"column {name} is {types[name]}, declared {type_}"
        for name, type_ in wanted.items()
        if name in types and types[name] != type_
    ]
    return ", ".join(parts)


def has_other_keys(said: Metadata, table: Table) -> bool:
    """Return whether a table, by what is said of it, has rows about others than declared: with
    more, fewer or other entity keys, or keys of other types."""
    keys = [column for column in table.columns if column.comment == ENTITY_KEY]
    wanted = {column.name: column.type.lower().replace(" ", "") for column in keys}
    held = {n: type_ for n, type_ in said.types.items() if said.comments.get(n) == ENTITY_KEY}
    # a table of which nobody kept the comments
    held = held or {name: said.types.get(name, "") for name in wanted}
    return held != wanted
