"""How far a sink has come: a small file beside the checkpoints, written behind what was sent.

A process that dies between the two sends again what it sent last: at least once.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from tidemill.errors import LakeError
from tidemill.lake import catalog
from tidemill.lake.catalog import Lake
from tidemill.lake.integrity.whole_file import write_json
from tidemill.lake.relations import Relation
from tidemill.pipeline.failures import sentence


@dataclass(frozen=True)
class Mark:
    """How far a sink has come: all of a table's versions up to one, and so many rows behind it.

    One that `begins` sends what the table held at that version, and has sent so many rows of it.
    """

    version: int
    rows: int = 0
    begins: bool = False


@dataclass(frozen=True)
class SentVersion:
    """The file of a sink: what it has sent of a table, which `generation` tells from one that was
    made again, to a `target`."""

    path: Path
    generation: str
    target: str

    @classmethod
    def of_sink(cls, lake: Lake, sink: str, generation: str, target: str) -> SentVersion:
        """Return the file of one of a pipeline's sinks."""
        folder = f"{lake.pipeline.pipeline}_sink_{sink}"
        return cls(catalog.checkpoint_root(lake.place) / folder / "sent.json", generation, target)

    def changes(self, lake: Lake, table: str, after: int, newest: int) -> DataFrame:
        """Return the change data feed of a table from behind one of its versions to its newest one;
        LakeError where it has no longer all of it: Delta itself passes over versions that are gone.
        """
        wanted = newest - after
        if len(lake.commits(table, wanted)) < wanted:
            raise self.lost(table, f"its log has not all versions since {after}")
        try:
            return Relation(table, changes=(after + 1, newest)).frame(lake.spark)
        except Exception as error:  # py4j's too
            raise self.lost(table, sentence(error)) from error

    def lost(self, table: str, why: str) -> LakeError:
        """Return the error for changes that cannot be read, with the way out."""
        return LakeError(
            f"its changes cannot be read: {why}",
            where=table,
            expected=f"the versions since the one in {self.path}; without that file the sink "
            "begins anew, with what is there now",
        )

    def mark(self) -> Mark | None:
        """Return how far it has come; None where another table's rows, or those for another
        target, were sent."""
        try:
            said = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        mine = (said["generation"], said["topic"]) == (self.generation, self.target)
        if not mine:
            return None
        return Mark(int(said["version"]), said.get("rows", 0), said.get("begins", False))

    def write(self, mark: Mark) -> None:
        """Write down how far it has come, whole or not at all."""
        said = {"generation": self.generation, "topic": self.target, **asdict(mark)}
        write_json(self.path, said)
