"""What gold answered."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame

from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.training.known_times import KnownTimes


def known(lake: Lake, view: FeatureView) -> KnownTimes | None:
    """Return the times."""
    raise NotImplementedError


def values(
    lake: Lake, view: FeatureView, edges: DataFrame, first: datetime, last: datetime, keys: int
) -> DataFrame:
    """Return values."""
    raise NotImplementedError
