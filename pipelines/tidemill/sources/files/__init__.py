"""The kind `files`: new files in a folder, JSON lines or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tidemill.errors import InputError
from tidemill.sources.source_kind import SourceContext, SourceKind, SourceOption, SourceWords

if TYPE_CHECKING:
    from tidemill.sources.files.source import Files


class FilesSource(SourceWords):
    """New files in a folder, JSON lines or Parquet."""

    kind: Literal["files"]
    input: str | None = None


def _open(words: FilesSource, context: SourceContext) -> Files:
    from tidemill.sources.files.source import Files

    if not words.input:
        raise InputError(
            "a files source has no folder", where="source", expected="--input DIR, or input: DIR"
        )
    return Files(Path(words.input), context.max_files, context.required)


KIND = SourceKind(
    "files",
    "new files in a folder, JSON lines or Parquet",
    FilesSource,
    _open,
    options=(SourceOption("input", "The folder of a files source.", is_path=True),),
)
