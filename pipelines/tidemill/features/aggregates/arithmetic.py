"""Aggregates that add up: what leaves a window is subtracted from its parts, exactly.

Numbers with a fraction are added as DECIMAL(38, scale), so no order of additions matters and an
emptied window is exactly empty. A double keeps 15 digits; clean refuses one of the event that does
not hold the declared scale (`out_of_range`). An overflow of a sum is an error.
"""

from __future__ import annotations

import operator

from tidemill.features.aggregates import folds
from tidemill.features.aggregates.aggregate import Aggregate, Parameter, Part

NUMBER = {"of": "number"}
SCALE = Parameter(int, 0, 9, default=None)


def _sum(name: str, type_: str, value: str) -> Part:
    text = f"coalesce(sum({value}) FILTER (WHERE {{where}}), 0)"
    return Part(name, type_, text, "sum({partial}){filter}", "0", additive=True, adds=value)


SUM_PART = _sum("sum", "{exact}", "CAST({of} AS {exact})")
N_PART = Part(
    "n",
    "BIGINT",
    "count_if({where} AND {of} IS NOT NULL)",
    "sum({partial}){filter}",
    "0",
    additive=True,
    least=0,
)
NO_SUM = "{sum} IS NULL"
SQUARES_PART = _sum("squares", "DECIMAL(38, 0)", "{units} * {units}")

COUNT = Aggregate(
    name="count",
    summary="How many events there are.",
    parts=(
        Part(
            "count",
            "BIGINT",
            "count_if({where})",
            "sum({partial}){filter}",
            "0",
            additive=True,
            least=0,
        ),
    ),
    result="{count}",
    type="BIGINT",
    empty="0",
    inputs={},
    nulls="counts events, whatever their columns hold",
    fold=operator.add,
    neutral=0,
    least=0,
    nested="grows",
)
SUM = Aggregate(
    name="sum",
    summary="The sum of a number; of a double as a decimal with `scale` digits after the point.",
    parts=(SUM_PART,),
    result="{sum}",
    type="{exact}",
    empty="0",
    inputs=NUMBER,
    parameters={"scale": SCALE},
    accuracy="exact; null where the sum does not fit its type",
    fold=operator.add,
    neutral=0,
    overflow=NO_SUM,
    finish=folds.summed,
)
MEAN = Aggregate(
    name="mean",
    summary="The arithmetic mean of a number: its exact sum by how many there are.",
    parts=(SUM_PART, N_PART),
    result="CAST({sum} AS DOUBLE) / nullif({n}, 0)",
    type="DOUBLE",
    inputs=NUMBER,
    parameters={"scale": SCALE},
    accuracy="exact; null where the sum does not fit its type",
    overflow=NO_SUM,
    finish=folds.mean,
)
# Var = (n Σx² - (Σx)²) / (n (n - 1)), the sample variance, of sums without rounding: of whole
# numbers, x in its last digit's unit, because a product in SQL keeps only six digits after a point.
_UNITS = "try_cast(try_multiply({sum}, {unit}) AS DECIMAL(38, 0))"
_SPREAD = f"try_subtract(try_multiply({{squares}}, {{n}}), try_multiply({_UNITS}, {_UNITS}))"
_VARIANCE = (
    f"CASE WHEN {{n}} > 1 THEN CAST({_SPREAD} AS DOUBLE)"
    " / (CAST({n} AS DOUBLE) * ({n} - 1)) / ({unit}D * {unit}D) END"
)
_NO_SPREAD = f"({{n}} > 1 AND ({_SPREAD}) IS NULL)"
_SPREAD_ACCURACY = "exact to 38 digits; null where n x the sum of squares has more"
VARIANCE = Aggregate(
    name="variance",
    summary="The sample variance of a number; null of fewer than two.",
    parts=(SUM_PART, N_PART, SQUARES_PART),
    result=_VARIANCE,
    type="DOUBLE",
    inputs=NUMBER,
    parameters={"scale": SCALE},
    accuracy=_SPREAD_ACCURACY,
    least=0,
    overflow=_NO_SPREAD,
    finish=folds.variance,
)
STDDEV = Aggregate(
    name="stddev",
    summary="The sample standard deviation of a number; null of fewer than two.",
    parts=(SUM_PART, N_PART, SQUARES_PART),
    result=f"sqrt({_VARIANCE})",
    type="DOUBLE",
    inputs=NUMBER,
    parameters={"scale": SCALE},
    accuracy=_SPREAD_ACCURACY,
    least=0,
    overflow=_NO_SPREAD,
    finish=folds.deviation,
)
ALL = (COUNT, SUM, MEAN, VARIANCE, STDDEV)
