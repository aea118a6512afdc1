"""A table's properties, which outlive its log: what a table says of itself for good."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from tidemill.lake.parameters import quoted

FORMAT_VERSION = "tidemill.format"
GENERATION = "tidemill.generation"
OWNER = "tidemill.pipeline"


def tell(spark: SparkSession, name: str, said: Mapping[str, str]) -> None:
    """Write properties of a table."""
    listed = ", ".join(f"{quoted(key)} = {quoted(value)}" for key, value in said.items())
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({listed})")


def delete(spark: SparkSession, name: str, key: str) -> None:
    """Delete a property of a table, where it has it."""
    spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES IF EXISTS ({quoted(key)})")
