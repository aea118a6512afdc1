"""A stream killed at any moment and run again: no row twice, none missing, as DuckDB says."""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from children import Children
from lakes import at
from runs import run_once, write_file
from stream_lakes import WORDS, Event, StreamLake, drawn, expected, join, records
from tidemill.config.pipeline_file import PipelineDefinition, read
from tidemill.config.settings import Place
from tidemill.lake import times
from tidemill.lake.commits.failpoints import STREAM_POINTS
from tidemill.lake.open import open_for_reading

pytestmark = pytest.mark.crash

VISITS = {"keys": ["item"], "gap": "10m", "watermark": "10m", "page": "kind"}
TOTALS = {"keys": ["item"], "length": "1h", "watermark": "10m", "compute": {"events": "count"}}
EVENTS = drawn(11, at("08:00"), 180)
WATERMARK = max(time for _, _, time in EVENTS) - timedelta(minutes=10)


def declare(folder: Path) -> PipelineDefinition:
    """A pipeline of two streams over three files, of which each is a batch."""
    for number in range(3):
        texts = records(EVENTS)[number * 40 : number * 40 + 40]
        write_file(folder / "events", f"{number}.jsonl", texts, age=60 - number)
    source = {"kind": "files", "input": str(folder / "events")}
    streams = [
        *({"name": f"{kind}_pairs", "join": join(kind=kind)} for kind in ("inner", "full")),
        {"name": "visits", "sessions": VISITS},
        {"name": "items_by_window", "totals": TOTALS},
    ]
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
    counted = Counter((item, time.replace(minute=0, second=0)) for _, item, time in EVENTS)
    totals = times.collect(spark.table("items_by_window"))
    assert {(row["item"], row["window_start"]): row["events"] for row in totals} == counted
    assert len(totals) == len(counted)
    visits = times.collect(spark.table("visits"))
    found = sorted((row["item"], row["session_start"], row["page_views"]) for row in visits)
    assert found == sessions(EVENTS)


def sessions(events: Sequence[Event]) -> list[tuple[str, datetime, int]]:
    """Each item's events that follow each other within ten minutes: the first, and how many."""
    found: list[list[Any]] = []
    newest: dict[str, list[Any]] = {}
    for item, moment in sorted((item, moment) for _, item, moment in events):
        session = newest.get(item)
        if session is None or moment - session[3] > timedelta(minutes=10):
            session = newest[item] = [item, moment, 0, moment]
            found.append(session)
        session[2:] = [session[2] + 1, moment]
    return [(item, start, number) for item, start, number, _ in found]


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
