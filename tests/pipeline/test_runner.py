"""When a run starts its queries."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakes import at
from runs import of_files, opened, records_of, write_file
from tidemill.pipeline import runner


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
