"""A stream killed at any moment and run again: no row twice, none missing, as DuckDB says."""

from __future__ import annotations

import json
import random
import signal
import time
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from children import Children
from lakes import at
from runs import run_once, write_file
from stream_lakes import WORDS, StreamLake, drawn, expected, join, records
from tidemill.config.pipeline_file import PipelineDefinition, read
from tidemill.config.settings import Place
from tidemill.lake.commits.failpoints import STREAM_POINTS
from tidemill.lake.open import open_for_reading

pytestmark = pytest.mark.crash

EVENTS = drawn(11, at("08:00"), 180)
WATERMARK = max(time for _, _, time in EVENTS) - timedelta(minutes=10)


def declare(folder: Path) -> PipelineDefinition:
    """A pipeline of two streams over three files, of which each is a batch."""
    for number in range(3):
        texts = records(EVENTS)[number * 40 : number * 40 + 40]
        write_file(folder / "events", f"{number}.jsonl", texts, age=60 - number)
    source = {"kind": "files", "input": str(folder / "events")}
    streams = [{"name": f"{kind}_pairs", "join": join(kind=kind)} for kind in ("inner", "full")]
    words = {**WORDS, "source": source, "streams": streams, "max_files_per_trigger": 1}
    path = folder / "shop.yaml"
    path.write_text(json.dumps(words))
    return read(path)


def check(spark: SparkSession, folder: Path, definition: PipelineDefinition) -> None:
    """Finish what was begun, and compare."""
    run_once(folder / "lake", definition)
    lake = StreamLake(open_for_reading(spark, Place(folder / "lake"), definition))
    for kind in ("inner", "full"):
        assert lake.pairs(f"{kind}_pairs") == expected(EVENTS, kind, WATERMARK), kind


def test_sigkill_before_and_after_the_append(
    children: Children, spark: SparkSession, tmp_path: Path
) -> None:
    definition = declare(tmp_path)
    for point in (*STREAM_POINTS, *(f"{point}@2" for point in STREAM_POINTS)):
        words = ("--once", "--root", tmp_path / "lake", "--wait", "60s")
        child = children.tidemill(
            "run", tmp_path / "shop.yaml", *words, TIDEMILL_FAIL_AT=f"{point}:kill"
        )
        assert child.ended() == -signal.SIGKILL, child.err.read_text()
    check(spark, tmp_path, definition)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(10))
def test_sigkill_at_any_moment(
    seed: int, children: Children, spark: SparkSession, tmp_path: Path
) -> None:
    """Killed up to three times, each some seconds after its streams begin."""
    definition, choose = declare(tmp_path), random.Random(seed)
    begun = tmp_path / "lake" / "_checkpoints" / "shop_stream_inner_pairs" / "offsets"
    for _ in range(3):
        words = ("--once", "--root", tmp_path / "lake", "--wait", "60s")
        child = children.tidemill("run", tmp_path / "shop.yaml", *words)
        child.until(begun.exists)
        time.sleep(choose.uniform(0, 8))
        child.process.kill()
        child.ended()
    check(spark, tmp_path, definition)
