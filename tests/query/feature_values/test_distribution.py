"""How values lie over the keys of gold, by brute force, and how far two times are apart."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from lakes import Event, Lakes, at
from tidemill.query.feature_values.distribution import CLASSES, distribution, drift
from tidemill.query.feature_values.key_changes import key_changes

FIRST: list[Event] = [
    ("a1", "p1", "g", "view", at("10:00")),
    ("a2", "p2", "g", "view", at("10:00")),
    ("a3", "p2", "g", "view", at("10:01")),
]


def place(value: float | None) -> int:
    if value is None:
        return 0
    if value < 0:
        return 1
    return next(
        (n for n, end in enumerate((0, 1, 10, 100, 1000), 2) if value <= end), len(CLASSES) - 1
    )


def test_keys_by_class_now_and_before(lakes: Lakes) -> None:
    lake = lakes.fed(FIRST)
    before = lake.gold()
    lake.feed([(f"b{n}", "p1", "g", "view", at("10:02")) for n in range(12)])
    found = distribution(lake.lake, lake.view)
    assert [found[when]["gold_version"] for when in ("now", "then")] == [2, 1]
    assert (found["now"]["keys"], found["classes"]) == (2, list(CLASSES))
    for each in found["features"]:
        for when, rows in (("now", lake.gold()), ("then", before)):
            expected = [0] * len(CLASSES)
            for row in rows.values():
                expected[place(row[each["feature"]])] += 1
            assert each[when] == expected, (each["feature"], when)
    (views,) = (each for each in found["features"] if each["feature"] == "view_count_1d")
    assert views["drift"] == round(drift(views["now"], views["then"]), 4) > 1


def test_a_version_whose_files_are_gone_is_none_to_compare_with(lakes: Lakes) -> None:
    lake = lakes.fed(FIRST)
    gold = Path(lake.lake.place.root) / "engagement_features"
    before = {*gold.rglob("*.parquet")}
    lake.feed([("b1", key, "g", "view", at("10:02")) for key in ("p1", "p2")])
    for file in before:
        file.unlink()
    lake.spark.catalog.refreshTable("engagement_features")
    found = distribution(lake.lake, lake.view)
    assert found["now"]["keys"] == 2
    assert found["then"] is None
    assert {each["drift"] for each in found["features"]} == {None}


def test_a_view_that_was_never_refreshed(lakes: Lakes) -> None:
    lake = lakes.new()
    found = distribution(lake.lake, lake.view)
    assert (found["now"], found["then"], found["features"]) == (None, None, [])
    assert key_changes(lake.lake, lake.view, {"profile_id": "p1", "gti": "g"}) == []


@pytest.mark.parametrize(
    ("now", "then", "expected"),
    [
        ([5, 5], [1, 1], 0.0),
        ([0, 0], [3, 1], 0.0),
        ([3, 1], [1, 3], 2 * 0.5 * math.log(3)),
    ],
)
def test_drift(now: list[int], then: list[int], expected: float) -> None:
    assert drift(now, then) == pytest.approx(expected)


def test_what_a_key_was(lakes: Lakes) -> None:
    lake = lakes.fed(FIRST)
    lake.feed([("b1", "p1", "g", "view", at("10:02"))])
    lake.feed([("c1", "p2", "g", "select", at("10:03"))])
    found = key_changes(lake.lake, lake.view, {"profile_id": "p1", "gti": "g"})
    assert [(one["gold_version"], one["values"]["view_count_1d"]) for one in found] == [
        (1, 1),
        (2, 2),
    ]
    assert found[1]["as_of"] == "2026-11-21T10:03:00Z"
    assert key_changes(lake.lake, lake.view, {"profile_id": "nobody", "gti": "g"}) == []
