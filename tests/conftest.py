"""One Spark session for the whole run, and lakes in temporary folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lakes import Lakes
from pyspark.sql import SparkSession

from tidemill.session import local_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The run's only session, set for many small queries: planning costs more than running."""
    session = local_session(
        driver_memory="3g",
        shuffle_partitions=1,
        extra={
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.codegen.wholeStage": "false",
            "spark.databricks.delta.snapshotPartitions": "1",
        },
    )
    yield session
    session.stop()


@pytest.fixture
def lakes(spark: SparkSession, tmp_path: Path) -> Lakes:
    """Makes lakes in this test's own folder."""
    return Lakes(spark, tmp_path)
