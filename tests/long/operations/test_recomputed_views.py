"""Days of a view's features made again from the events, gold checked and corrected, by commands."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sales
from command_line import call
from lakes import at
from runs import write_file
from sales import Sale, record
from sales_project import declare, tidemill
from tidemill.config.settings import Place
from tidemill.features import Feature, count, max_, sum_
from tidemill.lake import lock
from tidemill.lake.catalog import register
from tidemill.lake.commits import failpoints

DAY = timedelta(days=1)
POINTS = sum_("points").over("1d")
FEATURES = (
    count().over("1d", "3h"),
    sum_("points").over("1d"),
    count().over({"calendar": "day", "zone": "Europe/Berlin"}, "lifetime"),
)
FIRST = sales.draw(random.Random(1), at("00:30") - 3 * DAY, 2 * 1440, 300)
LATER = sales.draw(random.Random(2), at("00:10") - DAY, 1520, 200)  # into the 21st
MORE = sales.draw(random.Random(4), at("01:40"), 60, 5)
LATE = sales.draw(random.Random(3), at("00:10") - 2 * DAY, 600, 5)


def declared(folder: Path, *features: Feature) -> None:
    declare(folder, [view.words() for view in sales.declare(features).views])


def fed(folder: Path, name: str, events: list[Sale]) -> None:
    write_file(folder / "events", name, map(record, events), age=60)
    assert tidemill(folder, "run", "--once").json["accepted"] == len(events)


def recomputed(folder: Path, *words: object, code: int = 0) -> list[dict[str, Any]]:
    answer = tidemill(folder, "recompute", *words)
    assert answer.code == code, answer
    return list(answer.json["days"])


def merged(folder: Path, engine: str) -> dict[tuple[str, str, str], dict[str, Any]]:
    """What people read of days: by layer, day and card."""
    text = "SELECT * FROM sales_merged"
    where = ("--pipeline", folder / "sales.yaml", "--root", folder / "lake", "--engine", engine)
    answer = call("query", text, *where, "--json").json
    assert "rows" in answer, answer
    rows = [dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]]
    return {(row["layer"], row["day"], row["card"]): row for row in rows}


def expected(known: list[Sale], end: datetime) -> dict[str, dict[str, Any]]:
    """By brute force, of each card with an event, at the end of a day."""
    berlin = end - timedelta(hours=1)  # midnight there
    found = {}
    for card in {sale.card for sale in known if sale.at < end}:
        mine = [sale for sale in known if sale.card == card and sale.at < end]
        day = [sale for sale in mine if sale.at >= end - DAY]
        found[card] = {
            "count_1d": len(day),
            "count_3h": len([s for s in mine if s.at >= end - timedelta(hours=3)]),
            "points_sum_1d": sum(s.points for s in day),
            "count_lifetime": len(mine),
            "count_day_to_date": len([s for s in mine if s.at >= berlin]),
        }
    return found


def check(folder: Path, known: list[Sale], days: list[date], names: set[str]) -> None:
    """Fail unless what is read of each day is what brute force says, by both engines."""
    for engine in ("duckdb", "spark"):
        found = merged(folder, engine)
        assert sorted({day for layer, day, _ in found if layer == "batch"}) == [
            day.isoformat() for day in days
        ]
        for day in days:
            end = at("00:00").replace(day=day.day) + DAY
            wanted = expected(known, end)
            rows = {c: r for (layer, d, c), r in found.items() if (layer, d) == ("batch", str(day))}
            assert set(rows) == set(wanted)
            for card, values in wanted.items():
                assert {n: rows[card][n] for n in names} == {n: values[n] for n in names}, day
        live = {day for layer, day, _ in found if layer == "live"}
        assert not live or min(live) > max(days).isoformat()


@pytest.mark.stream
def test_days_of_a_view_and_gold_corrected(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"count_1d", "count_3h", "points_sum_1d", "count_lifetime", "count_day_to_date"}
    declared(tmp_path, *FEATURES)
    fed(tmp_path, "1.jsonl", FIRST)
    days = [date(2026, 11, 19)]
    (done,) = recomputed(tmp_path)
    assert (done["name"], done["day"], done["why"]) == ("sales", "2026-11-19", "new")
    assert (done["rows"], done["different"], done["causes"]) == (3, 0, {})
    check(tmp_path, FIRST, days, names)
    assert recomputed(tmp_path) == []

    # a day more, and events of the day that is there
    fed(tmp_path, "2.jsonl", [*LATER, *LATE])
    known = [*FIRST, *LATER, *LATE]
    again, fresh = recomputed(tmp_path)
    days.append(date(2026, 11, 20))
    assert (again["day"], again["why"]) == ("2026-11-19", "late events")
    late = {sale.card for sale in LATE}
    assert again["causes"] == {"late": len(late)}
    assert (fresh["day"], fresh["why"], fresh["causes"]) == ("2026-11-20", "new", {})
    check(tmp_path, known, days, names)

    # more events of the day that is not over: nothing is due
    fed(tmp_path, "3.jsonl", MORE)
    known += MORE
    assert recomputed(tmp_path) == []

    # gold that another has changed is told, and corrected when that is asked for
    register(spark, Place(tmp_path / "lake"))  # commands may have used another session
    spark.sql("UPDATE sales_features SET count_1d = count_1d + 1 WHERE card = 'c1'")
    (told,) = recomputed(tmp_path, "--day", "2026-11-20", code=1)
    assert told["causes"] == {"gold": 1}
    (told,) = recomputed(tmp_path, "--day", "2026-11-20", "--repair")
    assert told["causes"] == {"gold": 1}
    assert tidemill(tmp_path, "reconcile").json["different"] == 0

    # buckets that have lost events
    lost = "card = 'c1' AND bucket_start > TIMESTAMP '2026-11-20T12:00:00Z'"
    spark.sql(f"DELETE FROM sales_buckets WHERE {lost}")
    assert tidemill(tmp_path, "reconcile", "--repair").code == 0
    assert tidemill(tmp_path, "reconcile", "--from", "events").json["different"] == 1
    (told,) = recomputed(tmp_path, "--day", "2026-11-20", code=1)
    assert told["causes"] == {"buckets": 1}
    (told,) = recomputed(tmp_path, "--day", "2026-11-20", "--repair")
    assert told["causes"] == {"buckets": 1}
    assert tidemill(tmp_path, "reconcile", "--from", "events").json["different"] == 0
    check(tmp_path, known, days, names)

    # other features: the days that are known are made again with them,
    declared(tmp_path, *FEATURES, max_("points").over("1d"))
    plan = tidemill(tmp_path, "plan").json
    assert tidemill(tmp_path, "rebuild", "--features", ",".join(plan["features"])).code == 0
    # so that they are when the first of them has cut the pass off
    with monkeypatch.context() as cut:
        cut.setenv(failpoints.VARIABLE, "recompute.computed")
        failpoints._reached.clear()
        assert tidemill(tmp_path, "recompute").code == 3
    done = recomputed(tmp_path)
    assert [each["why"] for each in done] == ["events made again"] * 2
    check(tmp_path, known, days, names)

    # another generation of events
    assert tidemill(tmp_path, "rebuild", "--from", "bronze").code == 0
    done = recomputed(tmp_path)
    assert [(each["why"], each["causes"]) for each in done] == [("events made again", {})] * 2
    check(tmp_path, known, days, names)


@pytest.mark.stream
def test_days_of_another_definition_are_made_again(spark: SparkSession, tmp_path: Path) -> None:
    """Of the same columns: no day is what a feature was before."""
    declared(tmp_path, POINTS, count().over("1d"))
    fed(tmp_path, "1.jsonl", FIRST)
    asked = recomputed(tmp_path, "--day", "2026-11-18")
    assert [day["day"] for day in asked] == ["2026-11-18"]
    assert [day["day"] for day in recomputed(tmp_path)] == ["2026-11-19"]
    declared(tmp_path, POINTS, count().where("ok").over("1d"))
    assert tidemill(tmp_path, "rebuild", "--features", "count").code == 0
    again = [(day["day"], day["why"], day["different"]) for day in recomputed(tmp_path)]
    assert again == [(f"2026-11-{day}", "events made again", 0) for day in (18, 19)]
    for end in (at("00:00") - 2 * DAY, at("00:00") - DAY):
        rows = merged(tmp_path, "spark")
        day = f"{end - DAY:%Y-%m-%d}"
        shown = {
            c: row["count_1d"]
            for (layer, d, c), row in rows.items()
            if (layer, d) == ("batch", day)
        }
        mine = [s for s in FIRST if end - DAY <= s.at < end and s.ok]
        assert {card: number for card, number in shown.items() if number} == Counter(
            s.card for s in mine
        )
    assert recomputed(tmp_path) == []


def test_what_is_refused(tmp_path: Path) -> None:
    declared(tmp_path, *FEATURES)
    fed(tmp_path, "1.jsonl", FIRST)
    refused = tidemill(tmp_path, "recompute", "--day", "yesterday")
    assert refused.code == 2
    assert refused.error["message"] == "'yesterday' is no day"
    refused = tidemill(tmp_path, "recompute", "--day", "2026-11-20")
    assert refused.code == 2
    assert "2026-11-20 is not over for sales: the newest event is of" in refused.error["message"]
    with lock.hold_apart(Place(tmp_path / "lake"), lock.RECOMPUTE, "another", wait=0):
        refused = tidemill(tmp_path, "recompute", "--wait", "0s")
    assert (refused.code, refused.error["kind"]) == (2, "locked")
    refused = tidemill(tmp_path, "recompute", "--only", "sale")
    assert refused.code == 2
    assert "no view or stream 'sale'; did you mean 'sales'" in refused.error["message"]
