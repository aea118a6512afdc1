"""The streams of the shipped pipelines over their generators' data: as DuckDB and Python have them,
run through or killed ten times on the way."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from children import Children
from lakes import NOW
from runs import run_once
from shipped import ORACLES
from shipped_streams import STREAMS, check
from tidemill.config.pipeline_file import SHIPPED, PipelineDefinition, read, shipped
from tidemill.config.settings import Place
from tidemill.lake import times
from tidemill.lake.open import open_for_reading

KILLS = 10


def declare(folder: Path, name: str) -> tuple[Path, PipelineDefinition]:
    """A shipped pipeline with fewer events, in eight batches."""
    words: dict[str, Any] = yaml.safe_load((SHIPPED / f"{name}.yaml").read_text())
    words["source"] |= {
        "rate": 12,
        "minutes": 480,
        "minutes_per_batch": 60,
        "start": NOW.replace(hour=1).isoformat(),
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(words, sort_keys=False))
    return path, read(path)


def finish(spark: SparkSession, folder: Path, definition: PipelineDefinition) -> None:
    """Finish what was begun, and compare each stream with what the valid records give."""
    run_once(folder / "lake", definition)
    lake = open_for_reading(spark, Place(folder / "lake"), definition)
    name = definition.pipeline
    payloads = [row[0] for row in spark.table(f"{name}_bronze").select("raw_payload").collect()]
    events = ORACLES[name].events(payloads)
    assert len(events) == spark.table(f"{name}_events").count() > 1000
    expected = STREAMS[name](events)
    assert set(expected) == set(lake.tables.streams)
    for stream, rows in expected.items():
        assert rows.sure
        found = [row.asDict() for row in times.collect(spark.table(stream))]
        if stream == "first_activity":  # a key comes again when it was forgotten
            found = list({tuple(row[c] for c in rows.columns): row for row in found}.values())
        check(stream, rows, found)


def test_every_shipped_stream_has_an_oracle() -> None:
    declared = {name for name in shipped() if read(SHIPPED / f"{name}.yaml").streams}
    assert declared == set(STREAMS)


@pytest.mark.stream
@pytest.mark.parametrize("name", STREAMS)
def test_streams_hold_what_their_events_give(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    _, definition = declare(tmp_path, name)
    finish(spark, tmp_path, definition)


@pytest.mark.full
@pytest.mark.crash
@pytest.mark.parametrize("name", STREAMS)
def test_killed_ten_times_on_the_way(
    name: str, children: Children, spark: SparkSession, tmp_path: Path
) -> None:
    """Each time some moments after a stream has begun another batch, as the seed says."""
    path, definition = declare(tmp_path, name)
    choose = random.Random(name)
    checkpoints = tmp_path / "lake" / "_checkpoints"
    for _ in range(KILLS):
        child = children.tidemill(
            "run", path, "--once", "--root", tmp_path / "lake", "--wait", "60s"
        )
        before = len([*checkpoints.glob(f"{name}_stream_*/offsets/[0-9]*")])

        def begun(known: int = before) -> bool:
            return len([*checkpoints.glob(f"{name}_stream_*/offsets/[0-9]*")]) > known

        deadline = time.monotonic() + 60
        while child.process.poll() is None and not begun() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(choose.uniform(0, 3))
        child.process.kill()
        child.process.wait()
    finish(spark, tmp_path, definition)
