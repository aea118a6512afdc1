"""Whether a lake's tables are the pipeline's, and as it declares them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Place
from tidemill.errors import LakeError
from tidemill.lake import tables
from tidemill.lake.schema.table_properties import FORMAT_VERSION, OWNER, properties
from tidemill.lake.tables import FORMAT, Table


def absent_of(spark: SparkSession, pipeline: PipelineDefinition) -> list[str]:
    """Return the names of the required tables that the session's catalog does not know."""
    names = [table.name for table in tables.of(pipeline).required]
    return [name for name in names if not spark.catalog.tableExists(name)]


def check_whose(spark: SparkSession, place: Place, pipeline: PipelineDefinition) -> None:
    """Raise LakeError when a table that stands under a name of the pipeline's is of another
    pipeline or format, or when bronze is not as declared."""
    declared = tables.of(pipeline)
    for table in declared.required:
        if spark.catalog.tableExists(table.name):
            check_owner(place, pipeline, table, properties(spark, table.name))
    refuse_difference(spark, declared.bronze)


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


def refuse_difference(spark: SparkSession, table: Table) -> None:
    """Raise LakeError when the table's columns are not as declared."""
    differences = difference(spark, table)
    if differences:
        raise LakeError(
            f"is not as the pipeline declares it: {differences}",
            where=table.name,
            expected="the definition that made the table, or `tidemill rebuild ... --from bronze`",
        )


def difference(spark: SparkSession, table: Table) -> str:
    """Return how the table's columns differ from the declaration, in words; empty when they do
    not."""
    types = {f.name: f.dataType.simpleString().lower() for f in spark.table(table.name).schema}
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
