"""Maintenance beside a run: when it begins, and that neither ticks nor a stop wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from runs import Small, of_files, opened
from tidemill.lake.batches import BatchRow
from tidemill.operations import maintenance
from tidemill.operations.maintenance import ACTIONS, OFTEN, Done, Step
from tidemill.operations.schedule import MaintenanceSchedule
from tidemill.pipeline.queries import Pipeline

HOUR = timedelta(hours=1)


@pytest.fixture
def pipeline(small: Small, tmp_path: Path) -> Iterator[Pipeline]:
    root = small.copy(tmp_path / "lake")
    with opened(root, of_files(small.input)) as found:
        yield found


def now() -> datetime:
    return datetime.now(timezone.utc)


def until_done(schedule: MaintenanceSchedule, pipeline: Pipeline) -> None:
    assert schedule._pass is not None
    schedule._pass.join(60)
    schedule.on_idle(pipeline, busy=True)
    assert schedule._pass is None


def test_it_begins_when_due_and_quiet(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sequence[str]] = []

    def plan(lake: object, clock: object, actions: Sequence[str]) -> list[Step]:
        asked.append(actions)
        return []

    monkeypatch.setattr(maintenance, "plan", plan)
    schedule = MaintenanceSchedule(lambda rows: None)
    schedule.on_start(pipeline)
    schedule.on_idle(pipeline, busy=False)
    assert schedule._pass is None, "an hour after the start, and not before"
    schedule.due = now() - timedelta(minutes=1)
    schedule.on_idle(pipeline, busy=True)
    assert schedule._pass is None, "a batch runs"
    schedule.on_idle(pipeline, busy=False)
    until_done(schedule, pipeline)
    assert asked == [ACTIONS]
    assert schedule.due is not None and schedule.due - now() > 0.9 * HOUR
    schedule.due = now() - HOUR
    monkeypatch.setattr(maintenance, "last", lambda lake, action=None: now() - HOUR)
    schedule.on_idle(pipeline, busy=True)
    until_done(schedule, pipeline)
    assert asked[1:] == [OFTEN], "it never rests, and vacuum ran an hour ago"


def test_it_does_what_the_command_does_in_a_session_of_its_own(pipeline: Pipeline) -> None:
    told: list[BatchRow] = []
    schedule = MaintenanceSchedule(told.extend)
    schedule.on_start(pipeline)
    schedule.due = now()
    schedule.on_idle(pipeline, busy=False)
    assert schedule._pass is not None
    until_done(schedule, pipeline)
    (row,) = told
    assert row.query == "maintain" and {"hours", "vacuum"} <= set(row.seconds)
    assert pipeline.lake.has("engagement_hours")
    assert pipeline.lake.spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_its_error_ends_the_run(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    def plan(*_: object) -> list[Step]:
        raise ValueError("wrong")

    monkeypatch.setattr(maintenance, "plan", plan)
    schedule = MaintenanceSchedule(lambda rows: None)
    schedule.on_start(pipeline)
    schedule.due = now()
    schedule.on_idle(pipeline, busy=False)
    assert schedule._pass is not None
    schedule._pass.join(60)
    with pytest.raises(ValueError, match="wrong"):
        schedule.on_idle(pipeline, busy=False)


def test_a_stop_interrupts_it(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statement under way ends with an error of Spark's, and no further step is begun."""
    begun, ran = threading.Event(), []

    def plan(lake: object, clock: object, actions: Sequence[str]) -> list[Step]:
        spark = lake.spark  # type: ignore[attr-defined]

        def long() -> str:
            # Compiled, a range looks whether it is cancelled; interpreted it does not.
            spark.conf.set("spark.sql.codegen.wholeStage", "true")
            spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
            begun.set()
            spark.range(10**12).selectExpr("sum(id % 7)").collect()
            return "done"

        def never() -> str:
            ran.append("never")
            return "done"

        return [Step("t", "optimize", "why", long), Step("t", "vacuum", "why", never)]

    monkeypatch.setattr(maintenance, "plan", plan)
    schedule = MaintenanceSchedule(lambda rows: None)
    schedule.on_start(pipeline)
    schedule.due = now()
    schedule.on_idle(pipeline, busy=False)
    assert begun.wait(60)
    schedule.on_idle(pipeline, busy=False)  # at once: a tick does not wait
    schedule.on_stop()
    assert ran == []
    assert pipeline.lake.spark.range(3).count() == 3, "the run's own session is as it was"


def test_steps_end_between_two_of_them(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that cannot be interrupted is waited for, the next one is not begun."""
    begun, may_end = threading.Event(), threading.Event()
    done: list[Done] = []

    def plan(*_: object) -> list[Step]:
        return [Step("t", "tidy", "why", wait), Step("t", "tidy", "why", lambda: "never")]

    def wait() -> str:
        begun.set()
        may_end.wait(60)
        return "ended"

    def maintain(lake: object, steps: Iterable[Step], tell: Callable[[Done], None]) -> list[Done]:
        done.extend(Done(s.table, s.action, s.reason, s.run(), 0.0) for s in steps)
        return done

    monkeypatch.setattr(maintenance, "plan", plan)
    monkeypatch.setattr(maintenance, "maintain", maintain)
    schedule = MaintenanceSchedule(lambda rows: None)
    schedule.on_start(pipeline)
    schedule.due = now()
    schedule.on_idle(pipeline, busy=False)
    assert begun.wait(60)
    threading.Timer(0.5, may_end.set).start()
    schedule.on_stop()
    assert [each.result for each in done] == ["ended"]
