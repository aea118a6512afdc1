"""The features of keys at times as gold answered them: what came late is not in them before it
came."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.parameters import ask
from tidemill.lake.statements import statement
from tidemill.training.answered import Answered

_FEW_KEYS = 200_000  # so many go to every task; more are joined by a shuffle


def values(
    lake: Lake,
    view: FeatureView,
    history: Answered,
    edges: DataFrame,
    last: datetime,
    keys: int,
) -> DataFrame:
    """Return what gold answered for the keys at the times of `edges`, `{keys, __edge, features}`.

    `edges` are distinct, `__edge` in microseconds since 1970, none after `last`; about so many
    different `keys` are in them.
    """
    of_spine = edges.select(*view.keys).distinct()
    of_spine = F.broadcast(of_spine) if keys <= _FEW_KEYS else of_spine
    frames = {
        f"{view.name}_answered": history.until(last).join(of_spine, [*view.keys], "left_semi"),
        f"{view.name}_spine_edges": edges,
    }
    return ask(lake.spark, statement("served_values", view), {}, frames)
