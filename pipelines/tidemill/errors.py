"""Every error Tidemill raises on purpose.

TidemillError                 base; never raised itself
├── UsageError                what was typed or declared cannot be done (exit 2)
│   ├── DefinitionError       a pipeline file or a feature view is wrong
│   ├── InputError            the input folder or a file in it is wrong
│   ├── LakeError             the root is no lake, or not this pipeline's
│   │   ├── LockedError       another writer holds the lake
│   │   └── CheckpointError   a checkpoint is lost, or belongs to something else
│   ├── RequestError          the prediction API refuses a request; it has the HTTP status
│   └── SetupError            Java, Python, a package or a jar is missing
└── RunError                  it started and cannot go on (exit 3)
    ├── LedgerError           a table's commits contradict what is about to be written
    ├── QueryError            a streaming query failed, or ended by itself
    ├── SourceError           what records come from does not answer, or refuses us
    ├── ModelError            a model whose score a rule reads fails
    ├── StoreError            the online store does not answer, is full, or refuses us
    └── DiskFullError         the disk that holds the lake is full

A message says what was found and what to do; `where` names the file, field or table; `expected`
what would have been right. Spark's own errors pass through; they are caught only to add where they
happened.
"""

from __future__ import annotations


class TidemillError(Exception):
    """Base of all errors; `exit_code` is the command line's."""

    exit_code = 3

    def __init__(self, message: str, *, where: str | None = None, expected: str | None = None):
        """Hold the parts of the message; `str` puts them together."""
        super().__init__(message)
        self.message = message
        self.where = where
        self.expected = expected

    @property
    def kind(self) -> str:
        """The class as a word for JSON: `LockedError` is `locked`."""
        return type(self).__name__.removesuffix("Error").lower()

    def __str__(self) -> str:
        """Return where, what was found, and what was expected."""
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text} (expected: {self.expected})" if self.expected else text

    def as_dict(self) -> dict[str, str | None]:
        """Return the error as the command line's JSON object."""
        return {
            "kind": self.kind,
            "message": self.message,
            "where": self.where,
            "expected": self.expected,
        }


class UsageError(TidemillError):
    """What was typed or declared cannot be done."""

    exit_code = 2


class DefinitionError(UsageError):
    """A pipeline file or a feature view is wrong."""


class InputError(UsageError):
    """The input folder, or a file in it, cannot be read as events."""


class LakeError(UsageError):
    """The root is no lake, cannot be written, or holds something else than this pipeline."""


class LockedError(LakeError):
    """Another writer holds the lake."""


class CheckpointError(LakeError):
    """A checkpoint is lost, or belongs to another pipeline, source or generation."""


class SetupError(UsageError):
    """Java, Python, a package or a jar is missing or too old."""


class RequestError(UsageError):
    """A request to the prediction API is refused: 401, 403, 404, 408, 413, 422 or 429."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        where: str | None = None,
        expected: str | None = None,
    ):
        """Hold the parts of the message, and the HTTP status."""
        super().__init__(message, where=where, expected=expected)
        self.status = status


class RunError(TidemillError):
    """It started and cannot go on; running again continues from the last commit."""


class ModelError(RunError):
    """A model whose score a rule reads cannot be loaded where it is asked, or fails."""


class LedgerError(RunError):
    """A table's commits contradict what is about to be written."""


class QueryError(RunError):
    """A streaming query failed, or ended by itself while it should run."""


class SourceError(RunError):
    """What records come from, or what describes them, does not answer, or refuses us."""


class StoreError(RunError):
    """The online store does not answer, is full, or refuses what is asked of it."""


class DiskFullError(RunError):
    """The disk that holds the lake is full."""
