"""Sketches where they are no longer exact: as far off as was said, however the buckets were cut."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import sales
from computed import features
from lakes import at
from sales import Sales
from tidemill.errors import LedgerError
from tidemill.features import (
    FeatureView,
    approx_distinct,
    argmax,
    argmin,
    bloom,
    cuckoo,
    distinct,
    first,
    last,
    last_k,
    max_,
    mean,
    min_,
    most_frequent,
    quantiles,
    top_k,
)
from tidemill.lake.parameters import ask
from tidemill.lake.statements import statement

KEYS = [f"k{n}" for n in range(20)]
EVENTS = 3_000  # of each key
RANKS = (0.01, 0.25, 0.5, 0.9, 0.99)
LARGE = FeatureView(
    name="large",
    keys=["k"],
    event_time="at",
    schema={"k": "string", "x": "string", "d": "double"},
    features=[
        approx_distinct("x").over("1h"),
        approx_distinct("x", precision=8).named("rough").over("1h"),
        quantiles("d", RANKS).over("1h"),
        most_frequent("x", 20).over("1h"),
    ],
)
Events = dict[str, list[tuple[str, float]]]


@pytest.fixture(scope="module")
def events() -> Events:
    """Values of which few are frequent and most are rare; as different as their key's number."""
    drawn = random.Random(17)
    return {
        key: [
            (f"v{int(drawn.paretovariate(0.4 + n / 40)) % 10**6}", drawn.lognormvariate(0, 2))
            for _ in range(EVENTS)
        ]
        for n, key in enumerate(KEYS)
    }


@pytest.fixture(scope="module", params=["by minutes", "in one", "by values"])
def found(request: pytest.FixtureRequest, apart: SparkSession, events: Events) -> dict[str, Any]:
    """The features of the same events, cut into buckets in another way each time."""
    minute = {
        "by minutes": lambda n, value: n % 60,
        "in one": lambda n, value: 7,
        "by values": lambda n, value: hash(value) % 59,
    }[request.param]
    rows = [
        (key, x, d, at("09:00") + timedelta(minutes=minute(n, d)))
        for key, each in events.items()
        for n, (x, d) in enumerate(each)
    ]
    return features(apart, LARGE, rows, at("10:00"))


@pytest.mark.parametrize(("name", "precision"), [("x", 12), ("rough", 8)])
def test_how_many_different(
    found: dict[str, Any], events: Events, name: str, precision: int
) -> None:
    """The standard error over all keys is what was said, or less; none is off by four of it."""
    said = 1.04 / math.sqrt(2**precision)
    errors = []
    for key, each in events.items():
        true = len({x for x, _ in each})
        errors.append(found[key][f"{name}_approx_distinct_1h"] / true - 1)
    assert max(map(abs, errors)) <= 4 * said
    assert math.sqrt(sum(e * e for e in errors) / len(errors)) <= 1.5 * said
    assert any(errors), "or nothing was tried"


def test_where_the_quantiles_lie(found: dict[str, Any], events: Events) -> None:
    """A rank is off by at most 1.65 / k^0.9, 99 times in 100."""
    said = 1.65 / 200**0.9
    off = []
    for key, each in events.items():
        values = sorted(d for _, d in each)
        for rank, value in zip(RANKS, found[key]["d_quantiles_1h"], strict=True):
            assert value in values
            off.append(abs((values.index(value) + 1) / len(values) - rank))
    assert sum(one > said for one in off) <= 0.03 * len(off)
    assert max(off) <= 2 * said


def test_which_are_the_most_frequent(found: dict[str, Any], events: Events) -> None:
    """A count is off by at most 1.4 % of the events, and none that is clearly more is missing."""
    for key, each in events.items():
        true = Counter(x for x, _ in each)
        listed = {one["item"]: one["count"] for one in found[key]["x_most_frequent_1h"]}
        assert list(listed.values()) == sorted(listed.values(), reverse=True)
        assert all(abs(count - true[item]) <= 0.014 * EVENTS for item, count in listed.items())
        least = min(listed.values(), default=0) + 0.014 * EVENTS
        assert {item for item, count in true.items() if count > least} <= set(listed)
    assert any(len({x for x, _ in each}) > 192 for each in events.values())


Cut = Callable[[int, float], int]


def rows_of(events: Events, minute: Cut) -> list[tuple[Any, ...]]:
    return [
        (key, x, d, at("09:00") + timedelta(minutes=minute(n, d)))
        for key, each in events.items()
        for n, (x, d) in enumerate(each)
    ]


@pytest.mark.parametrize("changed", [False, True])
def test_sketches_of_the_same_events_are_equal_within_their_accuracy(
    apart: SparkSession, events: Events, changed: bool
) -> None:
    """However the events were cut into buckets; a value that is farther off is different."""
    args = {"as_of": at("10:00"), "batch": 0}
    features(apart, LARGE, rows_of(events, lambda n, value: hash(value) % 59), at("10:00"))
    found = ask(apart, statement("features", LARGE), args)
    gold = apart.createDataFrame(found.collect(), found.schema)
    if changed:
        gold = gold.withColumn("d_quantiles_1h", F.expr("transform(d_quantiles_1h, d -> d * 2)"))
    features(apart, LARGE, rows_of(events, lambda n, value: n % 60), at("10:00"))
    row = ask(apart, statement("differences", LARGE), args, {"gold_rows": gold}).collect()[0]
    assert (row["keys"], row["different"]) == (len(KEYS), len(KEYS) if changed else 0)


# -- nulls and NaN -------------------------------------------------------------------------------

NAN = float("nan")
ODD = FeatureView(
    name="odd",
    keys=["k"],
    event_time="at",
    schema={"k": "string", "x": "string?", "d": "double?"},
    features=[
        f.over("1h")
        for f in (
            min_("d"),
            max_("d"),
            top_k("d", 3),
            last_k("d", 3),
            first("x"),
            last("x"),
            argmin("x", "d"),
            argmax("x", "d"),
            distinct("d"),
            distinct("x"),
            approx_distinct("d"),
            approx_distinct("x"),
            quantiles("d", [0, 1]),
            most_frequent("d", 3),
            most_frequent("x", 3),
            bloom("x", capacity=5),
            cuckoo("x", capacity=5),
        )
    ],
)
ROWS: list[tuple[str, str | None, float | None]] = [
    ("both", "a", NAN),
    ("both", None, 1.0),
    ("both", "b", None),
    ("both", "b", NAN),
    ("both", "b", 2.0),
    ("nulls", None, None),
    ("nulls", None, None),
    ("nan", None, NAN),
    ("nan", "a", NAN),
]


def rows() -> Iterator[tuple[Any, ...]]:
    for n, (key, x, d) in enumerate(ROWS):
        yield key, x, d, at("09:00") + timedelta(minutes=n // 2, seconds=n)


def written(values: Any) -> Any:
    """NaN as a text: it is not equal to itself."""
    if isinstance(values, list):
        return [written(one) for one in values]
    return "NaN" if values != values else values


def test_nulls_are_left_out_and_nan_is_above_all_numbers(apart: SparkSession) -> None:
    found = features(apart, ODD, list(rows()), at("10:00"))
    told = {
        key: {name.removesuffix("_1h"): written(value) for name, value in row.items()}
        for key, row in found.items()
    }
    both, nulls, nan = told["both"], told["nulls"], told["nan"]
    assert (both["d_min"], both["d_max"], both["d_top_k"]) == (1.0, "NaN", ["NaN", "NaN", 2.0])
    assert both["d_last_k"] == [2.0, "NaN", 1.0]
    assert (both["x_first"], both["x_last"]) == ("a", "b")
    assert (both["x_argmin"], both["x_argmax"]) == ("b", "a"), "the earlier of two NaN"
    assert (both["d_distinct"], both["x_distinct"]) == (3, 2)
    assert (both["d_approx_distinct"], both["x_approx_distinct"]) == (3, 2)
    assert both["d_quantiles"] == [1.0, 2.0]
    assert written([tuple(one) for one in both["x_most_frequent"]]) == [("b", 3), ("a", 1)]
    assert {(written(i), n) for i, n in both["d_most_frequent"]} == {("NaN", 2), (1.0, 1), (2.0, 1)}
    empty = {"d_distinct": 0, "x_distinct": 0, "d_approx_distinct": 0, "x_approx_distinct": 0}
    lists = {n: [] for n in ("d_top_k", "d_last_k", "d_most_frequent", "x_most_frequent")}
    nothing = dict.fromkeys(("d_min", "d_max", "x_first", "x_last", "x_argmin", "d_quantiles"))
    assert {n: nulls[n] for n in (*empty, *lists, *nothing)} == {**empty, **lists, **nothing}
    assert (nan["d_min"], nan["d_max"], nan["d_quantiles"]) == ("NaN", "NaN", None)
    assert nulls["x_bloom"] != nan["x_bloom"]
    assert nulls["x_cuckoo"].codes == []


def test_more_different_values_than_the_limit_are_null_and_named(apart: SparkSession) -> None:
    view = FeatureView(
        name="limited",
        keys=["k"],
        event_time="at",
        schema={"k": "string", "x": "string"},
        features=[distinct("x", limit=3).over("1h")],
    )
    rows = [("a", f"v{n % 3}", at("09:30") + timedelta(minutes=n)) for n in range(9)]
    assert features(apart, view, rows, at("10:00"))["a"]["x_distinct_1h"] == 3
    more = [*rows, ("a", "v3", at("09:31"))]
    assert features(apart, view, [*rows, ("b", "v3", at("09:31"))], at("10:00"))
    assert features(apart, view, [*rows, ("a", "v3", at("08:31"))], at("10:00"))
    over = features(apart, view, [*more, ("b", "v3", at("09:31"))], at("10:00"))
    assert {k: (row["x_distinct_1h"], row["__overflowed"]) for k, row in over.items()} == {
        "a": (None, "x_distinct_1h"),
        "b": (1, None),
    }


# -- the same batch again ------------------------------------------------------------------------


def test_a_batch_with_sketches_may_come_again(spark: SparkSession, tmp_path: Path) -> None:
    """In another order its sketches have other bytes; the append knows it by the rest."""
    said = [
        approx_distinct("merchant"),
        quantiles("amount"),
        most_frequent("merchant", 5),
        distinct("points", limit=5000),
        top_k("amount", 3),
        bloom("merchant", capacity=5000),
        cuckoo("merchant", capacity=5000),
        mean("points"),
    ]
    lake = Sales.new(spark, tmp_path / "lake", sales.declare([f.over("1h") for f in said]))
    drawn = random.Random(23)
    batch = [
        sales.Sale(**{**vars(one), "merchant": f"m{n}", "amount": drawn.random(), "card": "c"})
        for n, one in enumerate(sales.draw(drawn, at("09:00"), 1, 900))
    ]
    lake.feed(batch)
    stands, before = lake.newest("buckets"), lake.gold()
    lake.batch -= 1
    drawn.shuffle(batch)
    lake.feed(batch)
    assert (lake.newest("buckets"), lake.gold()) == (stands, before)
    lake.batch -= 1
    with pytest.raises(LedgerError, match="written before with other rows"):
        lake.feed([sales.Sale(**{**vars(batch[0]), "amount": 2.0}), *batch[1:]])
