"""Gold against the accepted events: what the buckets lost is found, what is not read yet is not."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from command_line import call
from lakes import Lakes, TestLake, at, payload
from runs import Small, reading
from tidemill.errors import LakeError
from tidemill.lake.commits.writer import carrying
from tidemill.operations import reconcile
from tidemill.pipeline import on_demand
from tidemill.pipeline.gold import strategy
from tidemill.pipeline.silver import accepted_events

# -- lakes whose checkpoint is written by hand ---------------------------------------------------


def view_at(text: str, profile: str) -> str:
    return payload((None, profile, "g", "view", at(text)))


def has_read(lake: TestLake, batch: int, index: int = -1) -> None:
    """Have the checkpoint of feature say that a batch read every event that there is, or a part of
    the newest version."""
    folder = lake.lake.checkpoint("feature").folder
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "_tidemill.json").write_text(json.dumps({"generation": lake.lake.generation}))
    newest = lake.lake.commits("engagement_events", 1)[0].version
    offset = {"reservoirVersion": newest if index >= 0 else newest + 1, "index": index}
    (folder / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{json.dumps(offset)}")
    (folder / "commits" / str(batch)).write_text("v1\n{}")


def step(lake: TestLake, *payloads: str) -> None:
    lake.step(payloads)
    has_read(lake, lake.batch)


def lose_buckets(lake: TestLake, profile: str) -> None:
    """Remove bucket rows in a commit that looks like upkeep's, so that nothing notices."""
    newest = lake.ledgers("buckets")[0]
    told = {name: newest[name] for name in ("generation", "batch")}
    with carrying(lake.spark, {**told, "upkeep": "a rebuild that was cut off"}):
        lake.spark.sql(f"DELETE FROM engagement_buckets WHERE profile_id = '{profile}'")


def compared(lake: TestLake, version: int | None = None) -> tuple[int, int]:
    found = reconcile.reconcile(lake.lake, lake.view, version, source="events")
    return found.keys, found.different


@pytest.fixture
def lake(lakes: Lakes) -> TestLake:
    def begin(made: TestLake) -> None:
        step(made, view_at("20T10:30", "old"), view_at("09:00", "p"), view_at("09:01", "q"))
        step(made, view_at("10:00", "p"))

    return lakes.begun("accepted-events", begin)


def test_what_the_buckets_lost_is_different_from_the_events(lake: TestLake) -> None:
    assert compared(lake) == (3, 0) and compared(lake, 1) == (3, 0)
    lose_buckets(lake, "q")
    on_demand.refresh_to(replace_mode(lake, "recompute").lake, lake.view, at("10:02"))
    assert lake.different() == 0, "gold is what the buckets say"
    assert compared(lake) == (3, 1)
    told = reconcile.from_events(lake.lake, lake.view, repair=True)
    assert (told["from"], told["different"], told["repaired"]) == ("events", 1, 0)
    assert told["mend"] == "tidemill rebuild engagement --since 2026-11-20T10:00"


def replace_mode(lake: TestLake, mode: str) -> TestLake:
    return replace(
        lake, lake=replace(lake.lake, pipeline=lake.lake.pipeline.overridden({"refresh": mode}))
    )


def test_events_that_feature_has_not_read_do_not_count(lake: TestLake) -> None:
    lake.clean([view_at("10:00", "late")], 2)
    assert compared(lake) == (3, 0), "clean is ahead by a batch"
    on_demand.refresh_to(lake.lake, lake.view, at("10:05"))
    assert compared(lake) == (3, 0)


def test_it_says_when_it_cannot_say(lake: TestLake) -> None:
    offsets = lake.lake.checkpoint("feature").folder / "offsets"
    (offsets / "0").unlink()
    with pytest.raises(LakeError, match="no longer tells"):
        compared(lake, 1)
    (offsets / "1").rename(offsets / "150")
    (offsets.parent / "commits" / "150").touch()
    assert compared(lake) == (3, 0), "the newest batch: everything that was read"
    has_read(lake, 1, index=0)
    with pytest.raises(LakeError, match="ends within version 2 of engagement_events"):
        compared(lake)
    (offsets.parent / "_tidemill.json").unlink()
    with pytest.raises(LakeError, match="there is no checkpoint of feature"):
        compared(lake)


def test_a_sample_is_of_some_keys_and_other_ones_each_time(lake: TestLake) -> None:
    profiles = [f"p{n}" for n in range(200)]
    step(lake, *(view_at("10:00", profile) for profile in profiles))
    sampled = [
        accepted_events.compare(
            lake.lake, lake.view, 3, as_of, lake.batch, accepted_events.ALL // 10
        ).keys
        for as_of in (at("10:01"), at("10:01") + timedelta(hours=1))
    ]
    assert all(5 <= keys <= 45 for keys in sampled), sampled


def test_the_daily_check_reads_events_too(
    lake: TestLake, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_buckets(lake, "q")
    on_demand.refresh_to(replace_mode(lake, "recompute").lake, lake.view, at("10:02"))
    monkeypatch.setattr(strategy, "CHECK_EVERY", timedelta(0))
    with caplog.at_level(logging.ERROR, logger="tidemill"):
        step(lake, view_at("10:02", "z"))
    told = lake.ledgers()[0]
    assert (told["mode"], told.get("drift"), told["events_drift"]) == ("incremental", None, 1)
    assert "engagement_features differs from the accepted events in 1 of the keys" in caplog.text


# -- a real run ----------------------------------------------------------------------------------


@pytest.mark.stream
def test_from_events_and_the_way_to_mend(small: Small, tmp_path: Path, spark: SparkSession) -> None:
    root = small.copy(tmp_path / "lake")
    words = ("reconcile", "engagement", "--root", root, "--json")
    sound = {"view": "engagement", "as_of": "2026-11-21T11:31:00Z", "batch": 0, "keys": 3}
    clean = call(*words, "--from", "events")
    told = {**sound, "gold_version": 1, "different": 0, "engine": "duckdb", "from": "events"}
    assert (clean.code, clean.json) == (0, told)
    lose_buckets(reading(spark, root), "p2")
    again = ("--mode", "recompute", "--as-of", "2026-11-21T11:32")
    assert call("refresh", "engagement", *again, "--root", root).code == 0
    found = call(*words, "--from", "events")
    assert (found.code, found.json["different"]) == (1, 1)
    command = found.json["mend"].split()
    assert command == ["tidemill", "rebuild", "engagement", "--since", "2026-11-20T11:00"]
    assert call(*command[1:], "--root", root).code == 0
    assert call(*words, "--from", "events").json["different"] == 0
    assert call(*words, "--from", "bronze").code == 2
