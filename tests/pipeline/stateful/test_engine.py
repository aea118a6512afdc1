"""The stateful engine on a lake: the same gold as the buckets engine, whatever dies when."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import yaml
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import oracle
from children import Children
from command_line import call
from lakes import Event, Lakes, TestLake, at, payload
from runs import check_whole, of_files, opened, reading, run_once, write_file
from tidemill.config.pipeline_file import SHIPPED, load
from tidemill.config.settings import Clock
from tidemill.errors import CheckpointError, DefinitionError, LedgerError, UsageError
from tidemill.lake import checkpoints
from tidemill.lake.commits import failpoints, ledger
from tidemill.operations import reconcile
from tidemill.pipeline.gold import refresh as gold
from tidemill.pipeline.queries import ONCE, Pipeline
from tidemill.pipeline.silver import minute_buckets
from tidemill.pipeline.stateful.engine import query_of
from tidemill.pipeline.stateful.processor import STATE
from tidemill.pipeline.steps import feature_step
from tidemill.sources.files.source import Files

MINUTE = timedelta(minutes=1)


@dataclass
class Stateful:
    """A lake of the stateful engine whose state query is run when a test says so."""

    lake: TestLake

    @property
    def pipeline(self) -> Pipeline:
        return Pipeline(
            self.lake.lake, Files(Path()), self.lake.clock, self.lake.lake.pipeline.clock
        )

    @property
    def query(self) -> str:
        return query_of(self.lake.view)

    def run(self) -> StreamingQuery:
        """Bring everything that arrived through the state, claimed as a run does."""
        self.pipeline.claim([self.query])
        query = self.pipeline.start(self.query, ONCE)
        query.awaitTermination()
        return query

    def feed(self, events: Sequence[Event]) -> StreamingQuery:
        self.lake.feed(events)
        return self.run()

    def rows_of_state(self) -> int:
        folder = self.lake.lake.checkpoint(self.query).folder
        state = self.lake.spark.read.format("statestore").option("stateVarName", STATE)
        return state.load(str(folder)).count()


def stateful(lakes: Lakes, **words: object) -> Stateful:
    return Stateful(lakes.new(engine="stateful", **words))


def view_at(text: str, profile: str = "p") -> Event:
    return (None, profile, "g", "view", at(text))


def modes(lake: TestLake) -> list[str]:
    """The modes of gold's refreshes, newest first."""
    return [told["mode"] for told in lake.ledgers()]


# -- the same gold -------------------------------------------------------------------------------


@pytest.mark.stream
def test_both_engines_hold_the_same(lakes: Lakes) -> None:
    """Late events, windows that pass, keys that empty, batches that the state takes together."""
    batches, golds = schedule(random.Random(5)), []
    engine = stateful(lakes)
    for number, (now, known, new) in enumerate(batches):
        engine.lake.feed(new)
        if number == 1:
            continue
        (state,) = engine.run().lastProgress["stateOperators"]
        golds.append(engine.lake.gold())
        assert golds[-1] == oracle.features(known, now), number
        assert state["numRowsTotal"] == len(golds[-1]), "state rows = live keys"
    told = engine.lake.ledgers()
    assert [each["batch"] for each in told] == [4, 3, 2, 0], "two batches in one refresh"
    assert {each["mode"] for each in told} == {"stateful"}
    assert engine.rows_of_state() == len(golds[-1])
    assert engine.lake.different() == engine.lake.different(told[2]["version"]) == 0

    other = lakes.new()
    for number, (_, _, new) in enumerate(batches):
        other.feed(new)
        assert number == 1 or other.gold() == golds.pop(0), number
    theirs = other.ledgers()[0]
    assert [theirs[name] for name in ("batch", "as_of")] == [
        told[0][name] for name in ("batch", "as_of")
    ]


def schedule(choose: random.Random) -> list[tuple[datetime, list[Event], list[Event]]]:
    """Batches: the as_of after each, all events up to it, and its own."""
    now, known, batches = at("06:00"), list[Event](), []
    for minutes in (0, 1, 61, 700, 750):
        now += minutes * MINUTE
        new = [some_event(choose, now) for _ in range(choose.randint(1, 5))]
        new.append((None, "on", "time", "view", now - MINUTE))
        known = [*known, *new]
        batches.append((now, known, new))
    return batches


def some_event(choose: random.Random, now: datetime) -> Event:
    late = choose.choice([1, 2, 30, 60, 61, 719, 720, 1439, 1440, 1441, 3000])
    key, kind = choose.choice("pqr"), choose.choice(oracle.TYPES)
    return (None, key, choose.choice("gh"), kind, now - late * MINUTE)


SPENT = {
    "name": "engagement",
    "keys": ["profile_id"],
    "event_time": "event_timestamp",
    "schema": {"profile_id": "string", "amount": "double", "label": "string"},
    "when_empty": "delete",
    "features": [
        {"min": "amount", "over": ["10m", "1h"]},
        {"max": "label", "over": ["10m"]},
        {"count": {}, "over": ["10m"]},
    ],
}


@pytest.mark.stream
def test_min_max_and_count_and_an_emptied_key_leaves(lakes: Lakes) -> None:
    engine = stateful(lakes, views=[SPENT])
    batches = [
        [("p", 2.5, "b", at("10:00")), ("p", 1.5, "ä", at("10:00")), ("q", 7.0, "c", at("09:58"))],
        [("q", 9.0, "a", at("10:11"))],
        [("r", 1.0, "a", at("11:00"))],
    ]
    shown = []
    for batch in batches:
        feed_spending(engine.lake, batch)
        engine.run()
        assert engine.lake.different() == 0
        rows = engine.lake.table("features").orderBy("profile_id").collect()
        shown.append([tuple(row)[:-1] for row in rows])
    #   min 1h, min 10m, max 10m, count 10m; as_of 10:01, 10:12, 11:01
    assert shown == [
        [("p", 1.5, 1.5, "ä", 2), ("q", 7.0, 7.0, "c", 1)],
        [("p", 1.5, None, None, 0), ("q", 7.0, 9.0, "a", 1)],
        [("q", 9.0, None, None, 0), ("r", 1.0, 1.0, "a", 1)],
    ]
    assert engine.rows_of_state() == 2


def feed_spending(lake: TestLake, batch: Sequence[tuple]) -> None:
    lake.batch += 1
    schema = "profile_id STRING, amount DOUBLE, label STRING, event_timestamp TIMESTAMP"
    frame = lake.spark.createDataFrame(list(batch), schema).coalesce(1)
    feature_step.feature_batch(frame, lake.batch, lake=lake.lake, clock=lake.clock, follows="event")


@pytest.mark.stream
def test_each_view_has_a_state_of_its_own(lakes: Lakes, tmp_path: Path) -> None:
    """Through the whole of `run --once`, over views with other keys."""
    titles = {"name": "titles", "keys": ["gti"], "features": [{"count": {}, "over": ["1h"]}]}
    views = [lakes.declared(), {**lakes.declared(), **titles}]
    definition = of_files(tmp_path / "in").overridden({"engine": "stateful", "views": views})
    write_file(tmp_path / "in", "1.jsonl", map(payload, [view_at("10:00"), view_at("10:00", "q")]))
    run_once(tmp_path / "lake", definition)
    with opened(tmp_path / "lake", definition) as done:
        assert done.queries[3:] == ("state_engagement", "state_titles")
        found = [reconcile.reconcile(done.lake, view) for view in definition.views]
    assert [(each.keys, each.different) for each in found] == [(2, 0), (1, 0)]
    assert lakes.spark.table("titles_features").select("gti", "count_1h").collect() == [("g", 2)]


# -- crashes, and gold that was changed by others ------------------------------------------------


@pytest.mark.stream
def test_killed_before_and_after_the_merge(lakes: Lakes, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the first batch, when the state is new, and in a later one: run again, nothing twice."""
    engine, known = stateful(lakes), [view_at("10:00"), view_at("10:00", "q")]
    engine.lake.feed(known)
    for point in ("refresh.changes_computed", "refresh.merged"):
        with dies(monkeypatch, point):
            engine.run()
    engine.run()
    assert engine.lake.gold() == oracle.features(known, at("10:01"))
    assert len(engine.lake.ledgers()) == 1

    known += [view_at("11:00")]
    engine.lake.feed(known[-1:])
    for point in ("refresh.changes_computed", "refresh.merged"):
        with dies(monkeypatch, point):
            engine.run()
    assert len(engine.lake.ledgers()) == 2
    engine.run()
    assert len(engine.lake.ledgers()) == 2, "the second try finds it merged"
    assert engine.lake.gold() == oracle.features(known, at("11:01"))
    assert engine.rows_of_state() == 2
    assert engine.lake.different() == 0


@contextmanager
def dies(monkeypatch: pytest.MonkeyPatch, point: str) -> Iterator[None]:
    failpoints._reached.clear()
    with monkeypatch.context() as failing:
        failing.setenv(failpoints.VARIABLE, point)
        with pytest.raises(PySparkException, match=point):
            yield


@pytest.mark.full
@pytest.mark.stream
@pytest.mark.crash
def test_a_continuous_run_is_killed_in_a_batch_of_the_state(
    spark: SparkSession, children: Children, tmp_path: Path
) -> None:
    """kill -9 while the state takes in the second file; the next run goes on with that batch."""
    first = [view_at("10:00"), view_at("10:59", "q"), view_at("20T11:10", "r")]
    second = [view_at("11:20"), view_at("10:30", "q")]
    files, root = tmp_path / "in", tmp_path / "lake"
    write_file(files, "1.jsonl", map(payload, first), age=60)
    file = declared(tmp_path / "p.yaml", source={"kind": "files", "input": str(files)})
    state = root / "_checkpoints" / "engagement_state_engagement"
    child = children.tidemill("run", file, "--root", root, "--trigger", "1s", "--json")
    child.until(lambda: newest(state / "commits") >= 0)
    write_file(files, "2.jsonl", map(payload, second))
    before = newest(state / "commits")
    child.until(lambda: newest(state / "offsets") > max(before, newest(state / "commits")))
    child.process.kill()
    assert child.ended() == -signal.SIGKILL

    definition = load(str(file))
    run_once(root, definition)
    lake = reading(spark, root, str(file))
    check_whole(lake, [*map(payload, first), *map(payload, second)], [*first, *second])
    assert set(modes(lake)) == {"stateful"}


def newest(folder: Path) -> int:
    """The newest batch that a query has planned (offsets) or done (commits), -1 for none."""
    return max((int(p.name) for p in folder.glob("*") if p.name.isdigit()), default=-1)


@pytest.mark.stream
def test_gold_that_another_changed_is_compared_with_a_new_state(lakes: Lakes) -> None:
    """By hand, and by the other engine: the state emits every key again, from the buckets."""
    engine = stateful(lakes)
    engine.feed([view_at("10:00"), view_at("10:00", "q"), view_at("09:00", "r")])
    lake = engine.lake
    lake.spark.sql("UPDATE engagement_features SET view_count_1d = 77 WHERE profile_id = 'r'")
    lake.feed([view_at("10:01")])
    with pytest.raises(PySparkException, match="is not as the state left it: UPDATE at version 2"):
        query = engine.pipeline.start(engine.query, ONCE)
        query.awaitTermination()
    engine.run()
    assert lake.different() == 0

    batch = minute_buckets.bucketed(lake.lake, lake.view).batch
    gold.refresh(lake.lake, lake.view, as_of=at("10:30"), batch=batch)
    engine.feed([view_at("10:02")])
    assert modes(lake)[:3] == ["stateful", "recompute", "stateful"]
    assert ledger.instant(lake.ledgers()[0]["as_of"]) == at("10:03")
    assert lake.different() == 0


@pytest.mark.stream
def test_a_query_that_begins_before_any_event(lakes: Lakes) -> None:
    """Its first batch holds nothing; the second brings the whole of gold."""
    engine = stateful(lakes)
    engine.pipeline.claim([engine.query])
    query = engine.pipeline.start(engine.query, {"processingTime": "0 seconds"})
    try:
        deadline = time.monotonic() + 60
        while query.lastProgress is None and time.monotonic() < deadline:
            time.sleep(0.2)  # a query tells of its progress only when asked
        for minute in ("10:00", "10:01"):
            batch = engine.lake.feed([view_at(minute)])
            until_batch(engine.lake, query, batch)
    finally:
        query.stop()
    assert engine.lake.gold()["p", "g"]["view_count_1h"] == 2
    assert modes(engine.lake) == ["stateful", "stateful"]
    assert engine.lake.different() == 0


def until_batch(lake: TestLake, query: StreamingQuery, batch: int) -> None:
    """Wait until gold holds the batch."""
    deadline = time.monotonic() + 60
    while lake.lake.gold_state(lake.view).batch < batch:
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline
        time.sleep(0.2)  # a table tells of its commits only when asked


@pytest.mark.stream
def test_a_lost_state_is_made_anew(lakes: Lakes) -> None:
    """Everything in it stands in the buckets. A stranger's checkpoint is refused all the same."""
    engine = stateful(lakes)
    engine.feed([view_at("09:01"), view_at("10:00", "q")])
    engine.lake.lake.checkpoint(engine.query).forget()
    engine.feed([view_at("10:01", "q")])
    assert engine.lake.ledgers()[0]["changed"] == 2, "p left the hour"
    assert engine.rows_of_state() == 2
    assert engine.lake.different() == 0
    file = engine.lake.lake.checkpoint(engine.query).folder / checkpoints.FILE
    file.write_text(file.read_text().replace("event", "wall"))
    with pytest.raises(CheckpointError, match=r"belongs to \{'clock': 'wall'\}"):
        engine.run()


@pytest.mark.stream
def test_buckets_that_another_deleted_leave_a_new_state(lakes: Lakes) -> None:
    engine = stateful(lakes)
    engine.feed([view_at("10:00"), view_at("10:00", "q")])
    engine.lake.spark.sql("DELETE FROM engagement_buckets WHERE profile_id = 'q'")
    with pytest.raises(LedgerError, match="DELETE at version 2 of engagement_buckets"):
        engine.lake.feed([view_at("10:01")])
    engine.run()
    assert list(engine.lake.gold()) == [("p", "g")]
    assert engine.rows_of_state() == 1
    assert engine.lake.different() == 0


# -- the wall clock ------------------------------------------------------------------------------


@pytest.mark.stream
def test_the_wall_clock_empties_a_window_without_an_event(lakes: Lakes) -> None:
    """A bucket that leaves the hour with the next minute, and a stream that runs until it has."""
    engine = stateful(lakes, follows="wall")
    engine.lake.clock = Clock()
    now = datetime.now(timezone.utc).replace(second=0, microsecond=0)
    engine.lake.feed([(None, "p", "g", "view", now - 59 * MINUTE), (None, "q", "g", "view", now)])
    engine.pipeline.claim([engine.query])
    query = engine.pipeline.start(engine.query, {"processingTime": "1 second"})
    try:
        told = until_as_of(engine.lake, now + 2 * MINUTE)
    finally:
        query.stop()
    assert query.exception() is None
    assert engine.lake.gold()["p", "g"]["view_count_1h"] == 0
    assert engine.lake.gold()["p", "g"]["view_count_1d"] == 1
    assert engine.lake.gold()["q", "g"]["view_count_1h"] == 1
    assert told["batch"] == 0
    for each in engine.lake.ledgers():
        assert engine.lake.different(each["version"]) == 0, each


def until_as_of(lake: TestLake, as_of: datetime) -> dict:
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        told = lake.ledgers()
        if told and ledger.instant(told[0]["as_of"]) >= as_of:
            return told[0]
        time.sleep(1)  # the time that passes is what is tested
    pytest.fail(f"gold never came to {as_of}: {lake.ledgers()}")


# -- what is declared and asked ------------------------------------------------------------------


def declared(path: Path, **words: object) -> Path:
    """The shipped pipeline with the stateful engine, as a file."""
    shipped = yaml.safe_load((SHIPPED / "engagement.yaml").read_text())
    del shipped["refresh"]
    path.write_text(yaml.safe_dump({**shipped, "engine": "stateful", **words}))
    return path


def test_the_engine_is_a_word_of_the_file(tmp_path: Path) -> None:
    assert load("engagement").engine == "buckets"
    assert load(str(declared(tmp_path / "a.yaml"))).engine == "stateful"
    with pytest.raises(DefinitionError, match="unknown engine 'statefull'; did you mean 'stateful"):
        load(str(declared(tmp_path / "b.yaml", engine="statefull")))
    for mode in ("recompute", "incremental"):
        with pytest.raises(DefinitionError, match=f"refresh: {mode} cannot be done from state"):
            load(str(declared(tmp_path / "c.yaml", refresh=mode)))
        with pytest.raises(UsageError, match=f"refresh: {mode} cannot be done from state"):
            load("engagement").overridden({"engine": "stateful", "refresh": mode})


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("--engine", "buckts"), "engine: unknown engine 'buckts'; did you mean 'buckets'?"),
        (("--engine", "stateful", "--mode", "recompute"), "refresh: recompute cannot be done from"),
    ],
)
def test_run_refuses(words: tuple[str, ...], found: str, tmp_path: Path) -> None:
    answer = call("run", "engagement", "--once", "--root", tmp_path / "lake", *words)
    assert answer.code == 2
    assert found in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.stream
def test_the_commands(lakes: Lakes, tmp_path: Path) -> None:
    """run, reconcile and rebuild work; what needs a recompute exits 2 and says what to do."""
    events = [view_at("10:00"), view_at("10:59", "q"), view_at("20T12:00", "r")]
    write_file(tmp_path / "in", "1.jsonl", map(payload, events))
    source = {"kind": "files", "input": str(tmp_path / "in")}
    file, root = (
        declared(tmp_path / "p.yaml", source=source),
        ("--root", tmp_path / "lake", "--json"),
    )
    run = call("run", file, "--once", *root)
    assert run.code == 0, run
    assert [run.json[name] for name in ("batches", "keys_changed")] == [1, 3]
    assert run.json["as_of"] == "2026-11-21T11:00:00Z"
    checked = call("reconcile", file, *root)
    assert [checked.json[name] for name in ("keys", "different")] == [3, 0]

    for words, where, expected in (
        (("refresh", file), "refresh", f"`tidemill run {file} --once`"),
        (("refresh", file, "--as-of", "2026-11-21T10:30Z"), "--as-of", "engine: buckets"),
        (
            ("reconcile", file, "--repair"),
            "--repair",
            f"`tidemill rebuild {file} --from bronze`",
        ),
        (("refresh", file, "--mode", "recompute"), "", None),
    ):
        answer = call(*words, *root)
        assert answer.code == 2, words
        assert (answer.error["where"], answer.error["expected"]) == (where, expected)

    spark = lakes.spark
    spark.sql("UPDATE engagement_features SET view_count_1d = 5 WHERE profile_id = 'q'")
    assert call("reconcile", file, *root).code == 1
    again = call("rebuild", file, "--from", "bronze", *root)
    assert again.code == 0, again
    assert again.json["keys_changed"] == 1
    assert call("reconcile", file, *root).json["different"] == 0
