"""What Spark's progress says of how far a source is behind, as the gauges have it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from lakes import NOW
from tidemill.config.settings import Clock
from tidemill.monitoring.prometheus import Exporter
from tidemill.monitoring.query_listener import Progress, how_far_behind

KINESIS = json.dumps({"millisBehindLatest": 90_000, "shards": {"shardId-0": 90_000}})


@pytest.mark.parametrize(
    ("offset", "metrics", "behind"),
    [
        (KINESIS, {}, [("tidemill_source_behind_seconds", 90.0)]),
        ("{}", {"maxMsBehindLatest": "1500"}, [("tidemill_source_behind_seconds", 1.5)]),
        (
            '{"plays":{"0":12}}',
            {"avgOffsetsBehindLatest": "2.5", "maxOffsetsBehindLatest": "5"},
            [("tidemill_source_behind_records", 5.0)],
        ),
        ("7", None, []),
        (None, {}, []),
        ("not JSON", {}, []),
    ],
)
def test_how_far_behind(offset: str | None, metrics: Any, behind: list[Any]) -> None:
    assert [*how_far_behind(SimpleNamespace(latestOffset=offset, metrics=metrics))] == behind


def test_a_query_that_finds_nothing_new_is_not_behind() -> None:
    exporter = Exporter("plays", Clock(NOW))
    listener: Any = Progress(exporter)
    source = SimpleNamespace(latestOffset=KINESIS, metrics={})
    progress = SimpleNamespace(
        runId="r",
        inputRowsPerSecond=1.0,
        processedRowsPerSecond=1.0,
        durationMs={},
        sources=[source],
    )
    labels = {"pipeline": "plays", "query": "land"}

    def behind() -> float | None:
        return exporter.registry.get_sample_value("tidemill_source_behind_seconds", labels)

    listener.onQueryStarted(SimpleNamespace(name="plays_land", runId="r"))
    listener.onQueryIdle(SimpleNamespace(runId="r"))
    assert behind() is None
    listener.onQueryProgress(SimpleNamespace(progress=progress))
    assert behind() == 90.0
    listener.onQueryIdle(SimpleNamespace(runId="r"))
    assert behind() == 0.0
    listener.onQueryIdle(SimpleNamespace(runId="another pipeline's"))
