"""`tidemill_profiles`: where the time of profiled batches went, kept for the report and for SQL.

One row per batch and stack, appended by the run's main thread, in a commit a minute and one when
the run ends; the table is made by the first profiled run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from tidemill.lake.catalog import Lake
from tidemill.lake.commits import writer
from tidemill.lake.schema import creation
from tidemill.lake.statements import statement
from tidemill.monitoring.profile.batch_profile import BatchProfile, Profiles
from tidemill.monitoring.profile.flame import BETWEEN
from tidemill.pipeline.observer import Observer

if TYPE_CHECKING:
    from tidemill.pipeline.queries import Pipeline

KEEP_EVERY = 60.0  # seconds


class Keeper(Observer):
    """Appends a run's profiles to the table once a minute, from the main thread."""

    def __init__(self, profiles: Profiles):
        """Keep these."""
        self._profiles, self._kept = profiles, time.monotonic()

    def on_idle(self, pipeline: Pipeline, busy: bool) -> None:
        """Keep what came, when it is time."""
        if time.monotonic() - self._kept >= KEEP_EVERY:
            self.keep(pipeline)

    def keep(self, pipeline: Pipeline) -> None:
        """Keep what came."""
        keep(pipeline.lake, self._profiles.fresh())
        self._kept = time.monotonic()


def keep(lake: Lake, profiles: Sequence[BatchProfile]) -> None:
    """Append the profiles, in one commit; none make no commit."""
    rows = [row for profile in profiles for row in _rows(lake, profile)]
    if not rows:
        return
    table = lake.tables.profiles
    creation.ensure(lake, table)
    schema: StructType = lake.spark.table(table.name).schema
    frame = lake.spark.createDataFrame(rows, schema).coalesce(1)
    fields = {"generation": lake.generation, "batch": -1, "pipeline": lake.pipeline.pipeline}
    writer.write(frame, table.name, fields)


def since(lake: Lake, first: datetime) -> list[BatchProfile]:
    """Return the profiles of the pipeline's batches that began at a time or later, oldest first;
    none where no run was profiled."""
    if not lake.has(lake.tables.profiles.name):
        return []
    pipeline = lake.pipeline
    text = statement("profiles_since", pipeline.views[0], source=pipeline.pipeline)
    kept: dict[tuple[str, int | None, datetime], dict[tuple[tuple[str, ...], str], float]] = {}
    looks: dict[tuple[str, int | None, datetime], int] = {}
    for row in lake.ask(text, {"since": first}).rows:
        key = (row["query"], row["batch"], row["started_at"])
        stack = tuple(row["stack"].split(BETWEEN)) if row["stack"] else ()
        kept.setdefault(key, {})[stack, row["part"]] = row["seconds"]
        looks[key] = row["looks"]
    profiles = [
        BatchProfile(query, batch, at, sum(stacks.values()), looks[query, batch, at], stacks)
        for (query, batch, at), stacks in kept.items()
    ]
    return sorted(profiles, key=lambda profile: profile.started_at)


def _rows(lake: Lake, profile: BatchProfile) -> Iterator[dict[str, Any]]:
    for (stack, part), seconds in profile.stacks.items():
        yield {
            "pipeline": lake.pipeline.pipeline,
            "query": profile.query,
            "batch": profile.batch,
            "started_at": profile.started_at,
            "stack": BETWEEN.join(stack),
            "part": part,
            "seconds": seconds,
            "looks": profile.looks,
            "date": profile.started_at.date(),
        }
