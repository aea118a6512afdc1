"""The statement that makes a table as it is declared (see `tables`).

Plain SQL, not Delta's builder, whose calls go through the JVM and do not exist on Spark Connect.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tidemill.lake.parameters import quoted
from tidemill.lake.tables import Column, Table


def create(
    table: Table,
    properties: Mapping[str, str],
    *,
    folder: Path | None = None,
    replace: bool = False,
    keyed: bool = False,
) -> str:
    """Return the CREATE TABLE statement: in `folder`, else where the schema keeps its tables.

    With `replace` a table that is there is made again, empty, its history kept. With `keyed` it
    names the primary key, which Unity Catalog takes and open-source Delta refuses.
    """
    verb = "CREATE OR REPLACE TABLE" if replace else "CREATE TABLE IF NOT EXISTS"
    table_properties = {
        **table.properties,
        "delta.dataSkippingStatsColumns": ",".join(table.statistics),
        **properties,
    }
    lines = [_column(column) for column in table.columns]
    if keyed and table.primary_key:
        lines.append(f"CONSTRAINT {table.name}_key PRIMARY KEY ({', '.join(table.primary_key)})")
    clauses = [f"{verb} {table.name} (\n  " + ",\n  ".join(lines) + "\n)", "USING delta"]
    if table.partitioned_by:
        clauses.append(f"PARTITIONED BY ({', '.join(table.partitioned_by)})")
    if folder is not None:
        clauses.append(f"LOCATION {quoted(str(folder))}")
    clauses.append(f"COMMENT {quoted(table.comment)}")
    named = (f"{quoted(name)} = {quoted(value)}" for name, value in table_properties.items())
    clauses.append("TBLPROPERTIES (" + ", ".join(named) + ")")
    return "\n".join(clauses)


def _column(column: Column) -> str:
    null = "" if column.nullable else " NOT NULL"
    return f"{column.name} {column.type}{null} COMMENT {quoted(column.comment)}"
