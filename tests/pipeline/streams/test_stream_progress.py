"""What the progress of a stream's batch tells, as a session and as Spark Connect bring it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import Row

from tidemill.pipeline.streams.stream_progress import StreamProgress


def row(apart: bool, **columns: Any) -> Row:
    """What was observed; `apart` as PySpark has a row on Spark Connect."""
    if not apart:
        return Row(**columns)
    schema = {"type": "struct", "fields": [{"name": name} for name in columns]}
    return Row(values=[*columns.values()], schema=schema)


@pytest.mark.parametrize("apart", [False, True], ids=["session", "connect"])
def test_what_was_observed_has_its_names(apart: bool) -> None:
    state = SimpleNamespace(
        numRowsDroppedByWatermark=1, numRowsTotal=3, memoryUsedBytes=10, customMetrics={}
    )
    progress = SimpleNamespace(
        stateOperators=[state],
        observedMetrics={
            "tidemill_input_ask": row(apart, watermark=1_500_000, rows=3),
            "tidemill_input_buy": row(apart, watermark=None, rows=0),
            "tidemill_result": row(apart, rows=2, matched=1),
        },
    )
    told = StreamProgress.of(progress)
    assert told is not None
    inputs = {name: (each.rows, each.watermark) for name, each in told.inputs.items()}
    assert inputs == {"ask": (3, 1.5), "buy": (0, None)}
    assert (told.rows, told.hits, told.dropped, told.state_rows) == (2, 1, 1, 3)
