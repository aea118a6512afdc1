"""The lake: a pipeline's tables by name, in a folder (the default) or in a catalog's schema.

A folder lake is `<root>/<table>` (Delta), `<root>/_checkpoints/<query>` and a marker file with the
format's version. Opening it registers its tables in the session's catalog under a schema of its own
and makes that the current schema, so SQL names tables plainly everywhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tidemill.config import dataflow
from tidemill.config.dataflow import Query
from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Place
from tidemill.errors import LakeError
from tidemill.features import FeatureView
from tidemill.lake import tables
from tidemill.lake.checkpoints import Checkpoint
from tidemill.lake.commits import checksum, ledger, metadata
from tidemill.lake.commits.ledger import RECENT, Commit
from tidemill.lake.commits.metadata import DataFile, Detail, Metadata
from tidemill.lake.parameters import is_connect
from tidemill.lake.relations import Answer, Relation, RowReader, SparkReader
from tidemill.lake.session import required_settings
from tidemill.lake.tables import FORMAT, PipelineTables, Table

MARKER = "_tidemill.json"


class LongerHistory(NamedTuple):
    """A `history` longer than the declared one, which holds for records that were landed until a
    time, in microseconds."""

    until: int
    history: timedelta


@dataclass(frozen=True)
class Lake:
    """An open lake of one pipeline.

    `generation` names the set of tables and checkpoints that are made of bronze; it is empty while
    nobody has asked the tables.
    `longer` says of which records events may be older than `history` says (see `landed_history`).
    `session` returns the session that knows the tables by name: a lake in a folder that is only
    read may never call it. `reader` answers what is asked of it in Spark's place, where there is
    one. On Spark Connect a batch function runs in another process: the lake goes there without its
    session, and takes the batch's (`within`).
    """

    session: Callable[[], SparkSession]
    place: Place
    pipeline: PipelineDefinition
    generation: str = ""
    reader: RowReader | None = None
    longer: tuple[LongerHistory, ...] = ()

    def __getstate__(self) -> dict[str, object]:
        """Return what goes to another process: its fields, but for the session."""
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**kept, "session": None}

    def within(self, spark: SparkSession) -> Lake:
        """Return the lake as this session knows it."""
        return replace(self, session=lambda: spark)

    @cached_property
    def spark(self) -> SparkSession:
        """The session; in a folder that is only read it starts with the first call."""
        return self.session()

    @property
    def driver_folder(self) -> Path | None:
        """The lake's folder where the driver reads and writes its files itself, beside Spark; None
        of a catalog, and on Spark Connect, whose server may be elsewhere."""
        return None if is_connect(self.spark) else self.place.folder

    def ask(
        self,
        text: str,
        values: Mapping[str, Any],
        relations: Mapping[str, Relation] | None = None,
    ) -> Answer:
        """Return what a statement yields that only reads; see `RowReader.answer`."""
        reader = self.reader or SparkReader(lambda: self.spark)
        return reader.answer(text, values, relations or {})

    @cached_property
    def tables(self) -> PipelineTables:
        """The tables of its pipeline, as declared."""
        return tables.of(self.pipeline)

    def app_id(self, table: Table) -> str:
        """Return the Delta transaction's application: pipeline, table and generation."""
        return f"tidemill:{self.pipeline.pipeline}:{table.name}:{self.generation}"

    def gold_state(self, view: FeatureView) -> ledger.GoldState:
        """Return where the view's gold table stands."""
        name = self.tables.of(view).gold.name
        return ledger.gold_state(self, name, self.generation, view.definition)

    def commits(self, table: str, limit: int | None = RECENT) -> list[Commit]:
        """Return the table's newest commits, newest first; all that are kept when `limit` is None.

        In a folder they are read from the log's own files: a query for them takes 0.2 s and more.
        """
        log = self._log(table)
        return ledger.of_log(log, limit) if log else ledger.commits(self.spark, table, limit)

    def size(self, table: str, version: int) -> int | None:
        """Return the bytes of a table's version where the lake is a folder and the log tells it."""
        log = self._log(table)
        return checksum.size(log, version) if log else None

    def detail(self, table: str) -> Detail:
        """Return Delta's id of a table, its files and their bytes, as it stands; in a folder
        without a query."""
        if (root := self.place.folder) is not None:
            log = root / table / "_delta_log"
            said = checksum.detail(log, ledger.newest_version(log))
            return said or metadata.detail_of_folder(root / table)
        row = self.spark.sql(f"DESCRIBE DETAIL {table}").collect()[0]
        return Detail(row["id"], row["numFiles"], row["sizeInBytes"])

    def metadata(self, table: str) -> Metadata:
        """Return a table's columns and properties as it stands, in a folder without a query.

        Delta leaves them beside each of its commits; what another writer left is read from the
        log.
        """
        if (root := self.place.folder) is None:
            return metadata.of_session(self.spark, table)
        log = root / table / "_delta_log"
        said = checksum.metadata(log, ledger.newest_version(log))
        return said or metadata.of_folder(root / table)

    def rows(self, table: str) -> int:
        """Return how many rows a table has, in a folder without a query where the log's statistics
        tell it."""
        counts = [file.rows for file in self.files(table)] if self.place.folder else [None]
        if None in counts:
            return self.spark.table(table).count()
        return sum(count for count in counts if count is not None)

    def files(self, table: str) -> list[DataFile]:
        """Return the living files of a table, in a folder without a query."""
        if (root := self.place.folder) is not None:
            return metadata.files_of_folder(root / table)
        return [DataFile(path) for path in self.spark.table(table).inputFiles()]

    def names(self) -> list[str]:
        """Return the names of the lake's tables, in a catalog of views too."""
        if (root := self.place.folder) is not None:
            return table_names(root)
        rows = self.spark.sql("SHOW TABLES").collect()
        return sorted(row["tableName"] for row in rows if not row["isTemporary"])

    def newest_version(self, table: str) -> int | None:
        """Return the newest version of a table where the lake is a folder, without a query."""
        log = self._log(table)
        return ledger.newest_version(log) if log else None

    def _log(self, table: str) -> Path | None:
        root = self.place.folder
        return root and root / table / "_delta_log"

    def checkpoint(self, query: str) -> Checkpoint:
        """Return the checkpoint of `land`, `clean`, `feature` or a view's state."""
        name = self.pipeline.pipeline
        lost = dataflow.by_checkpoint(query).lost.format(pipeline=self.pipeline.command_name)
        return Checkpoint(query, checkpoint_root(self.place) / f"{name}_{query}", lost)

    def tables_of(self, query: Query, roles: Iterable[str]) -> list[str]:
        """Return the names of the tables in these roles of a query."""
        views = [view.name for view in self.pipeline.views]
        return query.tables(roles, self.pipeline.pipeline, views)

    def holds(self, names: Iterable[str]) -> bool:
        """Return whether any of the tables has rows or appends of this generation."""
        return any(self._holds(name) for name in names)

    def existing_tables(self) -> list[Table]:
        """Return the pipeline's tables: those that it requires, in the order of the flow, then the
        others as far as the session's catalog knows them: one that another process has made is
        among them after the next `register`."""
        return [*self.tables.required, *self.known(self.tables.optional)]

    def known(self, wanted: Iterable[Table]) -> list[Table]:
        """Return those of the tables that the session's catalog knows; of a lake that is read
        without one, those that it has."""
        if self.reader is not None:
            return [table for table in wanted if self.has(table.name)]
        return [table for table in wanted if self.spark.catalog.tableExists(table.name)]

    def has(self, table: str) -> bool:
        """Return whether the lake has a table, without a query where it is a folder."""
        log = self._log(table)
        return log.is_dir() if log else self.spark.catalog.tableExists(table)

    def is_as_made(self, table: str) -> bool:
        """Tell, from the file names of a folder's log and without a query, that nothing was
        committed since the table was made; False says nothing."""
        log = self._log(table)
        return log is not None and ledger.newest_version(log) == 0

    def _holds(self, table: str) -> bool:
        if self.is_as_made(table):
            return False
        recent = self.commits(table)
        if len(recent) < ledger.RECENT and not any(commit.moves_data for commit in recent):
            return False
        appended = ledger.newest_append(self, table, self.generation, recent)
        return appended is not None or not self.spark.table(table).isEmpty()


def table_names(root: Path) -> list[str]:
    """Return the names of the tables in a folder."""
    return sorted(log.parent.name for log in root.glob("*/_delta_log"))


def checkpoint_root(place: Place) -> Path:
    """Return the folder of all checkpoints; for a catalog a volume called `checkpoints`, if not
    given."""
    if place.catalog and not place.root:
        return Path(f"/Volumes/{place.catalog}/{place.schema}/checkpoints")
    return Path(place.root or ".") / "_checkpoints"


def prepare_root(place: Place) -> None:
    """Make the folder of a new lake, or check that the folder is one; needs no Spark."""
    root = place.folder
    if root is None:
        return
    try:
        root.mkdir(parents=True, exist_ok=True)
        if not (root / MARKER).exists():
            if any(not path.name.startswith(("_tidemill", ".")) for path in root.iterdir()):
                raise LakeError("holds files, but no lake", where=str(root), expected="--root DIR")
            (root / MARKER).write_text(json.dumps({"format": FORMAT}) + "\n", encoding="utf-8")
        for checksum in root.glob("*/_delta_log/._last_checkpoint.crc"):
            checksum.unlink()  # another session's, of a file that is going to change
    except OSError as error:
        message = f"cannot be written: {error.strerror}"
        raise LakeError(message, where=str(root), expected="a folder you may write to") from error
    _check_format(root)


def check_root(place: Place) -> None:
    """Refuse a folder that is no lake; for those who only read."""
    root = place.folder
    if root is None:
        return
    if not (root / MARKER).is_file():
        raise LakeError(
            "is no lake" if root.exists() else "does not exist",
            where=str(root),
            expected="--root of a lake that `tidemill demo` or `tidemill run` made",
        )
    _check_format(root)


def _check_format(root: Path) -> None:
    try:
        lake_format = json.loads((root / MARKER).read_text(encoding="utf-8"))["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LakeError("cannot be read as a lake's marker", where=str(root / MARKER)) from error
    if lake_format != FORMAT:
        raise LakeError(f"has format {lake_format}", where=str(root), expected=f"format {FORMAT}")


def register(spark: SparkSession, place: Place) -> None:
    """Make the lake's schema the current one, with every table in it known by its plain name, and
    none that was moved or removed since.

    SetupError for a session that would read times or numbers otherwise.
    """
    required_settings.check(spark)
    if place.catalog:
        _use_catalog(spark, place)
        return
    root = Path(place.root or ".")
    schema = f"lake_{hashlib.sha256(str(root).encode()).hexdigest()[:12]}"
    names, known = table_names(root), _known(spark, schema)
    spark.catalog.setCurrentDatabase(schema)
    for name in known - {each.lower() for each in names}:
        spark.sql(f"DROP TABLE IF EXISTS {name}")
    for name in names:
        if name.lower() not in known and not spark.catalog.tableExists(name):
            spark.catalog.createTable(name, path=str(root / name), source="delta")


def _known(spark: SparkSession, schema: str) -> set[str]:
    """Return the names of the tables, without views, that the session knows in a schema, which is
    made unless it is there."""
    if not spark.catalog.databaseExists(schema):
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        return set()
    tables, views = (
        spark.sql(f"SHOW {kind} IN {schema}").collect() for kind in ("TABLES", "VIEWS")
    )
    return {row["tableName"] for row in tables} - {row["viewName"] for row in views}


def _use_catalog(spark: SparkSession, place: Place) -> None:
    try:
        spark.catalog.setCurrentCatalog(str(place.catalog))
        spark.catalog.setCurrentDatabase(str(place.schema))
    except AnalysisException as error:
        raise LakeError(
            "cannot be used: no such schema, or no right to it",
            where=str(place),
            expected=f"a schema: `CREATE SCHEMA {place}`, or deploy the bundle, which makes it",
        ) from error
