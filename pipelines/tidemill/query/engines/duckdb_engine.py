"""DuckDB over a folder lake: its tables as `deltalake` finds them in their logs, its views from the
same statements that make them in Spark.

Each statement sees every table as it stands when it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.lake import tables
from tidemill.lake.commits import change_feed, data_files
from tidemill.lake.discovery import Folder
from tidemill.lake.relations import Record, Relation
from tidemill.lake.schema import sql_views
from tidemill.lake.tables import Table
from tidemill.query.engines.arrow_values import records_of, rows_of
from tidemill.query.engines.clauses import Columns
from tidemill.query.engines.expression_rules.rule import refuse
from tidemill.query.engines.translation import Translation, translate

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
    from deltalake import DeltaTable

# What Spark computes in a way of its own, in DuckDB's words.
MACROS = (
    "tidemill_div(a, b) AS a // b",
    "tidemill_mod(a, b) AS a % b",
    """tidemill_total(numbers, first) AS CASE WHEN numbers IS NOT NULL
      THEN list_reduce(list_prepend(first, numbers), lambda total, each: total + each) END""",
    # Spark rounds the shortest decimal of a double, of at most 17 digits: exact in 38 of them.
    """tidemill_round(x, places) AS CASE
      WHEN x IS NULL THEN NULL
      WHEN abs(x) < 1e10
        THEN CAST(round(CAST(CAST(x AS VARCHAR) AS DECIMAL(38, 27)), places) AS DOUBLE)
      WHEN abs(x) < 1e18
        THEN CAST(round(CAST(CAST(x AS VARCHAR) AS DECIMAL(38, 19)), places) AS DOUBLE)
      ELSE CAST('beyond what is rounded here: ' || CAST(x AS VARCHAR) AS DOUBLE) END""",
    """tidemill_between(sorted, place) AS CASE
      WHEN floor(place) = ceil(place) THEN sorted[CAST(place AS BIGINT) + 1]
      WHEN sorted[CAST(floor(place) AS BIGINT) + 1] = sorted[CAST(ceil(place) AS BIGINT) + 1]
        THEN sorted[CAST(floor(place) AS BIGINT) + 1]
      ELSE (ceil(place) - place) * sorted[CAST(floor(place) AS BIGINT) + 1]
        + (place - floor(place)) * sorted[CAST(ceil(place) AS BIGINT) + 1] END""",
    """tidemill_percentile(sorted, percentage) AS CASE
      WHEN len(sorted) > 0 THEN tidemill_between(sorted, percentage * (len(sorted) - 1)) END""",
)
# Of a change data feed, behind the table's; `deltalake` has another _commit_timestamp than Spark.
OF_FEED = {"_change_type": "string", "_commit_version": "bigint"}
_NAMES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}


@dataclass
class DuckDBEngine:
    """Answers statements on the lake in a folder; `definitions` are the pipelines whose views are
    known there, `relations` rows that statements read under names of their own."""

    root: Path
    definitions: Iterable[PipelineDefinition] = ()
    relations: Mapping[str, Relation] = field(default_factory=dict)
    _opened: dict[tuple[str, int | None], DeltaTable] = field(default_factory=dict)
    _views: dict[str, Translation] = field(default_factory=dict)
    _texts: Mapping[str, Callable[[], str]] | None = None

    def answer(self, text: str) -> tuple[tuple[str, ...], list[list[Any]]]:
        """Return the names of the columns and the rows, as `json_values.plain` would have them.

        UntranslatableError where Spark might answer otherwise; NoSuchTableError for a table that
        there is not.
        """
        translation = self.translated(text)
        return translation.names, rows_of(self._rows(translation))

    def records(self, text: str, texts: Mapping[str, str] | None = None) -> list[Record]:
        """Return the rows by column; refuses what `answer` refuses.

        The literal `'name'` stands for `texts[name]`, which DuckDB gets beside the statement: so a
        value may hold what is written otherwise in a literal of Spark's.
        """
        translation = self.translated(text)
        return [*records_of(translation.names, self._rows(translation, texts or {}))]

    def _rows(self, translation: Translation, texts: Mapping[str, str] | None = None) -> pa.Table:
        sql = translation.sql
        for name in texts or {}:
            sql = sql.replace(f"'{name}'", f"${name}")
        with self._connection(translation) as connection:
            return connection.sql(sql, params=texts or None).to_arrow_table()

    def translated(self, text: str) -> Translation:
        """Return the statement for DuckDB, its tables as they stand now."""
        self._opened.clear()
        self._views.clear()
        return translate(text, self.columns)

    def names(self) -> list[str]:
        """Return the names of the tables and views."""
        return sorted({*Folder(self.root).names(), *self._statements()})

    def columns(self, name: str) -> Columns | None:
        """Return a table's or view's columns and their types in Spark; None where there is none."""
        if (relation := self.relations.get(name)) is not None:
            of_feed = OF_FEED if relation.changes else {}
            return {**_columns(self._table(relation.table, relation.version)), **of_feed}
        if (self.root / name / "_delta_log").is_dir():
            return _columns(self._table(name))
        if name not in self._views:
            statement = self._statements().get(name)
            if statement is None:
                return None
            self._views[name] = translate(statement(), self.columns)
        return self._views[name].columns

    def _table(self, name: str, version: int | None = None) -> DeltaTable:
        """Return the table as it stands, or a version of it; refused where its protocol asks for
        more than files."""
        from deltalake import DeltaTable

        if (name, version) not in self._opened:
            table = DeltaTable(str(self.root / name), version=version)
            if beyond := change_feed.beyond_files(table):
                raise refuse(f"{name}, which needs {', '.join(sorted(beyond))}")
            self._opened[name, version] = table
        return self._opened[name, version]

    def _connection(self, translation: Translation) -> duckdb.DuckDBPyConnection:
        """Return a connection that knows what the statement reads."""
        connection = _database().cursor()
        for name in translation.reads:
            self._add(connection, name)
        return connection

    def _add(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        if name in self.relations:
            connection.register(name, self._relation(self.relations[name]))
        elif name in self._views:
            view = self._views[name]
            for read in view.reads:
                self._add(connection, read)
            connection.execute(f'CREATE OR REPLACE TEMP VIEW "{name}" AS {view.sql}')
        else:
            connection.register(name, data_files.rows(self._table(name), self.root / name))

    def _relation(self, relation: Relation) -> Any:
        """Return the rows as DuckDB reads them."""
        from pyarrow import compute

        table = self._table(relation.table, relation.version)
        if relation.changes is not None:
            return change_feed.feed(table, *relation.changes)
        rows = data_files.rows(table, self.root / relation.table)
        if relation.before_batch is not None:
            rows = rows.filter(compute.field("batch") < relation.before_batch)
        return rows

    def _statements(self) -> Mapping[str, Callable[[], str]]:
        """Return what makes the text of each view of the pipelines that the lake holds."""
        if self._texts is None:
            folder = Folder(self.root)
            known = {*folder.names()}
            texts: dict[str, Callable[[], str]] = {}
            for definition in self.definitions:
                if all(table.name in known for table in tables.of(definition).required):
                    texts |= self._of(folder, known, definition)
            self._texts = texts
        return self._texts

    def _of(
        self, folder: Folder, known: Collection[str], definition: PipelineDefinition
    ) -> Mapping[str, Callable[[], str]]:
        declared = tables.of(definition)
        whole = [n for n, view in declared.views.items() if self._is_as_declared(view.gold)]
        days: Mapping[str, date] = sql_views.newest_days(folder, definition)
        recomputed = [t.name for t in declared.days if t.name in known and self._is_as_declared(t)]
        return sql_views.statements(definition, days, whole, recomputed)

    def _is_as_declared(self, table: Table) -> bool:
        """Return whether a table, which is there, has the columns that the views of it name."""
        have = {*(self.columns(table.name) or {})}
        needed = {column.name for column in table.columns if not column.added}
        return needed <= have <= {*table.column_names}


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """Return the process's database, which holds the macros alone: to open one takes 20 ms, a
    connection to one that is open next to nothing, and what it registers nobody else sees."""
    database = data_files.connected()
    for macro in MACROS:
        database.execute(f"CREATE MACRO {macro}")
    return database


def _columns(table: DeltaTable) -> Columns:
    return {field.name: spark_type(field.type) for field in table.schema().fields}


def spark_type(type_: Any) -> str:
    """Return a type of `deltalake` as Spark names it."""
    kind = type(type_).__name__
    if kind == "ArrayType":
        return f"array<{spark_type(type_.element_type)}>"
    if kind == "MapType":
        return f"map<{spark_type(type_.key_type)}, {spark_type(type_.value_type)}>"
    if kind == "StructType":
        inside = ", ".join(f"{each.name}: {spark_type(each.type)}" for each in type_.fields)
        return f"struct<{inside}>"
    name = str(type_.type)
    return _NAMES.get(name, name)
