"""Publish: the store answers what gold holds, whatever died or was lost in between."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import oracle
from command_line import call
from lakes import Event, Lakes, TestLake, at
from redis_server import running
from runs import Small
from ticks import refresh_at
from tidemill.config.pipeline_file import load
from tidemill.errors import StoreError, UsageError
from tidemill.lake.commits import failpoints
from tidemill.lake.commits.failpoints import PUBLISH_POINTS, Injected
from tidemill.online import publish as publishing
from tidemill.online import row_writer
from tidemill.online.embedded_store import EmbeddedStore
from tidemill.online.open_store import open_store
from tidemill.online.publish import Published
from tidemill.online.store_address import FILE_NAME, StoreAddress
from tidemill.pipeline import publication


def view_at(text: str, profile: str = "p") -> Event:
    return (None, profile, "g", "view", at(text))


def publish(lake: TestLake, address: StoreAddress, **words: bool) -> Published:
    return publishing.publish(lake.lake, lake.view, address, **words)


def stored(lake: TestLake, address: StoreAddress) -> dict[tuple, dict]:
    """The store's rows of the lake's keys that are not empty, as `TestLake.gold` has them."""
    store = open_store(address)
    state = store.view("engagement")
    assert state is not None and state.is_whole
    keys = [(profile, "g") for profile in "abcdpq"]
    found = {}
    for key, row in zip(keys, store.read(state, keys), strict=True):
        if row and any(row.values):
            found[key] = dict(zip(state.features, row.values, strict=True))
    store.close()
    return found


def fail_at(patch: pytest.MonkeyPatch, point: str) -> None:
    """End the next publish at a point."""
    failpoints._reached.clear()
    patch.setenv(failpoints.VARIABLE, point)


FIRST = [view_at("10:00"), view_at("10:00", "q")]


def test_what_changed_is_brought_and_no_more(lakes: Lakes, address: StoreAddress) -> None:
    """Twice the same is nothing; several versions at once are the last one's rows."""
    lake = lakes.fed(FIRST, [view_at("10:01")])
    first = publish(lake, address)
    assert (first.mode, first.reason) == ("snapshot", "the store has nothing of the view")
    assert (first.keys, first.gold_version, first.as_of) == (2, 2, at("10:02"))
    assert stored(lake, address) == lake.gold()
    assert publish(lake, address).mode == "none"
    lake.feed([view_at("10:02"), view_at("10:02", "a")])
    second = publish(lake, address)
    assert (second.mode, second.keys, second.gold_version) == ("feed", 2, 3)
    lake.feed([view_at("10:03")])
    refresh_at(lake, at("11:01"))  # q leaves the hour, and all but one of p
    third = publish(lake, address)
    assert (third.mode, third.keys, third.gold_version) == ("feed", 2, 5)
    assert stored(lake, address) == lake.gold()
    state = open_store(address).view("engagement")
    assert state and state.empty == (0,) * 9 and state.as_of == at("11:01")
    assert dict(state.keys) == {"profile_id": "STRING", "gti": "STRING"}


def test_a_version_without_a_change_moves_the_as_of(lakes: Lakes, address: StoreAddress) -> None:
    """A row that did not change is not written again, and is not old for that."""
    lake = lakes.fed(FIRST)
    publish(lake, address)
    refresh_at(lake, at("10:30"))
    done = publish(lake, address)
    assert (done.mode, done.keys, done.as_of) == ("feed", 0, at("10:30"))


def test_a_refresh_to_an_earlier_time_is_not_published(lakes: Lakes, address: StoreAddress) -> None:
    lake = lakes.fed(FIRST, [view_at("10:01")])
    publish(lake, address)
    before = stored(lake, address)
    refresh_at(lake, at("10:01"))
    assert lake.ledgers()[0]["earlier"] and publish(lake, address).mode == "none"
    assert stored(lake, address) == before
    refresh_at(lake, at("10:05"))
    publish(lake, address)
    assert stored(lake, address) == lake.gold()


def test_deleted_and_restored_rows(lakes: Lakes, address: StoreAddress) -> None:
    deleting = {**lakes.declared(), "when_empty": "delete"}
    lake = lakes.fed(FIRST, views=[deleting])
    publish(lake, address)
    refresh_at(lake, at("22T10:02"))
    assert publish(lake, address).keys == 2
    state = open_store(address).view("engagement")
    assert state and open_store(address).read(state, [("p", "g"), ("q", "g")]) == [None, None]
    lake.spark.sql("RESTORE TABLE engagement_features TO VERSION AS OF 1")
    refresh_at(lake, at("22T10:03"))
    publish(lake, address)
    assert stored(lake, address) == lake.gold() == {}


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in (2, 3))]
)
def test_any_schedule_of_publishes_ends_in_gold(lakes: Lakes, tmp_path: Path, seed: int) -> None:
    """Some cut off at a point, some by a publisher that saw the store before another's."""
    choose = random.Random(seed)
    lake, address = lakes.fed(FIRST), StoreAddress(str(tmp_path / "online.sqlite"))
    known = list(FIRST)
    for minute in range(1, 5):
        events = [view_at(f"10:{minute:02}", choose.choice("abcdpq")) for _ in range(3)]
        events.append(view_at(f"0{choose.randrange(1, 9)}:30", choose.choice("abcd")))
        known += events
        lake.feed(events)
        with pytest.MonkeyPatch.context() as patch:
            if point := choose.choice([*PUBLISH_POINTS, None]):
                fail_at(patch, point)
                with pytest.raises(Injected):
                    publish(lake, address)
        if choose.random() < 0.5:
            publish(lake, address)
            assert stored(lake, address) == oracle.features(known, oracle.as_of(known))
    publish(lake, address)
    assert stored(lake, address) == oracle.features(known, oracle.as_of(known)) == lake.gold()


def test_an_older_publisher_takes_nothing_back(
    lakes: Lakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read gold before the other did, and writes after it; then it begins again."""
    lake, address = lakes.fed(FIRST), StoreAddress(str(tmp_path / "online.sqlite"))
    publish(lake, address)
    lake.feed([view_at("10:01"), view_at("10:01", "a")])
    write, done = row_writer.RowWriter.write_here, []

    def overtaken(writer: row_writer.RowWriter, rows: pa.Table) -> int:
        monkeypatch.setattr(row_writer.RowWriter, "write_here", write)
        lake.feed([view_at("10:02"), view_at("10:02", "b")])
        done.append(publish(lake, address))
        return write(writer, rows)

    monkeypatch.setattr(row_writer.RowWriter, "write_here", overtaken)
    assert publish(lake, address).mode == "none"
    assert done[0].gold_version == 3
    assert stored(lake, address) == lake.gold()


def test_all_rows_where_something_was_lost(
    lakes: Lakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time with its reason, and without rows that gold has no more."""
    lake, address = lakes.fed(FIRST), StoreAddress(str(tmp_path / "online.sqlite"))
    fail_at(monkeypatch, "publish.rows_written")
    with pytest.raises(Injected):
        publish(lake, address)
    monkeypatch.delenv(failpoints.VARIABLE)
    assert not open_store(address).views()[0].is_whole
    assert publish(lake, address).reason == "a first publish has not ended"
    assert publish(lake, address, rebuild=True).reason == "asked for"
    assert open_store(address).views()[0].epoch == 3
    state = open_store(address).views()[0]
    lake.feed([view_at("10:01")])
    lake.feed([view_at("10:02")])
    log = Path(str(lake.lake.place.root)) / "engagement_features" / "_change_data"
    for file in log.glob("*.parquet"):
        file.unlink()
    done = publish(lake, address)
    assert done.mode == "snapshot" and "feed cannot be read" in str(done.reason)
    for words, reason in (
        ({"generation": "g0"}, "gold was made again"),
        ({"gold_version": 99}, "gold is at version 3, the store at 99"),
        ({"features": {"n": "bigint"}}, "keys or features changed"),
    ):
        store = open_store(address, writes=True)
        store.advance(replace(state, epoch=5, **words), store.view("engagement"))
        assert publish(lake, address).reason == reason
        assert stored(lake, address) == lake.gold()


def test_rows_that_do_not_change_are_renewed(
    lakes: Lakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, address = lakes.fed(FIRST), StoreAddress(str(tmp_path / "online.sqlite"))
    publish(lake, address)
    store = open_store(address, writes=True)
    state = store.view("engagement")
    long_ago = datetime.now(timezone.utc) - timedelta(days=1)
    assert state and state.ttl_seconds == timedelta(days=2).total_seconds()
    store.advance(replace(state, renewed_at=long_ago), state)
    lake.feed([view_at("10:01")])
    done = publish(lake, address)
    assert (done.mode, done.keys, done.gold_version) == ("renewal", 2, 2)
    assert stored(lake, address) == lake.gold()
    assert publish(lake, address).mode == "none"


def test_many_rows_are_written_by_tasks(
    lakes: Lakes, address: StoreAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lakes.fed(FIRST)
    monkeypatch.setattr(row_writer, "HERE", 0)
    assert publish(lake, address).keys == 2
    lake.feed([view_at("10:01"), view_at("10:01", "a")])
    assert publish(lake, address).keys == 2
    assert stored(lake, address) == lake.gold()


def test_an_error_of_the_store_in_a_task_is_the_stores(
    lakes: Lakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, address = lakes.fed(FIRST), StoreAddress(str(tmp_path / "online.sqlite"))
    monkeypatch.setattr(row_writer, "HERE", -1)
    gone = StoreAddress("/proc/none/online.sqlite")
    writer = row_writer.RowWriter(gone, open_state(lake, address))
    rows = publishing.changed_rows.snapshot(lake.lake, lake.view, 1)
    with pytest.raises(StoreError, match="the online store cannot be used"):
        writer.write(rows, 2)


def open_state(lake: TestLake, address: StoreAddress) -> publishing.PublishedView:
    monkey = row_writer.HERE
    row_writer.HERE = 100
    publish(lake, address)
    row_writer.HERE = monkey
    return open_store(address).views()[0]


# -- as a part of the pipeline -------------------------------------------------------------------


def test_a_batch_publishes_what_it_refreshed(lakes: Lakes, tmp_path: Path) -> None:
    address = StoreAddress(str(tmp_path / "online.sqlite"))
    lake = lakes.new(publish={"store": address.url})
    lake.feed(FIRST)
    assert stored(lake, address) == lake.gold()
    lake.feed([view_at("10:01")])
    assert stored(lake, address) == lake.gold()


@pytest.mark.redis
def test_a_store_that_dies_holds_up_no_batch(lakes: Lakes, tmp_path: Path) -> None:
    """Restarted, and empty, it is brought all that it lacks; with `stop` the batch ends."""
    folder = tmp_path / "redis"
    folder.mkdir()
    with running(folder) as server:
        said = {"store": server.url, "connect_seconds": 0.5, "answer_seconds": 0.5}
        address, lake = StoreAddress(server.url), lakes.new(publish=said)
        lake.feed(FIRST)
        server.stop()
        lake.feed([view_at("10:01")])
        assert lake.ledgers()[0]["batch"] == 1
        stops = lakes.open(lakes.made[0], publish={**said, "on_failure": "stop"})
        with pytest.raises(StoreError, match="Redis does not answer"):
            publication.publish_view(stops.lake, stops.view)
        server.restart()
        lake.feed([view_at("10:02")])
        assert stored(lake, address) == lake.gold()


def test_a_publish_that_takes_too_long_is_given_up(lakes: Lakes, tmp_path: Path) -> None:
    """By a batch, which goes on; the command has no limit."""
    address = StoreAddress(str(tmp_path / "online.sqlite"))
    lake = lakes.fed(FIRST, [view_at("10:01")])
    with pytest.raises(StoreError, match="time limit of a batch's publish"):
        publishing.publish(lake.lake, lake.view, address, within=timedelta(microseconds=1))
    assert not open_store(address).views()[0].is_whole
    assert publish(lake, address).reason == "a first publish has not ended"
    assert stored(lake, address) == lake.gold()


def test_a_store_that_is_emptied_while_rows_are_brought(
    lakes: Lakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, address = lakes.fed(FIRST), StoreAddress(str(tmp_path / "online.sqlite"))
    write = row_writer.RowWriter.write

    def emptied(writer: row_writer.RowWriter, rows: object, expected: int) -> int:
        monkeypatch.setattr(row_writer.RowWriter, "write", write)
        written = write(writer, rows, expected)  # type: ignore[arg-type]
        store = EmbeddedStore(address.path, writes=True)
        with store._writing() as connection:
            connection.execute("DELETE FROM rows")
            connection.execute("DELETE FROM views")
        store.close()
        return written

    monkeypatch.setattr(row_writer.RowWriter, "write", emptied)
    assert publish(lake, address).mode == "snapshot"
    assert stored(lake, address) == lake.gold()


# -- the command, and what is refused ------------------------------------------------------------


def test_the_command(small: Small, tmp_path: Path, spark: SparkSession) -> None:
    root = small.copy(tmp_path / "lake")
    answer = call("publish", "engagement", "--root", root, "--json")
    (done,) = answer.json["views"]
    assert (done["view"], done["mode"], done["keys"]) == ("engagement", "snapshot", 3)
    assert done["store"] == str(root / FILE_NAME)
    again = call("publish", "engagement", "--root", root)
    assert (again.code, again.out.count("\n")) == (0, 1)
    assert again.out.startswith("engagement: none; 0 keys, gold version 1, as of 2026-11-21T11:31")
    away = call(
        "publish", "engagement", "--root", root, "--store", "redis://127.0.0.1:9/0", "--json"
    )
    assert (away.code, away.error["kind"]) == (3, "store")
    wrong = call("publish", "engagement", "--root", root, "--view", "engagment", "--json")
    assert wrong.code == 2 and "did you mean" in str(wrong.error["message"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"views": ["others"]}, "names others, which is no view"),
        ({"ttl": "24h"}, "too short for engagement"),
        ({"ttl": "1h"}, "too short"),
        ({"on_failure": "wait"}, "catch-up"),
        ({"stores": "x"}, "stores"),
    ],
)
def test_words_that_are_refused(words: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load("engagement").overridden({"publish": words})
