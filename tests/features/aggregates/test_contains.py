"""The SQL functions that ask filters say what `contains` says in Python."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from command_line import call
from lakes import Lakes
from tidemill.features import Feature, FeatureView, bloom, contains, cuckoo
from tidemill.lake.schema.sql_views import make_functions

ALPHABET = "abcXYZ019 _-äöüßéñ漢字かな🙂\u0301"


def filtered(spark: SparkSession, feature: Feature, values: list[str | None]) -> Any:
    """The filter of all the values, as gold would hold it."""
    view = FeatureView(
        name="v",
        keys=["k"],
        event_time="at",
        schema={"k": "string", "x": "string?"},
        features=[feature.over("1h")],
    )
    (column,), (partial,) = view.shown, view.partials
    rows = spark.createDataFrame([(value,) for value in values], "x STRING")
    made = rows.groupBy((F.crc32(F.col("x").cast("binary")) % 3).alias("bucket"))
    parts = made.agg(F.expr(partial.bucket).alias(partial.name))
    return parts.agg(F.expr(column.value(lambda term: term.partial.merged())).alias("x"))


@pytest.mark.parametrize("capacity", [1, 40, 3000])
@pytest.mark.parametrize("error", [0.0005, 0.01, 0.3])
@pytest.mark.parametrize(("verb", "name"), [(bloom, "bloom"), (cuckoo, "cuckoo")])
def test_sql_and_python_agree(
    spark: SparkSession, verb: Any, name: str, capacity: int, error: float
) -> None:
    drawn = random.Random(f"{capacity} {error} {name}")
    texts = ["".join(drawn.choices(ALPHABET, k=drawn.randrange(9))) for _ in range(300)]
    numbers: list[Any] = [drawn.randrange(-(10**9), 10**9) for _ in range(50)]
    numbers += [0.5, -2.25, True, False, Decimal("19.90"), Decimal("1.000")]
    inside = texts[: min(capacity, 20)] if capacity < 3000 else [*texts[:150], *map(str, numbers)]
    frame = filtered(spark, verb("x", capacity=capacity, error=error), [*inside, None])
    value = frame.collect()[0]["x"]
    make_functions(spark)
    frame.createOrReplaceTempView("one_filter")
    asked = [*texts, *(str(n).lower() if isinstance(n, bool) else str(n) for n in numbers)]
    spark.createDataFrame([(text,) for text in asked], "v STRING").createOrReplaceTempView("asked")
    answers = spark.sql(f"SELECT v, {name}_contains(x, v) AS said FROM one_filter, asked").collect()
    assert len(answers) == len(asked)
    assert {row["v"]: row["said"] for row in answers} == {v: contains(value, v) for v in asked}
    assert all(row["said"] for row in answers if row["v"] in set(inside))
    assert error > 0.1 or not all(row["said"] for row in answers)


def test_numbers_cast_to_string_are_asked_as_python_writes_them(spark: SparkSession) -> None:
    inside = ["7", "-3", "0.5", "19.90", "true"]
    frame = filtered(spark, bloom("x", capacity=40, error=0.0001), list(inside))
    value = frame.collect()[0]["x"]
    make_functions(spark)
    frame.createOrReplaceTempView("one_filter")
    cells = ("7", "-3L", "0.5D", "CAST(19.9 AS DECIMAL(4, 2))", "true", "8", "NULL")
    said = ", ".join(f"bloom_contains(x, CAST({cell} AS STRING))" for cell in cells)
    row = spark.sql(f"SELECT {said} FROM one_filter").collect()[0]
    wanted = (7, -3, 0.5, Decimal("19.90"), True, 8, None)
    assert tuple(row) == tuple(contains(value, one) for one in wanted)
    assert tuple(row) == (True, True, True, True, True, False, False)


def test_the_filter_of_an_absent_row_and_an_empty_one_hold_nothing(spark: SparkSession) -> None:
    make_functions(spark)
    for verb, name in ((bloom, "bloom"), (cuckoo, "cuckoo")):
        frame = filtered(spark, verb("x", capacity=10), [None])
        assert not contains(frame.collect()[0]["x"], "a")
        frame.createOrReplaceTempView("one_filter")
        row = spark.sql(
            f"SELECT {name}_contains(x, 'a'), {name}_contains(NULL, 'a') FROM one_filter"
        ).collect()[0]
        assert tuple(row) == (False, False)


def test_a_query_knows_them(lakes: Lakes) -> None:
    root = lakes.new().lake.place.root
    empty = "X'0100000008' || X'00'"
    words = f"SELECT bloom_contains({empty}, 'a') AS b, cuckoo_contains(NULL, 'a') AS c"
    answer = call("query", words, "--root", root, "--json")
    assert answer.code == 0, answer
    assert answer.json == {"columns": ["b", "c"], "rows": [[False, False]]}
