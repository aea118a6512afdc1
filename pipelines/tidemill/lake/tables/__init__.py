"""The tables of a lake, declared once: `of(pipeline)` returns all of a pipeline's.

Whoever has an open lake reads `lake.tables`, which is the same.
"""

from tidemill.lake.tables.dimension_tables import FOLLOWS
from tidemill.lake.tables.pipeline_tables import ALLOWED, ENRICHED, HISTORY, PipelineTables, of
from tidemill.lake.tables.table import ENTITY_KEY, FORMAT, Column, Table
from tidemill.lake.tables.view_tables import ViewTables

__all__ = [
    "ALLOWED",
    "ENRICHED",
    "ENTITY_KEY",
    "FOLLOWS",
    "FORMAT",
    "HISTORY",
    "Column",
    "PipelineTables",
    "Table",
    "ViewTables",
    "of",
]
