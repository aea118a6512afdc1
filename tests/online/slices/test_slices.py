"""Slices: at each batch what gold says, whatever was merged, written twice, lost or cut off."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lakes import Lakes, TestLake, at, payload
from runs import Small, run_once, write_file
from tidemill.config.settings import Clock
from tidemill.errors import RequestError, UsageError
from tidemill.lake.commits import failpoints
from tidemill.lake.commits.failpoints import SLICE_POINTS, Injected
from tidemill.online import publish as publishing
from tidemill.online.answers import wire_format
from tidemill.online.answers.feature_service import FeatureService
from tidemill.online.answers.limits import Limits
from tidemill.online.client.feature_client import FeatureClient
from tidemill.online.open_store import open_store
from tidemill.online.store_address import StoreAddress
from tidemill.operations import maintenance
from tidemill.pipeline.event_slices.slice_batches import SliceWork
from tidemill.pipeline.event_slices.slice_writer import SliceWriter
from tidemill.training import logged_answers

RICH = {
    "name": "rich",
    "keys": ["who"],
    "event_time": "at",
    "schema": {
        "who": "string",
        "kind": "string",
        "number": "bigint?",
        "amount": "double?",
        "ok": "boolean?",
    },
    "features": [
        {"count": {"by": {"kind": ["a", "b"]}}, "over": ["5m", "1h", "1d"]},
        {"sum": {"of": "number"}, "over": ["1h", "1d", {"tumbling": "2h"}]},
        {"sum": {"of": "amount", "scale": 2}, "over": ["1h", "1d"], "name": "spent"},
        {"sum": {"of": "number"}, "over": ["2h"], "offset": "3h", "name": "before"},
        {"mean": {"of": "amount", "scale": 2}, "over": ["1h"]},
        {"variance": {"of": "number"}, "over": ["1d"]},
        {"stddev": {"of": "amount", "scale": 2}, "over": ["1d"], "empty": 0.0},
        {"min": {"of": "number"}, "over": ["1h", "1d"]},
        {"max": {"of": "amount"}, "over": ["1h", {"calendar": "day", "zone": "Asia/Kolkata"}]},
        {"argmax": {"of": "kind", "at": "number"}, "over": ["1d"]},
        {"first": {"of": "kind"}, "over": ["1h"]},
        {"last": {"of": "number"}, "over": ["1d"]},
        {"last_seen": {}, "over": ["1d"]},
        {"bool_and": {"of": "ok"}, "over": ["1h"]},
        {"bool_or": {"of": "ok"}, "over": ["1d"]},
        {"distinct": {"of": "kind", "limit": 2}, "over": ["1h", "1d"]},
        {"count": {}, "where": "number > 3", "over": ["1d"], "name": "large"},
        {"ratio": {"of": "large_count", "to": "a_count"}, "over": ["1d"], "name": "share"},
    ],
}
WHO = ("ann", "bob", "cyd", "nobody")


class Sliced:
    """A lake with a store that its slices are in, and what answers from it."""

    def __init__(self, lake: TestLake, address: StoreAddress):
        self.lake, self.address = lake, address
        self.work = SliceWork(lake.lake, lake.view, address)
        self.service = FeatureService(open_store(address), Limits.of({}), lake.clock)

    def step(self, *payloads: str) -> None:
        self.lake.step(payloads)
        self.work.bring()
        publishing.publish(self.lake.lake, self.lake.view, self.address)

    def answer(self, mode: str | None = None) -> dict[str, Any]:
        self.service.look()
        document = {"view": self.lake.view.name, "keys": [[who] for who in WHO]}
        return self.service.answer_document({**document, **({"mode": mode} if mode else {})})

    def values(self) -> dict[str, dict[str, Any]]:
        answer = self.answer("slices")
        return {who: row["values"] for who, row in zip(WHO, answer["rows"], strict=True)}

    def gold(self) -> dict[str, dict[str, Any]]:
        """What gold holds of each key, empty values of one that it does not."""
        publishing.publish(self.lake.lake, self.lake.view, self.address)
        answer = self.answer("gold")
        return {who: row["values"] for who, row in zip(WHO, answer["rows"], strict=True)}


def record(who: str, time: datetime, number: int, **more: Any) -> str:
    fields = {"who": who, "at": time.isoformat(), "kind": "a", "number": number, **more}
    return json.dumps({"event_id": None, **fields})


@pytest.fixture
def file(tmp_path: Path) -> StoreAddress:
    return StoreAddress(str(tmp_path / "online.sqlite"))


@pytest.fixture
def rich(lakes: Lakes, file: StoreAddress) -> Iterator[Sliced]:
    sliced = Sliced(lakes.new(views=[RICH]), file)
    yield sliced
    sliced.service.store.close()


def some(draw: random.Random, end: datetime, count: int) -> list[str]:
    """Events of the two days before an end, most of its last hour."""
    late = [draw.choice((3600, 3600, 3600, 100_000)) for _ in range(count)]
    return [
        record(
            draw.choice(WHO[:3]),
            end - timedelta(seconds=draw.random() * seconds),
            draw.choice((draw.randint(-5, 9), 2**62)),
            kind=draw.choice("abcd"),
            amount=draw.choice((None, draw.randint(-500, 500) / 100)),
            ok=draw.choice((None, True, False)),
        )
        for seconds in late
    ]


def test_each_batch_they_say_what_gold_says(rich: Sliced) -> None:
    """Six batches over a day with late events; merged twice on the way, and a sum of 2^62s that
    its type cannot hold."""
    draw = random.Random(5)
    for number in range(6):
        end = at("08:00") + timedelta(hours=4.3 * number)
        rich.step(*some(draw, end, 25))
        assert rich.values() == rich.gold(), number
        answer = rich.answer()
        assert (answer["mode"], answer["through"]) == ("slices", number)
        assert answer["rows"][3]["found"] is False
        if number in (2, 4):
            assert rich.work.merge()
            assert not rich.work.merge()
            assert rich.values() == rich.gold(), number


def test_a_batch_that_comes_again_counts_once(rich: Sliced) -> None:
    """The job is off, hours are merged meanwhile, and it comes back with batches that it wrote, or
    did not."""
    for number in range(3):
        rich.step(record("ann", at(f"10:0{number}"), number))
    said = rich.work.state()
    assert said is not None
    events = rich.lake.lake.spark.table("engagement_events")
    for merged in (False, True):
        if merged:
            rich.work.merge()
        for batch in (0, 2, 1, 2):
            SliceWriter(rich.address, said).add(events.where(f"batch = {batch}"), batch)
        assert rich.values()["ann"]["number_sum_1h"] == 3 == rich.gold()["ann"]["number_sum_1h"]
    rich.step(record("ann", at("09:30"), 10))  # late, for an hour that is merged
    assert rich.values() == rich.gold()
    rich.work.merge()
    assert rich.values()["ann"]["number_sum_1h"] == 13


@pytest.mark.parametrize("point", SLICE_POINTS)
def test_killed_anywhere_nothing_is_lost_or_double(
    rich: Sliced, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rich.step(record("ann", at("10:00"), 1))
    before = rich.gold()
    assert rich.values() == before
    rich.lake.step([record("ann", at("10:01"), 2), record("bob", at("08:00"), 2)])
    if point == "slices.merged":
        rich.work.bring()
    failpoints._reached.clear()
    monkeypatch.setenv(failpoints.VARIABLE, point)
    with pytest.raises(Injected):
        rich.work.merge() if point == "slices.merged" else rich.work.bring()
    monkeypatch.delenv(failpoints.VARIABLE)
    if point == "slices.written":
        assert rich.values() == before  # a batch is seen when it is whole
    rich.work.bring()
    assert rich.values() == rich.gold()


def test_a_lost_store_many_batches_and_changed_events_are_made_anew(
    rich: Sliced, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        rich.step(record("ann", at(f"10:0{number}"), number))
    for number in range(2, 11):
        rich.lake.batch += 1
        rich.lake.clean([record("ann", at(f"10:{number:02}"), number)], rich.lake.batch)
    rich.lake.step([record("ann", at("10:11"), 11)])
    assert rich.work.bring()
    assert not rich.work.bring()
    assert rich.values()["ann"]["number_sum_1h"] == 66
    rich.lake.lake.spark.sql("UPDATE engagement_events SET number = 0 WHERE number = 11")
    rich.lake.step([record("bob", at("10:20"), 1)])
    rich.work.bring()
    assert rich.values()["ann"]["number_sum_1h"] == 55
    state = rich.work.state()
    assert state is not None and state.compacted == state.through == 12


def test_maintenance_merges_them_and_removes_what_no_window_reaches(
    lakes: Lakes, address: StoreAddress
) -> None:
    lake = lakes.new(views=[RICH], publish={"slices": True, "store": address.url})
    sliced = Sliced(lake, address)
    sliced.step(record("ann", at("19T06:30"), 1))
    sliced.step(record("ann", at("21T10:00"), 2))
    steps = maintenance.plan(lake.lake, lake.clock, ("slices",))
    assert [(s.action, s.reason) for s in steps] == [("slices", "1 batch not merged")]
    maintenance.maintain(lake.lake, steps)
    assert maintenance.plan(lake.lake, lake.clock, ("slices",)) == []
    state = sliced.work.state()
    assert state is not None
    hours = range(int(at("19T00:00").timestamp()) // 3600, int(at("22T00:00").timestamp()) // 3600)
    (found,) = sliced.service.store.read_slices(state, [("ann",)], hours)
    assert [hour * 3600 for hour in found] == [at("21T10:00").timestamp()]
    assert sliced.values() == sliced.gold()


def test_an_audit_compares_what_they_answered(rich: Sliced, tmp_path: Path) -> None:
    """Answers through each of three batches are as the events were by then; one that was changed in
    the log is found."""
    lines = []
    for number in range(3):
        rich.step(record("ann", at(f"10:0{number}"), number), record("bob", at("08:30"), 2**62))
        lines.append({"at": "2026-11-21T10:05:00Z", **rich.answer("slices")})
    log = tmp_path / "answers.jsonl"
    log.write_bytes(b"".join(wire_format.as_json(line) + b"\n" for line in lines))
    read = logged_answers.read(log, rich.lake.view, 100)
    wanted = logged_answers.expected(rich.lake.lake, rich.lake.view, read.answers)
    for place, one in enumerate(read.answers):
        found = wanted[place]
        assert (found is not None) == one.found
        if found is not None:
            assert logged_answers.as_json(found) == one.values, place
    assert [a.values["number_sum_1d"] for a in read.answers if a.key == ("ann",)] == [0, 1, 3]


def test_by_the_wall_clock_windows_end_with_the_minute_of_the_request(
    lakes: Lakes, file: StoreAddress
) -> None:
    lake = lakes.new(views=[RICH], follows="wall", clock=Clock(at("10:30:20")))
    sliced = Sliced(lake, file)
    sliced.step(record("ann", at("10:29:59"), 7))
    sliced.gold()
    answer = sliced.answer()
    assert answer["as_of"] == "2026-11-21T10:31:00Z"
    assert answer["rows"][0]["values"]["a_count_5m"] == 1
    for time, count in (("10:33:59", 1), ("10:34:00", 0), ("11:29:00", 0)):
        later = FeatureService(open_store(file), Limits.of({}), Clock(at(time)))
        later.look()
        row = later.answer_document({"view": "rich", "keys": [["ann"]]})["rows"][0]
        assert (row["values"]["a_count_5m"], row["found"]) == (count, True), time
        later.store.close()


def test_gold_answers_where_there_are_none(rich: Sliced) -> None:
    rich.lake.step([record("ann", at("10:00"), 1)])
    rich.gold()
    assert "mode" not in rich.answer()
    with pytest.raises(RequestError, match="has no slices"):
        rich.answer("slices")


def test_a_view_that_only_sql_merges_is_refused(lakes: Lakes) -> None:
    view = {**RICH, "features": [{"approx_distinct": {"of": "kind"}, "over": ["1h"]}]}
    with pytest.raises(UsageError, match="slices cannot merge kind_approx_distinct_1h of rich"):
        lakes.new(views=[view], publish={"slices": True})


@pytest.mark.stream
def test_a_run_brings_them_and_a_lost_checkpoint_loses_nothing(
    small: Small, tmp_path: Path
) -> None:
    """A lake with a past gets slices; its query's checkpoint is lost between two runs."""
    small = small.copy_all(tmp_path)
    file, root = tmp_path / "online.sqlite", small.root
    definition = small.definition.overridden({"publish": {"slices": True, "store": str(file)}})
    assert [query.name for query in definition.queries_of("buckets")][-1] == "slices"
    run_once(root, definition)
    gold = reading_gold(file, "gold")
    assert reading_gold(file, "slices") == gold
    shutil.rmtree(root / "_checkpoints" / "engagement_slices")
    event = (None, "p-new", "g", "view", small.events[-1][-1] + timedelta(minutes=2))
    write_file(small.input, "more.jsonl", [payload(event)], age=-10)
    run_once(root, definition)
    found = reading_gold(file, "slices")
    assert found == reading_gold(file, "gold") != gold
    assert found[("p-new", "g")]["view_count_1h"] == 1


def reading_gold(file: Path, mode: str) -> dict[tuple[str, str], dict[str, Any]]:
    """The values of all keys that the store has rows of, and of one more."""
    with sqlite3.connect(file) as connection:
        keys = [tuple(json.loads(key)) for (key,) in connection.execute("SELECT key FROM rows")]
    with FeatureClient(str(file), limits={"refuse_after": 1e9}) as client:
        answer = client.features("engagement", keys[:1000], mode=mode)
    assert answer.get("mode", "gold") == mode
    return {key: row["values"] for key, row in zip(keys, answer["rows"], strict=False)}
