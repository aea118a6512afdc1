"""What Spark's progress tells of a stream: its inputs, what came out, and its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidemill.pipeline.streams.operators.input_rows import OBSERVED, ROWS, WATERMARK
from tidemill.pipeline.streams.stream_rows import MATCHED, OUT, RESULT

_DUPLICATES = "numDroppedDuplicateRows"  # among an operator's own metrics
_FILES = "rocksdbSstFileSize"


@dataclass(frozen=True)
class InputProgress:
    """What an input took in a batch: how many rows, and its watermark, in seconds; None where no
    event came at all."""

    rows: int
    watermark: float | None


@dataclass(frozen=True)
class StreamProgress:
    """A batch of a stream.

    inputs: by name, in their order; rows: those that came out; hits: pairs of a join, duplicates
    that were left out; dropped: rows that were older than the watermark; state_rows, state_bytes:
    what the state holds after it, in memory and in RocksDB's files.
    """

    inputs: Mapping[str, InputProgress]
    rows: int
    hits: int
    dropped: int
    state_rows: int
    state_bytes: int

    @classmethod
    def of(cls, progress: Any) -> StreamProgress | None:
        """Return what the progress of a streaming query tells; None where it keeps no state."""
        operators = list(progress.stateOperators)
        if not operators:
            return None
        observed = {name: _named(row.asDict()) for name, row in progress.observedMetrics.items()}
        inputs = {
            name.removeprefix(OBSERVED): InputProgress(int(row[ROWS]), _seconds(row[WATERMARK]))
            for name, row in observed.items()
            if name.startswith(OBSERVED)
        }
        result = observed.get(RESULT, {})
        hits = result.get(MATCHED, sum(_own(each, _DUPLICATES) for each in operators))
        return cls(
            inputs,
            int(result.get(OUT, 0)),
            int(hits),
            sum(each.numRowsDroppedByWatermark for each in operators),
            sum(each.numRowsTotal for each in operators),
            sum(each.memoryUsedBytes + _own(each, _FILES) for each in operators),
        )


def _named(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what was observed by its names. PySpark (4.2) on Spark Connect takes a row that comes
    with its schema for one of two columns, `values` and `schema`."""
    if row.keys() != {"values", "schema"}:
        return row
    names = [field["name"] for field in row["schema"]["fields"]]
    return dict(zip(names, row["values"], strict=True))


def _own(operator: Any, metric: str) -> int:
    return int((operator.customMetrics or {}).get(metric, 0))


def _seconds(micros: int | None) -> float | None:
    return None if micros is None else micros / 1e6
