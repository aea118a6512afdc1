"""How many different values, which are the most frequent, where do the quantiles lie.

Sketches are Apache DataSketches as Spark has them. Two sketches of the same events may differ in
their last bits, so each has a witness beside it, the exact sum of its inputs' hashes: a sketch is
as it should be when its witness is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidemill.features.aggregates.aggregate import Aggregate, Parameter, Part

_KNOWN = "FILTER (WHERE {where} AND {of} IS NOT NULL)"
_HASHES = "sum(CAST(xxhash64({of}) AS DECIMAL(38, 0)))"
WITNESS = Part(
    "print",
    "DECIMAL(38, 0)",
    f"coalesce({_HASHES} {_KNOWN}, 0)",
    "sum({partial}){filter}",
    "0",
    additive=True,
    witness=True,
)

_DISTINCT = "size({distinct})"
DISTINCT = Aggregate(
    name="distinct",
    summary="How many different values a column has, exactly; for small sets, at most `limit`.",
    parts=(
        Part(
            "distinct",
            "ARRAY<{of_type}>",
            "sort_array(collect_set({of}) FILTER (WHERE {where}))",
            "sort_array(array_distinct(flatten(collect_list({partial}){filter})))",
        ),
    ),
    result=f"CAST(if({_DISTINCT} > {{limit}}, raise_error('more than {{limit}} different values of "
    f"{{of}} in a window: take approx_distinct, or a higher limit'), {_DISTINCT}) AS BIGINT)",
    type="BIGINT",
    empty="0",
    parameters={"limit": Parameter(int, 1, 100_000, default=1000)},
    accuracy="exact; more than `limit` values in a window are an error",
    least=0,
    nested="grows",
)
APPROX_DISTINCT = Aggregate(
    name="approx_distinct",
    summary="About how many different values a column has (HyperLogLog, 2^`precision` registers).",
    parts=(
        Part(
            "hll",
            "BINARY",
            "hll_sketch_agg(CAST({of} AS STRING), {precision}) FILTER (WHERE {where})",
            "hll_union_agg({partial}){filter}",
            reproducible=False,
        ),
        WITNESS,
    ),
    result="hll_sketch_estimate({hll})",
    type="BIGINT",
    empty="0",
    parameters={"precision": Parameter(int, 4, 21, default=12)},
    accuracy="standard error 1.04 / sqrt(2^precision): 1.6 % with precision 12",
    least=0,
)


def _listed(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"ranks": ", ".join(f"{rank!r}D" for rank in parameters["at"])}


QUANTILES = Aggregate(
    name="quantiles",
    summary="The values at the ranks `at` of a number's order (KLL sketch), as a list.",
    parts=(
        Part(
            "kll",
            "BINARY",
            f"kll_sketch_agg_double(CAST({{of}} AS DOUBLE), {{k}}) {_KNOWN}",
            "kll_merge_agg_double({partial}){filter}",
            reproducible=False,
        ),
        WITNESS,
    ),
    result="CASE WHEN kll_sketch_get_n_double({kll}) > 0 "
    "THEN kll_sketch_get_quantile_double({kll}, array({ranks})) END",
    type="ARRAY<DOUBLE>",
    inputs={"of": "number"},
    parameters={
        "at": Parameter(float, 0, 1, default=(0.5, 0.9, 0.99), many=True),
        "k": Parameter(int, 8, 65_535, default=200),
    },
    derived=_listed,
    nulls="null inputs and NaN are left out",
    accuracy="exact up to `k` values; beyond, the rank is off by about 1.65 / k^0.9 at most "
    "(1.4 % with k 200), 99 times in 100",
)
TRACKED = 100
_NOTHING = (
    "named_struct('sketch', X'01010A08030500000000000000000000', 'maxItemsTracked', "
    f"{TRACKED}, 'itemDataType', CAST(NULL AS {{of_type}}), "
    "'itemDataTypeDDL', 'item {of_type} NOT NULL')"
)
MOST_FREQUENT = Aggregate(
    name="most_frequent",
    summary="The `k` most frequent values with about how often, the most frequent first.",
    parts=(
        Part(
            "frequent",
            "STRUCT<sketch: BINARY, maxItemsTracked: INT, itemDataType: {of_type}, "
            "itemDataTypeDDL: STRING>",
            f"approx_top_k_accumulate({{of}}, {TRACKED}) {_KNOWN}",
            # Spark fails on a combination of nothing, so what is outside counts as an empty sketch.
            f"approx_top_k_combine(CASE WHEN {{inside}} THEN {{partial}} ELSE {_NOTHING} END, "
            f"{TRACKED})",
            reproducible=False,
        ),
        WITNESS,
    ),
    result="approx_top_k_estimate({frequent}, {k})",
    type="ARRAY<STRUCT<item: {of_type}, count: BIGINT>>",
    empty="CAST(array() AS ARRAY<STRUCT<item: {of_type}, count: BIGINT>>)",
    parameters={"k": Parameter(int, 1, TRACKED)},
    accuracy="exact up to 192 different values; beyond, a count is off by at most 1.4 % of the "
    "window's events",
)
ALL = (DISTINCT, APPROX_DISTINCT, QUANTILES, MOST_FREQUENT)
