"""How many different values, which are the most frequent, where do the quantiles lie.

Sketches are Apache DataSketches as Spark has them. Two sketches of the same events may differ in
their last bits, so each has a witness beside it, the exact sum of its inputs' hashes: a sketch is
of the same events when its witness is the same. Two values of the same events may then differ by
`SLACK` times the declared error, which of millions of values none exceeds by chance; not at all
where the sketch is still exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidemill.features.aggregates import folds
from tidemill.features.aggregates.aggregate import Aggregate, Parameter, Part

SLACK = 4
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
            fold=folds.united,
        ),
    ),
    result=f"CAST({_DISTINCT} AS BIGINT)",
    type="BIGINT",
    empty="0",
    parameters={"limit": Parameter(int, 1, 100_000, default=1000)},
    accuracy="exact; null over a window of more than `limit` values",
    least=0,
    nested="grows",
    overflow=f"{_DISTINCT} > {{limit}}",
    finish=folds.size,
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
    off="abs({gold} - {fresh}) > greatest({gold}, {fresh}) * "
    f"least({SLACK} * 1.04D / sqrt(power(2, {{precision}})), 0.9D)",
    type="BIGINT",
    empty="0",
    parameters={"precision": Parameter(int, 4, 21, default=12)},
    accuracy="standard error 1.04 / sqrt(2^precision): 1.6 % with precision 12",
    least=0,
)


def _listed(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    within = SLACK * 1.65 / parameters["k"] ** 0.9
    by = {"ranks": 0.0, "low_ranks": -within, "high_ranks": within}
    return {name: _ranks(parameters["at"], shift) for name, shift in by.items()}


def _ranks(ranks: Iterable[float], shift: float) -> str:
    return ", ".join(f"{min(max(rank + shift, 0.0), 1.0)!r}D" for rank in ranks)


def _quantiles(ranks: str) -> str:
    return f"kll_sketch_get_quantile_double({{kll}}, array({{{ranks}}}))"


_VALUES = "kll_sketch_get_n_double({kll})"


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
    result=f"CASE WHEN {_VALUES} > 0 THEN {_quantiles('ranks')} END",
    bounds=f"CASE WHEN {_VALUES} > {{k}} THEN "
    f"named_struct('low', {_quantiles('low_ranks')}, 'high', {_quantiles('high_ranks')}) "
    f"WHEN {_VALUES} > 0 THEN "
    f"named_struct('low', {_quantiles('ranks')}, 'high', {_quantiles('ranks')}) END",
    off="size({gold}) <> size({fresh}) OR exists(sequence(0, size({gold}) - 1), "
    "i -> get({gold}, i) NOT BETWEEN get({bounds}.low, i) AND get({bounds}.high, i))",
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
# The bytes of an ItemsSketch: 16 to 23 its events, 24 to 31 by how much a count may be off, both
# with the lowest byte first; an empty one has only 16.
_BYTES = "hex({frequent}.sketch)"
_IS_EXACT = f"replace(substr({_BYTES}, 49, 16), '0', '') = ''"
_SUMMED = (
    f"CAST(conv(regexp_replace(reverse(substr({_BYTES}, 33, 16)), '(.)(.)', '$2$1'), 16, 10) "
    "AS BIGINT)"
)
_LISTED = "transform({bounds}.items, one -> one.count)"
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
    bounds=f"named_struct('items', approx_top_k_estimate({{frequent}}, {TRACKED}), "
    f"'error', if({_IS_EXACT}, 0D, {SLACK} * 0.014D * {_SUMMED}))",
    # An item that is not listed has at most the least of the listed counts, where the list is full.
    off="size({gold}) > {k} OR exists({gold}, mine -> abs(mine.count - coalesce("
    "get(filter({bounds}.items, one -> one.item <=> mine.item), 0).count, "
    f"if(size({{bounds}}.items) < {TRACKED}, 0, array_min({_LISTED})))) > {{bounds}}.error) "
    "OR exists({fresh}, one -> NOT exists({gold}, mine -> mine.item <=> one.item) AND one.count > "
    "{bounds}.error + if(size({gold}) < {k}, 0, array_min(transform({gold}, mine -> mine.count))))",
    type="ARRAY<STRUCT<item: {of_type}, count: BIGINT>>",
    empty="CAST(array() AS ARRAY<STRUCT<item: {of_type}, count: BIGINT>>)",
    parameters={"k": Parameter(int, 1, TRACKED)},
    accuracy="exact up to 192 different values; beyond, a count is off by at most 1.4 % of the "
    "window's events",
)
ALL = (DISTINCT, APPROX_DISTINCT, QUANTILES, MOST_FREQUENT)
