"""Any schedule of ticks and troubles: gold is the oracle's after every step."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta

import pytest

import oracle
from lakes import Event, Lakes, at
from spending import some_event
from ticks import refresh_at, wishing
from tidemill.lake.commits import failpoints, ledger

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.full)])
def test_any_schedule_of_ticks_and_troubles(
    seed: int, lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Appends of any lateness, jumps to and fro, crashes, OPTIMIZE, modes: gold is the oracle's
    after every step, and what a recompute says."""
    choose, lake = random.Random(seed), lakes.new()
    known: list[Event] = []
    now = at("06:00")
    for step in range(12):
        wishing(lake, choose.choice(["auto", "incremental", "incremental", "recompute"]))
        now += choose.choice([0, 1, 1, 2, 59, 61, 200]) * MINUTE
        if step == 0 or choose.random() < 0.7:
            new = [some_event(choose, now) for _ in range(choose.randint(1, 6))]
            known += new
            died = choose.choice([None, None, "feature.buckets_written", "refresh.merged"])
            crash(monkeypatch, died, lambda new=new: lake.feed(new))
            if died:
                lake.feed(new, lake.batch)
        else:
            time = now + choose.choice([-700, -61, -1, 5, 61]) * MINUTE
            died = choose.choice([None, "refresh.changes_computed"])
            crash(monkeypatch, died, lambda time=time: refresh_at(lake, time))
            refresh_at(lake, time)
        if choose.random() < 0.3:
            table = choose.choice(["buckets", "features"])
            lake.spark.sql(f"OPTIMIZE engagement_{table}").collect()
        as_of = ledger.instant(lake.ledgers()[0]["as_of"])
        assert lake.gold() == oracle.features(known, as_of), f"step {step}: {lake.ledgers()[0]}"
    assert lake.different() == 0
    assert sum(t["mode"] == "incremental" for t in lake.ledgers()) >= 4


def crash(monkeypatch: pytest.MonkeyPatch, point: str | None, step: Callable[[], object]) -> None:
    """Run the step, which dies at the point when one is named."""
    failpoints._reached.clear()
    with monkeypatch.context() as failing:
        failing.setenv(failpoints.VARIABLE, point or "")
        if point is None:
            step()
            return
        try:
            step()
        except failpoints.Injected:
            return
