"""When a run starts its queries."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakes import at
from runs import of_files, opened, reading, records_of, run_once, write_file
from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.pipeline import runner
from tidemill.pipeline.steps import feature_step


@pytest.mark.stream
def test_a_query_starts_with_the_first_rows_of_what_it_reads(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_file(tmp_path / "in", "a.json", records_of([("a", "p", "g", "view", at("11:30"))]))
    with opened(tmp_path / "lake", of_files(tmp_path / "in")) as pipeline:
        begun = {name: pipeline.has_begun(name) for name in pipeline.queries}
        assert begun == {"land": True, "clean": False, "feature": False}
        totals = runner.run_once(pipeline, runner.Stop())
        assert totals.keys_changed == 1
        assert all(map(pipeline.has_begun, pipeline.queries))


def test_a_views_state_goes_by_the_clock_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    write_file(tmp_path / "in", "a.json", records_of([("a", "p", "g", "view", at("11:30"))]))
    definition = of_files(tmp_path / "in").overridden({"engine": "stateful"})
    with opened(tmp_path / "lake", definition) as pipeline:
        assert [pipeline.has_begun(name) for name in pipeline.states] == [True]


def one_file_a_batch(folder: Path) -> PipelineDefinition:
    return of_files(folder).overridden({"max_files_per_trigger": 1})


def write_events(folder: Path, *minutes: str) -> None:
    for number, minute in enumerate(minutes):
        event = (f"{minute}", "p", "g", "view", at(minute))
        write_file(folder, f"{minute}.json", records_of([event]), age=30 - number)


@pytest.mark.stream
def test_gold_is_filled_by_one_refresh_and_follows_each_batch_then(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The first run once makes buckets of each batch, and gold of all of them: nobody reads what
    comes between."""
    definition = one_file_a_batch(tmp_path / "in")
    write_events(tmp_path / "in", "11:30", "11:31", "11:32")
    filled = [row for row in run_once(tmp_path / "lake", definition) if row.view]
    assert [(row.query, row.batch) for row in filled] == [("feature", 2)]
    assert filled[0].counts["events"] == 3
    assert "append" in filled[0].seconds, "the last batch refreshed, not the end of the run"
    write_events(tmp_path / "in", "11:33", "11:34")
    after = [row.batch for row in run_once(tmp_path / "lake", definition) if row.view]
    assert after == [3, 4]
    lake = reading(spark, tmp_path / "lake")
    told = [(ledger["from_batch"], ledger["batch"]) for ledger in lake.ledgers()]
    assert told == [(3, 4), (2, 3), (-1, 2)]
    assert lake.different() == 0


@pytest.mark.stream
def test_a_stop_leaves_gold_at_the_batch_that_it_waits_for(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_events(tmp_path / "in", "11:30", "11:31")
    stop, append = runner.Stop(), feature_step.append_batch

    def append_and_stop(*batch: object, **words: object) -> None:
        append(*batch, **words)
        stop.asked.set()

    monkeypatch.setattr(feature_step, "append_batch", append_and_stop)
    with opened(tmp_path / "lake", one_file_a_batch(tmp_path / "in")) as pipeline:
        runner.run_once(pipeline, stop)
        newest = [pipeline.lake.gold_state(view).batch for view in pipeline.definition.views]
    assert newest[0] >= 0
    assert reading(spark, tmp_path / "lake").different() == 0
