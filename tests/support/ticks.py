"""Refreshes of a test's lake: by another mode, to another time."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from lakes import TestLake
from tidemill.pipeline.gold import refresh as gold
from tidemill.pipeline.silver import minute_buckets


def wishing(lake: TestLake, mode: str) -> TestLake:
    """The lake with another word for `refresh` in its definition."""
    definition = lake.lake.pipeline.overridden({"refresh": mode})
    lake.lake = replace(lake.lake, pipeline=definition)
    return lake


def refresh_at(lake: TestLake, as_of: datetime) -> gold.Refreshed:
    batch = minute_buckets.bucketed(lake.lake, lake.view).batch
    return gold.refresh(lake.lake, lake.view, as_of=as_of, batch=batch)
