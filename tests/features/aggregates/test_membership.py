"""Filters: a union is the filter of both; no false no; no more false yeses than were said."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tidemill.features import Feature, FeatureView, bloom, contains, cuckoo

ALPHABET = "abcXYZ019 _-äöüßéñ漢字かな🙂\u0301'\"\\\n"
VERBS = pytest.mark.parametrize("verb", [bloom, cuckoo], ids=lambda verb: verb.__name__)


def declare(feature: Feature, type_: str = "string") -> FeatureView:
    schema = {"k": "string", "x": f"{type_}?"}
    said = [feature.over("1h")]
    return FeatureView(name="v", keys=["k"], event_time="at", schema=schema, features=said)


def made(rows: DataFrame, view: FeatureView, *by: str) -> DataFrame:
    """The parts of the rows, as a bucket keeps them."""
    (partial,) = view.partials
    text = f"SELECT {', '.join(by)}, {partial.bucket} AS {partial.name} FROM {{rows}} GROUP BY "
    return rows.sparkSession.sql(text + ", ".join(by), rows=rows)


def merged(parts: DataFrame, view: FeatureView, by: str) -> DataFrame:
    """The values of gold from parts."""
    (column,) = view.shown
    value = column.value(lambda term: term.partial.merged())
    query = f"SELECT {by}, {value} AS x FROM {{parts}} GROUP BY {by}"
    return parts.sparkSession.sql(query, parts=parts)


def filters(spark: SparkSession, feature: Feature, values: dict[str, list[Any]], type_: str) -> Any:
    """A filter of each list of values, by its name."""
    view = declare(feature, type_)
    rows = [(name, n % 3, value) for name, each in values.items() for n, value in enumerate(each)]
    frame = spark.createDataFrame(rows, f"k STRING, bucket INT, x {type_}").coalesce(1)
    return dict(merged(made(frame, view, "k", "bucket"), view, "k").collect())


# -- union ---------------------------------------------------------------------------------------


@VERBS
def test_the_union_of_two_is_the_filter_of_the_union(spark: SparkSession, verb: Any) -> None:
    """To the bit, on 1,000 pairs, of which some are empty, some the same."""
    drawn = random.Random(7)
    pool = [None, *("".join(drawn.choices(ALPHABET, k=drawn.randrange(12))) for _ in range(400))]
    rows = [
        (f"p{pair}", side, value)
        for pair in range(1000)
        for side in (0, 1)
        for value in drawn.choices(pool, k=drawn.choice([1, 2, 10, 30]))
    ]
    view = declare(verb("x", capacity=60, error=0.003))
    (partial,) = view.partials
    frame = spark.createDataFrame(rows, "k STRING, side INT, x STRING").coalesce(1)
    frame.createOrReplaceTempView("pairs")
    found = spark.sql(f"""
        WITH sides AS (
          SELECT k, side, {partial.bucket} AS {partial.name} FROM pairs GROUP BY k, side
        ),
        unions AS (SELECT k, {partial.merged()} AS x FROM sides GROUP BY k),
        wholes AS (SELECT k, {partial.bucket} AS x FROM pairs GROUP BY k)
        SELECT count(*), count_if(unions.x = wholes.x), count(DISTINCT unions.x)
        FROM unions JOIN wholes USING (k)
    """).collect()[0]
    assert tuple(found[:2]) == (1000, 1000)
    assert found[2] > 900, "and they are not all the same"


# -- how often wrong -----------------------------------------------------------------------------

PROBES = 200_000


@VERBS
@pytest.mark.parametrize(
    ("capacity", "error"),
    [(1, 0.01), (1, 0.3), (10, 0.01), (50, 0.01), (200, 0.001), (1000, 0.01), (20_000, 0.01)],
)
def test_no_false_no_and_few_false_yeses(
    spark: SparkSession, verb: Any, capacity: int, error: float
) -> None:
    """At capacity; over many filters where each is small, for they differ."""
    names = [f"f{n}" for n in range(max(1, 1000 // capacity))]
    values = {name: [f"in {name} {n}" for n in range(capacity)] for name in names}
    found = filters(spark, verb("x", capacity=capacity, error=error), values, "string")
    found = {name: quick(one) for name, one in found.items()}
    assert all(contains(found[name], value) for name in names for value in values[name])
    each = PROBES // len(names)
    wrong = sum(contains(found[name], f"out {name} {n}") for name in names for n in range(each))
    assert wrong / (each * len(names)) <= 1.2 * error
    assert wrong or error < 0.01 or capacity < 50, "a filter that is never wrong would be too large"


def quick(found: Any) -> Any:
    """A Cuckoo filter with its codes as a set, in which Python does not search for long."""
    return found if isinstance(found, bytes | bytearray) else (*found[:2], set(found.codes))


# -- what they hold ------------------------------------------------------------------------------


@VERBS
@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("string", ["é", "漢字", "🙂", "", " ", "a\u0301", "'", "\\", "\n", "\ufeff", "x" * 1024]),
        ("bigint", [0, -1, 2**63 - 1, -(2**63), 10**7]),
        ("decimal(18,9)", [Decimal("0.000000001"), Decimal("-1.500000000"), Decimal("0E-9")]),
        ("decimal(10,0)", [Decimal("7"), Decimal("-9999999999")]),
        ("boolean", [True, False]),
    ],
)
@pytest.mark.parametrize("error", [0.0001, 0.3])
def test_any_value_is_found_again(
    spark: SparkSession, verb: Any, type_: str, values: list[Any], error: float
) -> None:
    given = {"all": [*values, None], "none": [None]}
    found = filters(spark, verb("x", capacity=len(values), error=error), given, type_)
    assert [value for value in values if not contains(found["all"], value)] == []
    assert not any(contains(found["none"], value) for value in [*values, None])
    assert not contains(None, values[0])
    assert error == 0.3 or not contains(found["all"], "never given")


# -- too much ------------------------------------------------------------------------------------


@VERBS
@pytest.mark.parametrize("capacity", [1, 5, 100, 5000])
def test_what_is_full_is_null_and_leaves_the_others(
    spark: SparkSession, verb: Any, capacity: int
) -> None:
    """As many values as were said, each often, fit; twice as many do not."""
    feature = verb("x", capacity=capacity, error=0.01)
    many = [f"{n}" for n in range(2 * capacity)]
    found = filters(spark, feature, {"full": many[:capacity] * 3, "fuller": many}, "string")
    assert found["full"] is not None and found["fuller"] is None


def test_a_cuckoo_filter_takes_not_one_more(spark: SparkSession) -> None:
    values = [f"{n}" for n in range(101)]
    given = {"full": values[1:], "fuller": values}
    found = filters(spark, cuckoo("x", capacity=100, error=0.0001), given, "string")
    assert found["full"] is not None and found["fuller"] is None


def test_a_bloom_filter_at_capacity_is_never_called_full(spark: SparkSession) -> None:
    """Of a thousand filters of each size at capacity none is refused."""
    for capacity in (1, 2, 7, 30):
        values = {f"{n}": [f"{n} {i}" for i in range(capacity)] for n in range(1000)}
        found = filters(spark, bloom("x", capacity=capacity, error=0.01), values, "string")
        assert len(found) == 1000
