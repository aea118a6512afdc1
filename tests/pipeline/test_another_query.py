"""A query that is added: an entry of `dataflow.QUERIES` and its module, nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from daily_step import DAILY
from lakes import NOW
from runs import Small, opened
from tidemill.config import dataflow
from tidemill.config.settings import Clock, Place
from tidemill.errors import CheckpointError, QueryError
from tidemill.lake import discovery
from tidemill.monitoring import status
from tidemill.monitoring.status import Watched
from tidemill.operations.maintenance import log_retention
from tidemill.pipeline import batch_log, runner
from tidemill.pipeline.failures import explained

pytestmark = pytest.mark.stream


@pytest.fixture
def added(small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    """A lake of three queries, to which a fourth one is added."""
    monkeypatch.setattr(dataflow, "QUERIES", (*dataflow.QUERIES, DAILY))
    return small.copy_all(tmp_path)


def test_a_fourth_query(added: Small) -> None:
    with opened(added.root, added.definition) as pipeline:
        assert pipeline.queries == ("land", "clean", "feature", "daily")
        runner.run_once(pipeline, runner.Stop())
        lake = pipeline.lake

        # what it wrote: every event that the lake had before it
        days = lake.spark.table("engagement_daily").collect()
        assert sum(row["events"] for row in days) == lake.spark.table("engagement_events").count()

        # what it did, in `tidemill_batches`
        rows = batch_log.of_pipeline(lake).where("query = 'daily'").collect()
        assert [(row["batch"], row["events"], row["backlog"]) for row in rows] == [(0, 5, 0)]

        # maintenance keeps what it still reads
        followers = log_retention.readers(lake)["engagement_events"]
        assert [query.name for query in followers] == ["feature", "daily"]

        # its checkpoint is its own, and a lost one is refused
        with pytest.raises(CheckpointError, match="the checkpoint of daily is lost"):
            shutil.rmtree(lake.checkpoint("daily").folder / "offsets")
            pipeline.claim(["daily"])

    # `top` shows it behind the others, with the rows that wait for it
    flows = discovery.flows(discovery.Folder(added.root), Place(added.root))
    frame = status.frame(Place(added.root), [Watched(flow) for flow in flows], Clock(NOW))
    (shown,) = frame["pipelines"]
    assert [query["query"] for query in shown["queries"]] == ["land", "clean", "feature", "daily"]
    assert shown["queries"][-1]["events"] == 5


def test_its_errors_are_a_querys(added: Small) -> None:
    error = explained(ValueError("no day"), "daily")
    assert type(error) is QueryError
    assert str(error).startswith("daily failed: no day")
