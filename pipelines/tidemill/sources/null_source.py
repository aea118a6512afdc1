"""No source: what a rebuild has, which reads bronze and the events, and never runs `land`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NoReturn

from tidemill.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Absent:
    """Stands where a source is not read; whoever reads it after all gets InputError."""

    def identity(self) -> dict[str, str | int]:
        """Raise InputError."""
        _refuse()

    def check(self, *, once: bool) -> None:
        """Accept: there is nothing to check."""

    def check_new(self, since: datetime) -> None:
        """Accept: nothing comes."""

    def ready(self) -> bool:
        """Return False: there will never be anything to read."""
        return False

    def stream(self, spark: SparkSession) -> DataFrame:
        """Raise InputError."""
        _refuse()


def _refuse() -> NoReturn:
    raise InputError("has no source: it was opened without one", where="source")
