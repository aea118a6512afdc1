"""The kind `files`: new files in a folder, JSON lines or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import model_validator

from tidemill.errors import InputError
from tidemill.sources.source_kind import SourceContext, SourceKind, SourceOption, SourceWords

if TYPE_CHECKING:
    from tidemill.sources.files.source import Files


class FilesSource(SourceWords):
    """New files in a folder, JSON lines or Parquet.

    `after` says what becomes of a file that is read: it stays, goes to the folder `archive`, or is
    deleted. `auto_loader` finds new files by Databricks' Auto Loader.
    """

    kind: Literal["files"]
    input: str | None = None
    after: Literal["keep", "archive", "delete"] = "keep"
    archive: str | None = None
    auto_loader: bool = False

    @model_validator(mode="after")
    def _check(self) -> FilesSource:
        if (self.after == "archive") != (self.archive is not None):
            raise ValueError("after: archive and the folder archive: DIR go together")
        return self


def _open(words: FilesSource, context: SourceContext) -> Files:
    from tidemill.sources.files.intake import Intake
    from tidemill.sources.files.source import Files

    if not words.input:
        raise InputError(
            "a files source has no folder", where="source", expected="--input DIR, or input: DIR"
        )
    archive = Path(words.archive).absolute() if words.archive else None
    intake = Intake(words.after, archive, words.auto_loader)
    return Files(Path(words.input), context.max_files, context.required, intake)


KIND = SourceKind(
    "files",
    "new files in a folder, JSON lines or Parquet",
    FilesSource,
    _open,
    options=(SourceOption("input", "The folder of a files source.", is_path=True),),
)
