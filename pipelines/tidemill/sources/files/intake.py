"""How a folder's new files are found, and what becomes of those that are read.

Spark's own file source lists the folder for each batch. Auto Loader, which Databricks has, keeps
what it has seen beside the checkpoint, and may be told of new files. The words are the same.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from tidemill.errors import InputError, SetupError

After = Literal["keep", "archive", "delete"]
_CLEANS = {"archive": "MOVE", "delete": "DELETE"}  # as Auto Loader calls it
# It removes nothing younger than a week otherwise.
_AUTO_LOADER_KEEPS = "1 day"


@dataclass(frozen=True)
class Intake:
    """What is done with a file `after` it is read, once its batch is committed: kept where it is,
    moved into `archive`, or deleted."""

    after: After = "keep"
    archive: Path | None = None
    auto_loader: bool = False

    @property
    def removes(self) -> bool:
        """Whether the folder may be empty because everything is read."""
        return self.after != "keep"

    def check(self, folder: Path) -> None:
        """Raise InputError for an archive inside the folder, which would be read again; SetupError
        for an Auto Loader elsewhere than on Databricks."""
        if self.archive is not None and self.archive.absolute().is_relative_to(folder):
            raise InputError(
                "the archive is inside the folder that is read",
                where=str(self.archive),
                expected=f"a folder elsewhere than in {folder}",
            )
        if self.auto_loader and "DATABRICKS_RUNTIME_VERSION" not in os.environ:
            raise SetupError(
                "Auto Loader is a part of Databricks",
                where="source.auto_loader",
                expected="auto_loader: false here, which reads with the same words",
            )

    def reader(self, spark: SparkSession, form: str, most_files: int) -> DataStreamReader:
        """Return the stream reader of a format, at most so many files in a batch."""
        if self.auto_loader:
            options = {"cloudFiles.format": form, "cloudFiles.maxFilesPerTrigger": str(most_files)}
            return spark.readStream.format("cloudFiles").options(**options, **self._cleaning())
        # Spark passes over files that are a week older than the newest: they may come late.
        options = {"maxFilesPerTrigger": str(most_files), "maxFileAge": "36500d"}
        reader = spark.readStream.format(form).option("recursiveFileLookup", True)
        return reader.options(**options, **self._cleaning())

    def _cleaning(self) -> dict[str, str]:
        if not self.removes:
            return {}
        if self.auto_loader:
            name, place = "cloudFiles.cleanSource", "cloudFiles.cleanSource.moveDestination"
            kept = {"cloudFiles.cleanSource.retentionDuration": _AUTO_LOADER_KEEPS}
            done = {name: _CLEANS[self.after], **kept}
        else:
            name, place = "cleanSource", "sourceArchiveDir"
            done = {name: self.after}
        return {**done, **({place: str(self.archive)} if self.archive else {})}


KEEP = Intake()
