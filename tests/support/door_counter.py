"""A processor from outside the package: how many events a key had by each of its events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from tidemill import ProcessorKind, ProcessorOptions


class Options(ProcessorOptions):
    first: int = 0


class Counter(StatefulProcessor):
    def __init__(self, options: Options, keys: tuple[str, ...], clock: str) -> None:
        self.first, self.keys = options.first, keys

    def init(self, handle: Any) -> None:
        self.count = handle.getValueState("count", "count BIGINT")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        count = self.count.get()[0] if self.count.exists() else self.first
        for row in sorted(rows, key=lambda row: row["at"]):
            count += 1
            named = dict(zip(self.keys, key, strict=True))
            yield Row(**named, nth=count, at=row["at"])
        self.count.update((count,))


KIND = ProcessorKind(
    "door_counter",
    "the number of each event",
    Options,
    lambda options: (),
    lambda options, types: {"nth": "BIGINT"},
    "door_counter:Counter",
)
