"""Who may do what to an open lake: reading at any time, writing while the lake is held."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from tidemill.config.pipeline_file import PipelineDefinition, declaring, load, shipped
from tidemill.errors import UsageError
from tidemill.lake.relations import SparkReader
from tidemill.pipeline import connection
from tidemill.pipeline.connection import Opening
from tidemill.query.engines.choice import Engine
from tidemill.query.engines.folder_reader import FolderReader

if TYPE_CHECKING:
    from tidemill.lake import catalog

_HELD = "open_lake(..., pipeline=..., write=True) in a with statement"


def ignore(_: object) -> None:
    """Take notice of nothing."""


@dataclass
class Access:
    """How a lake was opened, and whether it is held.

    `definition` is None where no pipeline was named: then a view is looked for in the shipped ones.
    `engine` answers what only reads a folder; of it `on_engine` is told why Spark is asked instead.
    """

    opening: Opening
    definition: PipelineDefinition | None
    write: bool
    create: bool
    command: str | None
    engine: Engine = "auto"
    on_engine: Callable[[str], None] = ignore
    _held: ExitStack | None = None
    _knows_views: bool = field(default=False)

    def hold(self) -> None:
        """Take the lake for writing and start the session; without `write` do nothing."""
        if not self.write:
            return
        if self._held is not None:
            raise UsageError("is held already", where="with", expected="one with statement")
        if not self.create:
            connection.check_existing(self.opening)
        with ExitStack() as held:
            command = self.command or f"tidemill.open_lake for {self.the_pipeline().pipeline}"
            held.enter_context(connection.writing_session(self.opening, command))
            self._held = held.pop_all()

    def release(self) -> None:
        """Let others write."""
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def session(self) -> SparkSession:
        """Return the session, the lake's tables, functions and views known in it by name."""
        if self._knows_views:
            return connection.registered(self.opening)
        spark = connection.open_for_questions(self.opening, self.definitions())
        self._knows_views = True
        return spark

    def definitions(self) -> list[PipelineDefinition]:
        """Return the pipelines whose views are known: the one named, else the shipped ones."""
        return [self.definition] if self.definition else [load(name) for name in shipped()]

    def the_pipeline(self) -> PipelineDefinition:
        """Return the pipeline that was named; UsageError where none was."""
        if self.definition is None:
            expected = "open_lake(..., pipeline=...): a shipped name, or a YAML file"
            raise UsageError("names no pipeline", where="open_lake", expected=expected)
        return self.definition

    def declaring(self, view: str) -> PipelineDefinition:
        """Return the pipeline that declares the view: the one named, else a shipped one."""
        if self.definition is None:
            return declaring(view)
        self.definition.view(view)
        return self.definition

    def reader(self, definition: PipelineDefinition | None = None) -> catalog.Lake:
        """Return a pipeline's lake for reading, checked against what is declared; in a folder the
        session starts where Spark is asked."""
        return self._answering(
            connection.read_lake(self.opening, definition or self.the_pipeline())
        )

    def as_found(self) -> catalog.Lake:
        """Return the pipeline's lake for reading, as it is, whatever is declared."""
        return self._answering(connection.unchecked_lake(self.opening, self.the_pipeline()))

    def _answering(self, lake: catalog.Lake) -> catalog.Lake:
        if lake.place.folder is None:
            return lake
        spark = SparkReader(lambda: lake.spark)
        where = str(lake.place)
        reader = FolderReader(lake.place.folder, self.engine, spark, self.on_engine, where)
        return replace(lake, session=lambda: lake.spark, reader=reader)

    def holder(self, action: str) -> SparkSession:
        """Return the session that may write; UsageError where the lake is not held."""
        if self._held is None:
            problem = "is not held: its with statement is missing" if self.write else "only reads"
            raise UsageError(f"the lake {problem}", where=action, expected=_HELD)
        return self.opening.session()

    def writer(self, action: str) -> catalog.Lake:
        """Return the pipeline's lake for writing, its missing tables made."""
        return connection.held_lake(self.holder(action), self.opening, self.the_pipeline())
