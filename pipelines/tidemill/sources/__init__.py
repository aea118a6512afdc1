"""Where records come from: one module per kind, all of the shape of `Source`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["UNDECODED", "Source"]

UNDECODED = "base64:"
"""What a payload begins with that a source could not read as text; the bytes follow."""


class Source(Protocol):
    """What the pipeline asks of a source, whatever its kind."""

    def identity(self) -> dict[str, str | int]:
        """Return what makes two runs read the same thing; kept with the land checkpoint."""
        ...

    def check(self, *, once: bool) -> None:
        """Raise InputError for what is wrong at start; `once` needs something to read."""
        ...

    def check_new(self, since: datetime) -> None:
        """Raise InputError for what came after a time, of this machine's clock, and is wrong; asked
        once a minute of a run that goes on, so it looks at nothing else."""
        ...

    def ready(self) -> bool:
        """Return whether `stream` can be called; a source may have to wait for its first file."""
        ...

    def stream(self, spark: SparkSession) -> DataFrame:
        """Return the stream: record_id, raw_payload, topic, partition, offset, source_ts. A source
        without partitions or offsets may leave these two out: bronze then reads null."""
        ...
