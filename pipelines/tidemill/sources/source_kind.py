"""A kind of source: its words in a pipeline's file, and how it is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from tidemill.errors import TidemillError

if TYPE_CHECKING:
    from tidemill.sources import Source


class Words(BaseModel):
    """Words of a pipeline's file: frozen, and unknown ones are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class SourceWords(Words):
    """The words of a source in a pipeline's file.

    A kind's own class adds `kind: Literal["its name"]` and its options, each with a default where
    `tidemill run --source NAME` shall do without.
    """

    kind: str


@dataclass(frozen=True)
class SourceContext:
    """What a pipeline tells a source that it opens.

    `required` are the columns that each record has, by name, with their types as the file declares
    them. `max_files` and `max_records` limit a batch, None where the pipeline says nothing. `now`
    is the clock's time where it stands still (tests), else None. `known` is the identity of the
    source that land has read before, empty for a new lake.
    """

    pipeline: str
    required: Mapping[str, str] = field(default_factory=dict)
    max_files: int = 1000
    max_records: int | None = None
    now: datetime | None = None
    known: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SourceOption:
    """A word of a source that the command line takes too: `--input DIR` is `input: DIR`.

    `is_path`: it names a file or folder, which counts from where the command is typed.
    """

    word: str
    help: str
    is_path: bool = False

    @property
    def flag(self) -> str:
        """The option as it is typed."""
        return f"--{self.word.replace('_', '-')}"


@dataclass(frozen=True)
class SourceKind:
    """One kind of source: what `kind:` and `--source` call it, a line of help, its words, and what
    opens it; `open` may raise InputError, and imports Spark itself.

    `options` are the words that may be typed. `clock` is the one of a pipeline that names none.
    `jars` are the coordinates of what Spark needs and does not bring, each of them: none is fetched
    for their sake. `explain` returns our own error for the text of one of Spark's that the source
    caused, else None.
    """

    name: str
    help: str
    words: type[SourceWords]
    open: Callable[[Any, SourceContext], Source]
    options: tuple[SourceOption, ...] = ()
    clock: Literal["event", "wall"] = "event"
    jars: tuple[str, ...] = ()
    explain: Callable[[str], TidemillError | None] | None = None
