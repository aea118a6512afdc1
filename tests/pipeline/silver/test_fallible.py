"""What a view computes of one event may fail: clean refuses the record, and all others count."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import carts
from carts import Carts, payload
from lakes import at
from tidemill.features import count, max_, mean, sum_
from tidemill.features.expressions import fallible, row_expression
from tidemill.pipeline.silver import minute_buckets
from tidemill.pipeline.silver.validation.predicates import judge

HALVES = {
    "half": ("bigint", "10 div x"),
    "more": ("bigint", "10 div x + x"),
    "number": ("bigint", "CAST(s AS BIGINT)"),
    "picked": ("bigint", "element_at(split(s, ','), CAST(x AS INT))"),
}


def test_a_record_on_which_an_expression_fails_is_refused_by_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Two views; `half` and `more` fail together, and a legitimate null fails nothing."""
    over = carts.view("chosen", [max_("half").over("1h"), max_("number").over("1h")], select={
        **{name: HALVES[name] for name in ("half", "more", "number")},
        "nothing": ("bigint", "nullif(x, x)"),
    })  # fmt: skip
    plain = carts.view("met", [count().where("100 / (x - 5) < 1").named("met").over("1h")])
    lake = Carts.new(spark, tmp_path / "lake", over, plain)
    good = [
        payload("a", 2, at("09:01")),
        payload("a", 5000, at("09:02")),
        payload("b", 1, at("09:03")),
    ]
    bad = [payload("a", 0, at("09:04")), payload("a", 2, at("09:05"), s="?")]
    bad += [payload("b", 5, at("09:06")), payload("b", 0, at("09:07"), s="?")]
    lake.step([bad[0], good[0], *bad[1:3], good[1], bad[3]])
    lake.step(good[2:])
    assert lake.counts() == (7, 3, 4, 0)
    assert lake.reasons() == [
        ["expression_failed:chosen.half", "expression_failed:chosen.more"],
        ["expression_failed:chosen.number"],
        ["expression_failed:met.met_count"],
        [f"expression_failed:chosen.{name}" for name in ("half", "more", "number")],
    ]
    found = {
        k: (row["half_max_1h"], row["number_max_1h"]) for k, row in lake.gold("chosen").items()
    }
    assert found == {"a": (5, 1), "b": (10, 1)}
    assert {k: row["met_count_1h"] for k, row in lake.gold("met").items()} == {"a": 2, "b": 1}
    before = lake.gold("chosen")
    lake.records = 0
    lake.step([bad[0], good[0], *bad[1:3], good[1], bad[3]], batch=0)
    assert lake.counts() == (7, 3, 4, 0) and lake.gold("chosen") == before
    assert lake.different(0) == lake.different(1) == 0


def test_events_accepted_before_do_not_stop_a_view_that_comes_later(
    spark: SparkSession, tmp_path: Path
) -> None:
    """They count where their expressions hold, with null where they do not."""
    events = [payload("a", 0, at("09:01"), d=1e12), payload("a", 4, at("09:02"), s="?")]
    first = carts.view("first", [count().over("1h")])
    lake = Carts.new(spark, tmp_path / "lake", first)
    lake.step([*events, payload("b", 2, at("09:03"))])
    assert lake.counts() == (3, 3, 0, 0)
    later = carts.view(
        "later",
        [
            count().over("1h"),
            count().where("10 div x > 2").named("few").over("1h"),
            max_("number").over("1h"),
            sum_("d", scale=9).over("1h"),
            mean("d", scale=9).over("1h"),
        ],
        select={"number": HALVES["number"]},
    )
    rows = {
        row["k"]: row
        for row in minute_buckets.buckets_of(spark.table("carts_events"), 0, later)
        .groupBy("k")
        .agg({n: "sum" for n in ("count", "few_count", "d_sum", "d_n")} | {"number_max": "max"})
        .collect()
    }
    names = ("sum(count)", "sum(few_count)", "max(number_max)", "sum(d_sum)", "sum(d_n)")
    assert {k: tuple(row[n] for n in names) for k, row in rows.items()} == {
        "a": (2, 0, 1, 1, 1),
        "b": (1, 1, 1, 1, 1),
    }


def test_a_double_that_holds_no_digits_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    large = carts.view(
        "large", [sum_("wide", scale=2).over("1h")], select={"wide": ("double", "d * 1e9D")}
    )
    lake = Carts.new(spark, tmp_path / "lake", large)
    lake.step([payload("a", 1, at("09:01"), d=1e12), payload("a", 1, at("09:02"), d=1.25)])
    assert lake.reasons() == [["expression_failed:large.wide_sum"]]
    assert float(lake.gold("large")["a"]["wide_sum_1h"]) == 1.25e9


@pytest.mark.parametrize("compiled", [True, False])
def test_an_expression_that_stands_twice_fails_alone(spark: SparkSession, compiled: bool) -> None:
    """Generated code computes what stands twice ahead of both, where nothing catches its error."""
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", str(compiled).lower())
    mode = "FALLBACK" if compiled else "NO_CODEGEN"
    session.conf.set("spark.sql.codegen.factoryMode", mode)
    rows = session.createDataFrame(
        [(x, s, at("09:00")) for x, s in ((1, "1"), (0, "1"), (3, "?"))],
        "x BIGINT, s STRING, at TIMESTAMP",
    )
    named = [
        text
        for n, (type_, sql) in HALVES.items()
        for text in (
            f"{fallible.holds(f'CAST({sql} AS {type_})', 'at')} AS {n}",
            f"{fallible.or_null(f'CAST({sql} AS {type_})', 'at')} AS {n}_value",
        )
    ]
    found = [tuple(row) for row in rows.selectExpr(*named).collect()]
    assert found == [
        (True, 10, True, 11, True, 1, True, 1),
        (False, None, False, None, True, 1, False, None),
        (True, 3, True, 6, False, None, False, None),
    ]


def test_a_view_without_expressions_is_judged_as_before(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Carts.new(
        spark, tmp_path / "lake", carts.view("plain", [count().over("1h"), sum_("x").over("1h")])
    )
    judged = judge(spark.table("carts_bronze"), lake.lake.pipeline)
    assert "try_add" not in judged._jdf.queryExecution().toString()  # type: ignore[attr-defined]


def test_a_checked_expression_takes_other_names() -> None:
    assert (
        row_expression.renamed("a + b * length('a')", {"a": "__v__a"}) == "__v__a + b * LENGTH('a')"
    )
