"""A signal ends a run after the batch that is under way, as a terminal or a scheduler sends it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from children import Child, Children
from command_line import Answer
from lakes import at
from runs import Small, reading, write_file


def batch_under_way(root: Path) -> bool:
    """Whether feature has planned its second batch and not ended it."""
    folder = root / "_checkpoints" / "engagement_feature"
    return (folder / "offsets" / "1").exists() and not (folder / "commits" / "1").exists()


def continuous(small: Small, children: Children, folder: Path) -> tuple[Child, Small]:
    """A child that runs on, with a new file to bring in, caught in the middle of a batch."""
    mine = small.copy_all(folder)
    event = '{"profile_id": "p9", "gti": "g", "event_type": "view", "event_timestamp": "%s"}'
    write_file(mine.input, "2.jsonl", [event % at("11:40").isoformat()])
    words = ("--source", "files", "--input", mine.input, "--root", mine.root, "--trigger", "1s")
    child = children.tidemill("run", "engagement", *words, "--json")
    child.until(lambda: batch_under_way(mine.root))
    return child, mine


@pytest.mark.stream
@pytest.mark.parametrize("end", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_a_run_after_its_batch(
    end: str, small: Small, children: Children, tmp_path: Path, spark: SparkSession
) -> None:
    child, mine = continuous(small, children, tmp_path)
    if end == "SIGINT":  # a terminal sends Ctrl-C to the whole group, Spark's processes too
        os.killpg(child.process.pid, signal.SIGINT)
    else:
        child.process.terminate()
    assert child.ended() == 0, child.err.read_text()
    assert not batch_under_way(mine.root)
    summary = Answer(0, child.out.read_text(), "").json
    assert (summary["batches"], summary["accepted"], summary["keys_changed"]) == (1, 1, 1)
    assert summary["as_of"] == "2026-11-21T11:41:00Z"
    lake = reading(spark, mine.root)
    assert lake.ledgers()[0]["version"] == summary["gold_version"]
    assert lake.gold()["p9", "g"]["view_count_1h"] == 1
