"""Alerts of a pipeline without events: each silence once, whenever it is looked at."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest

from lakes import Lakes, TestLake, at, payload
from tidemill.config.alert_rule import AlertRule
from tidemill.config.settings import Clock
from tidemill.lake.commits import failpoints, ledger
from tidemill.lake.commits.failpoints import ALERT_POINTS, Injected
from tidemill.lake.parameters import ask
from tidemill.lake.statements import statement
from tidemill.operations.after_refresh import AfterRefresh
from tidemill.pipeline.alerts.silence import Arrival, SilenceWatch, silences

QUIET = {"name": "QUIET", "no_events": "2s"}
LONGER = {"name": "LONGER", "no_events": "4s"}
SECOND = timedelta(seconds=1)


def with_rules(lake: TestLake, *rules: dict[str, str]) -> TestLake:
    definition = lake.lake.pipeline.overridden({"alerts": rules})
    return replace(lake, lake=replace(lake.lake, pipeline=definition))


def arrive(lake: TestLake, number: int) -> None:
    lake.step([payload((f"e{number}", "p", "g", "view", at("10:00")))])


def arrivals(lake: TestLake) -> list[datetime]:
    found = lake.lake.commits("engagement_events", None)
    return sorted(commit.at for commit in ledger.appends(found))


def pass_until(moment: datetime) -> None:
    """Let the clock that dates commits pass a moment that a test's own clock has shown: a look at
    12:05 sees what came until then, so nothing may arrive at 12:04 after it."""
    while (left := (moment - datetime.now(timezone.utc)).total_seconds()) >= 0:
        time.sleep(left + 0.01)


def look(lake: TestLake, now: datetime) -> int:
    return SilenceWatch(lake.lake, Clock(now)).look()


def rows(lake: TestLake) -> list[tuple[str, str, datetime]]:
    found = lake.spark.sql(
        "SELECT alert, state, unix_micros(at) FROM engagement_alerts WHERE view = '*' ORDER BY 3, 1"
    ).collect()
    return [(row[0], row[1], of_micros(row[2])) for row in found]


def of_micros(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=micros)


def expected(
    times: list[datetime], now: datetime, **lengths: int
) -> Iterator[tuple[str, str, datetime]]:
    for name, seconds in lengths.items():
        length = seconds * SECOND
        for begun, ended in pairwise(times):
            if ended - begun >= length:
                yield name, "fired", begun + length
                yield name, "resolved", ended
        if now - times[-1] >= length:
            yield name, "fired", times[-1] + length


def test_when_it_fires_and_is_resolved(lakes: Lakes) -> None:
    """Looked at now and then, and after a while; episodes are of one firing and one end."""
    lake, drawn = with_rules(lakes.new(), QUIET, LONGER), random.Random(7)
    arrive(lake, 0)
    first = arrivals(lake)
    assert look(lake, first[0] + SECOND) == 0, "rules that are new begin with the newest arrival"
    now = first[0]
    for number in range(1, 6):
        pass_until(now)
        arrive(lake, number)
        now = arrivals(lake)[-1] + drawn.choice((1, 2, 3, 5)) * SECOND
        if number in (2, 3, 5):
            look(lake, now)
            wanted = sorted(expected(arrivals(lake), now, QUIET=2, LONGER=4), key=lambda r: r[::-2])
            assert sorted(rows(lake), key=lambda r: r[::-2]) == wanted
            assert look(lake, now) == 0, "nothing is told twice"
    table = lake.spark.table("engagement_alerts")
    assert table.groupBy("episode", "state").count().where("count > 1").isEmpty()
    last = max(table.collect(), key=lambda row: row["at"])
    said = json.loads(last["features"])
    assert datetime.fromisoformat(said["newest_arrival"]) <= arrivals(lake)[-1]


@pytest.mark.parametrize("point", ALERT_POINTS)
def test_killed_it_is_told_once(lakes: Lakes, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = with_rules(lakes.new(), QUIET)
    arrive(lake, 0)
    now = arrivals(lake)[-1] + 5 * SECOND
    with monkeypatch.context() as failing:
        failpoints._reached.clear()
        failing.setenv(failpoints.VARIABLE, point)
        with pytest.raises(Injected):
            look(lake, now)
    look(lake, now + SECOND)
    assert [state for _, state, _ in rows(lake)] == ["fired"]


def test_a_rule_that_is_changed_or_taken_out_ends(lakes: Lakes) -> None:
    lake = with_rules(lakes.new(), QUIET, LONGER)
    arrive(lake, 0)
    begun = arrivals(lake)[-1]
    assert look(lake, begun + 5 * SECOND) == 2
    lake = with_rules(lake, {**QUIET, "no_events": "1h"})
    assert look(lake, begun + 6 * SECOND) == 2
    assert rows(lake) == [
        ("QUIET", "fired", begun + 2 * SECOND),
        ("LONGER", "fired", begun + 4 * SECOND),
        ("LONGER", "resolved", begun + 6 * SECOND),
        ("QUIET", "resolved", begun + 6 * SECOND),
    ]
    assert look(with_rules(lake), begun + 7 * SECOND) == 0


def test_before_any_event_it_counts_from_the_table(lakes: Lakes) -> None:
    lake = with_rules(lakes.new(), QUIET)
    made = lake.lake.commits("engagement_events", None)[-1].at
    assert look(lake, made + SECOND) == 0
    assert look(lake, made + 2 * SECOND) == 1
    assert rows(lake) == [("QUIET", "fired", made + 2 * SECOND)]


def test_a_run_looks_when_it_is_time(lakes: Lakes) -> None:
    """Between batches nothing is read until the rule can fire; then, and not again."""
    lake = with_rules(lakes.new(), QUIET)
    arrive(lake, 0)
    clock = Ticking(arrivals(lake)[-1])
    heard: list[Any] = []
    following = AfterRefresh(lake.lake, clock, lambda view, changed: heard.append((view, changed)))
    following.follow()
    for _ in range(5):
        clock.at += SECOND
        following.on_idle(None, False)  # type: ignore[arg-type]  # it asks nothing of the pipeline
    assert heard == [("*", {("QUIET", "fired"): 1})]
    values = {"pipeline": "engagement"}
    unsent = lake.spark.table("engagement_alerts").selectExpr("*", "0L AS _commit_version")
    text = statement("alert_messages", lake.lake.pipeline.events, source="engagement_test")
    (message,) = ask(lake.spark, text, values, {"engagement_test_unsent": unsent}).collect()
    told = json.loads(message["value"])
    assert (message["key"], told["view"], told["keys"]) == ("[]", "*", {})


class Ticking(Clock):
    """A clock that a test sets."""

    def __init__(self, at: datetime) -> None:
        object.__setattr__(self, "at", at)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


def test_between_arrivals() -> None:
    rule = AlertRule(**QUIET)
    times = [Arrival(n, at("10:00") + s * SECOND) for n, s in enumerate((0, 1, 3, 4))]
    found = list(silences(rule, times, at("10:00") + 5 * SECOND))
    assert [(one.since.version, one.resolved and one.resolved.version) for one in found] == [(1, 2)]
    found = list(silences(rule, times, at("10:00") + 6 * SECOND))
    assert [one.resolved is None for one in found] == [False, True]
    (still,) = silences(rule, times[-1:], at("10:00") + 5 * SECOND, going_on=True)
    assert still.told, "what was told goes on, whatever the clock says now"
