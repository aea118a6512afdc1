"""audit: what training was given and what serving answers are the same, or it is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tidemill
from command_line import call
from lakes import Event, Lakes, TestLake, at
from runs import Small
from ticks import refresh_at
from tidemill.config.settings import micros_of
from tidemill.errors import InputError, LakeError, StoreError
from tidemill.online import packing
from tidemill.online.open_store import open_store
from tidemill.online.publish import publish
from tidemill.online.store import Entry
from tidemill.online.store_address import StoreAddress
from tidemill.training.audit import audit, same

FIRST: list[Event] = [(None, who, "g", "view", at("10:00")) for who in "pqr"]
SECOND: list[Event] = [
    (None, "p", "g", "view", at("10:01")),
    (None, "s", "g", "select", at("09:30")),
]


@pytest.fixture
def lake(lakes: Lakes, address: StoreAddress) -> TestLake:
    """A lake of two batches, published."""
    made = lakes.fed(FIRST, SECOND)
    publish(made.lake, made.view, address)
    return made


@pytest.fixture
def address(tmp_path: Path) -> StoreAddress:
    return StoreAddress(str(tmp_path / "online.sqlite"))


def audited(lake: TestLake, address: StoreAddress, **words: Any) -> dict[str, Any]:
    return audit(lake.lake, lake.view, address, lake.clock, **words)


def wrong(facts: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Which rates are not 0: of which source, feature, kind."""
    return [
        (source["source"], each["feature"], kind)
        for source in facts["sources"]
        for each in source["features"]
        for kind in ("mismatch", "missing", "extra")
        if each[kind]
    ]


def write(lake: TestLake, address: StoreAddress, who: str, values: list[int] | None) -> None:
    """Put a row into the store that gold never had."""
    store = open_store(address, writes=True)
    state = store.view("engagement")
    assert state is not None
    head = packing.head(state.epoch, state.gold_version)
    packed = packing.pack_row(head, micros_of(state.as_of), values)
    assert store.write(state, [Entry(packing.key_text((who, "g")), packed)]) == 1
    store.close()


def test_all_agree(lake: TestLake, address: StoreAddress) -> None:
    facts = audited(lake, address)
    assert (facts["keys"], facts["gold_version"], facts["different"]) == (4, 2, 0)
    assert facts["compared"] == 4 * 9 * 3 and facts["as_of"] == "2026-11-21T10:02:00Z"
    assert [source["source"] for source in facts["sources"]] == ["store", "recompute", "training"]
    assert (facts["examples"], facts["skipped"]) == ([], {})
    assert audited(lake, address, sample=2)["keys"] == 2


def test_one_value_that_was_flipped_is_found(lake: TestLake, address: StoreAddress) -> None:
    """Rows that are gone and rows that should be are told apart from other values."""
    gold = list(lake.gold()["p", "g"].values())
    state = open_store(address).view("engagement")
    assert state is not None
    row = open_store(address).read(state, [("p", "g")])[0]
    assert row is not None and sorted(row.values) == sorted(gold)
    flipped = list(row.values)
    place = list(state.features).index("view_count_12h")
    flipped[place] += 1
    write(lake, address, "p", flipped)
    facts = audited(lake, address)
    assert wrong(facts) == [("store", "view_count_12h", "mismatch")]
    assert facts["different"] == 1
    assert facts["examples"] == [
        {
            "source": "store",
            "feature": "view_count_12h",
            "key": ["p", "g"],
            "expected": 2,
            "found": 3,
        }
    ]
    write(lake, address, "q", None)
    assert ("store", "view_count_1h", "missing") in wrong(audited(lake, address))


def test_buckets_that_were_changed_are_found(lake: TestLake, address: StoreAddress) -> None:
    lake.spark.sql("DELETE FROM engagement_buckets WHERE profile_id = 's'")
    found = wrong(audited(lake, address))
    assert {("recompute", f"select_count_{length}", "missing") for length in ("1h", "12h")} <= set(
        found
    )
    assert {source for source, _, _ in found} == {"recompute"}


def test_a_store_behind_gold_is_compared_with_its_own_version(
    lake: TestLake, address: StoreAddress
) -> None:
    lake.feed([(None, "p", "g", "view", at("10:02"))])
    facts = audited(lake, address)
    assert (facts["gold_version"], facts["different"], facts["skipped"]) == (2, 0, {})
    lake.feed([(None, "t", "g", "view", at("08:00"))])  # late: the same as_of again
    publish(lake.lake, lake.view, address)
    refresh_at(lake, at("10:05"))
    assert audited(lake, address)["different"] == 0


def answers_of(lake: TestLake, address: StoreAddress, log: Path, times: int = 1) -> None:
    """Ask for keys, and log what is answered, as the server does."""
    limits = {"stale_after": "3000d", "refuse_after": "3650d"}
    with (
        tidemill.FeatureClient(address.url, limits=limits) as client,
        log.open("a", encoding="utf-8") as lines,
    ):
        asked = [{"profile_id": who, "gti": "g"} for who in "pqrsx"]
        for _ in range(times):
            answer = client.features("engagement", asked)
            lines.write(json.dumps({"at": "2026-11-21T10:05:00Z", **answer}, default=str) + "\n")


def test_what_was_answered_is_compared_at_its_own_version(
    lake: TestLake, address: StoreAddress, tmp_path: Path
) -> None:
    log = tmp_path / "answers.jsonl"
    answers_of(lake, address, log)
    lake.feed([(None, "p", "g", "view", at("10:02")), (None, "x", "g", "view", at("10:02"))])
    publish(lake.lake, lake.view, address)
    answers_of(lake, address, log)
    facts = audited(lake, address, responses=log)
    of_log = facts["sources"][-1]
    assert (of_log["source"], facts["different"]) == ("responses", 0)
    assert {each["compared"] for each in of_log["features"]} == {10}
    first, second = log.read_text().splitlines()
    changed = json.loads(second)
    changed["rows"][0]["values"]["view_count_1d"] = 99
    unknown = {**json.loads(first), "gold_version": 77}
    rotated = log.with_name("answers.jsonl.1")
    rotated.write_text(f"{first}\n{json.dumps(unknown)}\n")
    log.write_text(json.dumps(changed) + '\n{"view": "engag')  # cut off as it was written
    facts = audited(lake, address, responses=log)
    assert wrong(facts) == [("responses", "view_count_1d", "mismatch")]
    assert facts["skipped"]["responses"].startswith("5 answered from versions that are not known")
    log.write_text('{"no": "log"}\n')
    with pytest.raises(InputError, match=r"answers\.jsonl:1: is no line of a response log"):
        audited(lake, address, responses=log)


def test_nothing_published_and_a_version_that_is_gone(
    lakes: Lakes, lake: TestLake, address: StoreAddress, tmp_path: Path
) -> None:
    with pytest.raises(StoreError, match="nothing is published of engagement"):
        empty = StoreAddress(str(tmp_path / "empty.sqlite"))
        open_store(empty, writes=True).check_writable()
        audited(lake, empty)
    other = lakes.new()
    with pytest.raises(LakeError, match="no longer tells of version 2"):
        audited(other, address)


def test_the_command(small: Small, tmp_path: Path, spark: SparkSession) -> None:
    root = small.copy(tmp_path / "lake")
    assert call("publish", "engagement", "--root", root).code == 0
    answer = call("audit", "engagement", "--root", root, "--json")
    assert (answer.code, answer.json["different"], answer.json["keys"]) == (0, 0, 3)
    page = tmp_path / "report.html"
    report = call("report", "engagement", "--root", root, "--output", page, "--json")
    (kept,) = report.json["audits"]
    assert (kept["view"], kept["different"], kept["keys"]) == ("engagement", 0, 3)
    assert "examples" not in kept
    text = page.read_text()
    assert "Training and serving" in text and "0 values differ from gold" in text
    told = call("audit", "engagement", "--root", root, "--sample", 2)
    assert told.out.splitlines()[-1] == (
        "engagement: 54 values of 2 keys compared with gold version 1 (store, recompute, "
        "training); 0 differ"
    )


def test_a_nan_is_a_nan() -> None:
    assert same(float("nan"), float("nan")) and not same(float("nan"), 1.0)
    assert same(1, 1.0) and not same(None, 0)
