"""Membership: was this value among the window's events? With a stated rate of false yeses, no false
no.

Both are kept so that the union of two filters is the filter of the union, to the bit:

    bloom     k slices of bits; a value sets one bit in each, by a hash of its own (a partitioned
              Bloom filter; two hashes for all slices would not do for some hundred values, Kirsch
              and Mitzenmacher 2006). `<1 byte: k> <4 bytes: bits of a slice> <slices>`
    cuckoo    a value is a fingerprint and a pair of buckets (Fan et al., 2014). Which of the pair
              holds it depends on the order of insertions, the set of (pair, fingerprint) does not;
              that set is kept, sorted: {fingerprint bits, buckets, codes}

A value is hashed as text, by XXH64 with Spark's seed; a double is not taken, its text is another in
another language. `contains` asks in Python, the SQL functions `bloom_contains` and
`cuckoo_contains` on Spark.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tidemill.features.aggregates.aggregate import Aggregate, Parameter, Part

SEED = 42
SLOTS = 4  # of a Cuckoo bucket
LOAD = 0.95
_KNOWN = "FILTER (WHERE {where} AND {of} IS NOT NULL)"
_TEXT = "CAST({of} AS STRING)"
_HASH = f"xxhash64({_TEXT})"
_MIX = 0x5BD1E995
ERROR = Parameter(float, 0.0001, 0.3, default=0.01)
VALUE = {"of": "exact"}


def _of_bloom(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the texts of the slices: half of the bits of each are set at capacity.

    `most` bits are those that `capacity` values set at the outside: the mean and six standard
    deviations of the boxes that are not empty after so many balls.
    """
    slices, values = math.ceil(math.log2(1 / parameters["error"])), parameters["capacity"]
    bits = math.ceil(values / math.log(2) / 8) * 8
    size = bits // 8
    head = f"X'{slices:02X}{bits:08X}'"
    free, both = (1 - 1 / bits) ** values, (1 - 2 / bits) ** values
    variance = bits * free + bits * (bits - 1) * both - (bits * free) ** 2
    most = slices * bits * (1 - free) + 6 * math.sqrt(slices * variance)
    made = (
        f"substring(bitmap_construct_agg(pmod(xxhash64({_TEXT}, {i}), {bits})) {_KNOWN}, 1, {size})"
        for i in range(slices)
    )
    old = (
        "substring(bitmap_or_agg(substring({partial}, "
        f"{6 + i * size}, {size})){{filter}}, 1, {size})"
        for i in range(slices)
    )
    return {
        "made": ", ".join([head, *made]),
        "merged": ", ".join([head, *old]),
        "nothing": f"concat({head}, unhex(repeat('00', {slices * size})))",
        "most": min(math.floor(most), slices * values),
    }


BLOOM = Aggregate(
    name="bloom",
    summary="A Bloom filter of a column's values, for `capacity` different ones; ask it with "
    "`contains` in Python, `bloom_contains` in SQL.",
    parts=(Part("bloom", "BINARY", "concat({made})", "concat({merged})"),),
    result="{bloom}",
    type="BINARY",
    empty="{nothing}",
    inputs=VALUE,
    parameters={"capacity": Parameter(int, 1, 22_000), "error": ERROR},
    derived=_of_bloom,
    accuracy="no false no; false yeses at most `error` at `capacity`; "
    "size ceil(log2(1 / error)) x capacity / 5.5 bytes; null with so many more values than "
    "`capacity` that the bits show it",
    overflow="bitmap_count(substring({bloom}, 6)) > {most}",
)


def _of_cuckoo(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the numbers and texts of the codes: m buckets, f bits of fingerprint."""
    capacity = parameters["capacity"]
    buckets = 2 ** max(1, math.ceil(math.log2(capacity / SLOTS / LOAD)))
    bits = math.ceil(math.log2(2 * capacity / buckets / parameters["error"]))
    print_ = f"(shiftrightunsigned({_HASH}, 40) & {2**bits - 1})"
    first = f"({_HASH} & {buckets - 1})"
    second = f"({first} ^ (({print_} * {_MIX}) & {buckets - 1}))"
    return {
        "code": f"least({first}, {second}) * {2**bits} + {print_}",
        "head": f"'fingerprint', {bits}, 'buckets', {buckets}",
    }


CUCKOO = Aggregate(
    name="cuckoo",
    summary="A Cuckoo filter of a column's values, for `capacity` different ones; ask it with "
    "`contains` in Python, `cuckoo_contains` in SQL.",
    parts=(
        Part(
            "cuckoo",
            "ARRAY<BIGINT>",
            f"sort_array(collect_set({{code}}) {_KNOWN})",
            "sort_array(array_distinct(flatten(collect_list({partial}){filter})))",
        ),
    ),
    result="named_struct({head}, 'codes', {cuckoo})",
    type="STRUCT<fingerprint: INT, buckets: INT, codes: ARRAY<BIGINT>>",
    empty="named_struct({head}, 'codes', CAST(array() AS ARRAY<BIGINT>))",
    inputs=VALUE,
    parameters={"capacity": Parameter(int, 1, 100_000), "error": ERROR},
    derived=_of_cuckoo,
    accuracy="no false no; false yeses at most `error` at `capacity`; 8 bytes a value; "
    "null over a window of more than `capacity` values",
    overflow="size({cuckoo}) > {capacity}",
)


def contains(gold_filter: Any, value: object) -> bool:
    """Return whether a filter of gold may hold a value; False is certain.

    `gold_filter` is the column as Spark, DuckDB or pandas give it: bytes for bloom, a row, mapping
    or tuple for cuckoo. None, the filter of an absent row, holds nothing, and no filter holds None.
    A value is compared as Spark's CAST AS STRING writes it: a decimal with as many digits after the
    point as its type has.
    """
    if gold_filter is None or value is None:
        return False
    hashed = _hashed(value)
    if isinstance(gold_filter, bytes | bytearray | memoryview):
        return _in_bloom(bytes(gold_filter), hashed)
    bits, buckets, codes = gold_filter.values() if isinstance(gold_filter, Mapping) else gold_filter
    return _code(hashed, bits, buckets) in codes


def _hashed(value: object) -> int:
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    text = text.lower() if isinstance(value, bool) else text
    return _xxh64(text.encode(), SEED)


def _xxh64(given: bytes, seed: int) -> int:
    import xxhash

    hashed: int = xxhash.xxh64_intdigest(given, seed=seed)
    return hashed


def _in_bloom(filter_bytes: bytes, hashed: int) -> bool:
    slices, bits = filter_bytes[0], int.from_bytes(filter_bytes[1:5], "big")
    for i in range(slices):
        own = _xxh64(i.to_bytes(4, "little"), hashed)
        position = (own - (own >> 63 << 64)) % bits  # of a signed number, as SQL has it
        if not filter_bytes[5 + i * (bits // 8) + position // 8] >> (position % 8) & 1:
            return False
    return True


def _code(hashed: int, bits: int, buckets: int) -> int:
    fingerprint = (hashed >> 40) & (2**bits - 1)
    first = hashed & (buckets - 1)
    second = first ^ ((fingerprint * _MIX) & (buckets - 1))
    code: int = min(first, second) * 2**bits + fingerprint
    return code


ALL = (BLOOM, CUCKOO)
