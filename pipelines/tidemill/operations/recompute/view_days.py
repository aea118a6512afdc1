"""Days of a view's features: each key's at the end of the day, from the events alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.features import FeatureView
from tidemill.features.windows import BEGINNING
from tidemill.lake.catalog import Lake
from tidemill.lake.parameters import ask
from tidemill.lake.relations import Relation
from tidemill.lake.statements import statement
from tidemill.lake.tables import Table
from tidemill.lake.tables.day_tables import PARTITION, ROW
from tidemill.operations.recompute.late_causes import LATE
from tidemill.operations.recompute.wanted_days import ONE, KnownEvents, midnight


@dataclass(frozen=True)
class ViewDays:
    """The days of a view's features."""

    lake: Lake
    view: FeatureView

    kind = "view"
    lateness: timedelta = field(default=timedelta(0), init=False)

    @property
    def name(self) -> str:
        """The view's name."""
        return self.view.name

    @property
    def table(self) -> Table:
        """The table of its recomputed days."""
        return self.lake.tables.of(self.view).days

    def reads(self, day: date) -> tuple[datetime, datetime]:
        """Return from when to before when events are that the day's features count."""
        end = midnight(day) + ONE
        return (BEGINNING if self.view.has_lifetimes else end - self.view.horizon), end

    def rows(self, day: date, known: KnownEvents) -> DataFrame:
        """Return the features of each key that is not empty at the end of the day."""
        events = Relation(self.lake.tables.events.name, before_batch=known.batch + 1)
        text, (_, end) = statement("day_features", self.view), self.reads(day)
        values, spark = {"as_of": end, "batch": known.batch}, self.lake.spark
        rows = ask(spark, text, values, {"known_events": events.frame(spark)})
        return rows.select(*self.view.keys, *(column.name for column in self.view.shown))

    def differences(self, day: date, rows: DataFrame, known: KnownEvents) -> Mapping[str, int]:
        """Return how many keys had other features when the day was recomputed before: what came
        late since. Nothing of a day that is new."""
        table = self.lake.spark.table(self.table.name).where(F.col(PARTITION) == F.lit(day))
        if table.where(F.col("generation") == self.lake.generation).isEmpty():
            return {}
        before = table.where(F.col("row_kind") == ROW)
        values = [column.name for column in self.view.values]
        same = " AND ".join(f"old.{key} = new.{key}" for key in self.view.keys)
        old = before.select(F.struct(*self.view.keys, *values).alias("old"))
        new = rows.select(F.struct(*self.view.keys, *values).alias("new"))
        equal = " AND ".join(f"old.{name} <=> new.{name}" for name in values)
        pairs = old.join(new, F.expr(same), "full_outer")
        changed = pairs.where(f"old IS NULL OR new IS NULL OR NOT ({equal})").count()
        return {LATE: changed} if changed else {}
