"""A `history` that becomes shorter, or longer: which old events a rebuild takes from bronze."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import command_line
import sales
from lakes import NOW
from runs import write_file
from sales import record
from sales_project import declare, done
from tidemill.config.settings import Place
from tidemill.features import count
from tidemill.lake.catalog import register

VIEW = sales.declare([count().over("lifetime", "1h")]).views[0].words()
DAY = timedelta(days=1)
OLD = 40


def sold(seed: int, days: int) -> list[str]:
    """Sales of ten hours, so many days before NOW."""
    drawn = sales.draw(random.Random(seed), NOW - days * DAY, 600, OLD)
    return [record(sale) for sale in drawn]


@pytest.mark.stream
def test_what_was_taken_stays_taken(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def landed(day: int, history: str) -> Any:
        """Land sales of nine or ten days before, at a day from NOW on."""
        monkeypatch.setattr(command_line, "NOW", NOW + day * DAY)
        declare(tmp_path, [VIEW], history=history)
        write_file(tmp_path / "events", f"{day}.jsonl", sold(day, 9 - day), age=90 - day)
        return done(tmp_path, "run", "--once")

    def rebuilt(history: str) -> Any:
        declare(tmp_path, [VIEW], history=history)
        return done(tmp_path, "rebuild", "--from", "bronze")

    def lifetimes() -> int:
        register(spark, Place(tmp_path / "lake"))
        return int(spark.sql("SELECT sum(count_lifetime) FROM sales_features").collect()[0][0])

    assert landed(0, "20d")["accepted"] == OLD
    refused = landed(1, "30h")
    assert (refused["accepted"], refused["quarantined"]) == (0, OLD), "landed under 30 hours"
    assert rebuilt("30h")["quarantined"] == OLD
    assert lifetimes() == OLD, "what was taken under 20 days is taken again"
    assert rebuilt("20d")["quarantined"] == 0
    assert lifetimes() == 2 * OLD, "a longer one holds for all"
    assert rebuilt("30h")["quarantined"] == 0
    assert lifetimes() == 2 * OLD
    assert landed(2, "30h")["quarantined"] == OLD
    assert done(tmp_path, "reconcile", "--from", "events")["different"] == 0
