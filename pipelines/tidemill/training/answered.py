"""What gold answered and since when: the view's history, and gold's own feed where it ends.

By the event clock an answer holds from its as_of on, which is the lake's own time then; by the wall
clock from when gold took it. So the history of a replay is as that of the days it replays.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.config.settings import Clock, micros_of, time_of_micros
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.parameters import ask
from tidemill.lake.statements import statement
from tidemill.pipeline.gold.history_feed import fed
from tidemill.pipeline.gold.served_versions import NOTHING, answers_since
from tidemill.training.known_times import KnownTimes


@dataclass(frozen=True)
class Answered:
    """The rows of a view's history, `__answered` since when each is the answer, in microseconds
    since 1970: of keys, and of versions."""

    keys: DataFrame
    versions: DataFrame

    def until(self, last: datetime) -> DataFrame:
        """Return the rows of keys that were answers at a time or before."""
        return self.keys.where(F.col("__answered") <= micros_of(last))


def answered(lake: Lake, view: FeatureView) -> Answered | None:
    """Return everything known of what gold answered, None where that is nothing."""
    table = lake.tables.of(view).history
    kept = fed(lake, view)
    known = lake.spark.table(table.name) if kept != NOTHING else None
    # A feed that does not reach back to the history leaves a gap, which only feeding it can state.
    tail = answers_since(lake, view, kept)
    if tail is not None and (known is None or not tail.begins):
        columns = tail.rows.select(*table.column_names)
        known = columns if known is None else known.unionByName(columns, allowMissingColumns=True)
    if known is None:
        return None
    axis = "as_of" if lake.pipeline.clock == "event" else "served_at"
    timed = known.withColumn("__answered", F.unix_micros(axis))
    return Answered(timed.where("kind <> 'version'"), timed.where("kind = 'version'"))


def known_times(lake: Lake, view: FeatureView, history: Answered, clock: Clock) -> KnownTimes:
    """Return from when to when it is known what gold answered, and between them the gaps.

    By the event clock the last time is that of the newest answer, by the wall clock it is now.
    """
    text = statement("history_times", view)
    begins = ask(lake.spark, text, {}, {f"{view.name}_versions": history.versions}).collect()
    newest = history.versions.agg(F.max("__answered")).collect()[0][0]
    last = time_of_micros(newest)
    if lake.pipeline.clock == "wall":
        last = max(last, clock.now())
    gaps = tuple(
        (time_of_micros(row["before"] + 1), time_of_micros(row["begins"])) for row in begins[1:]
    )
    return KnownTimes(time_of_micros(begins[0]["begins"]), last, gaps)
