"""Changes into a dimension: the same rows in any order and any batches, as plain Python says."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import change_log
from change_log import START, Change, Database, customer
from dimension_lakes import WORDS, DimensionLake, declared, with_history
from tidemill.errors import LedgerError
from tidemill.lake.commits import failpoints

C1 = {"customer_id": "c1"}


def made(seed: int, transactions: int = 25) -> list[Change]:
    """A snapshot, and the changes of transactions; those of neighbours are interleaved."""
    database = Database(seed)
    changes = database.snapshot()
    for transaction in database.transactions(transactions):
        changes += transaction
    return changes


@pytest.mark.parametrize("kind", ["type1", "type2"])
def test_any_order_and_any_batches_give_the_same_dimension(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    """Duplicates, updates before inserts, deletes, changes of keys, tombstones: ten schedules."""
    for seed in range(3):
        changes = made(seed)
        lake = DimensionLake.new(spark, tmp_path / f"{seed}", with_history(kind))
        records = change_log.shuffled(changes, seed)
        for part in change_log.split(records, 3, seed):
            lake.change(part)
        assert lake.newest() == change_log.newest(changes)
        if kind == "type2":
            assert lake.history() == change_log.history(changes)
        check_accounts(lake, len(records))


def check_accounts(lake: DimensionLake, records: int) -> None:
    told = lake.ledgers("customer_dimension")
    for batch in told:
        parts = batch["accepted"] + batch["quarantined"] + batch["tombstones"]
        assert batch["events"] == parts
    assert sum(batch["events"] for batch in told) == records
    assert sum(batch["tombstones"] for batch in told) == 2


def at(minute: int):
    return START.replace(minute=minute)


#   lsn     10       20        30        40
#           insert   update    delete    insert      arrive as 30, 10, 40, 20
INSERT = Change(10, at(1), None, customer(1, "basic", 1), "c")
UPDATE = Change(20, at(2), None, customer(1, "gold", 2), "u")
DELETE = Change(30, at(3), C1, None, "d")
AGAIN = Change(40, at(4), None, customer(1, "basic", 4), "c")


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> DimensionLake:
    return DimensionLake.new(spark, tmp_path / "lake", declared())


def test_late_changes_repair_the_history(lake: DimensionLake) -> None:
    lake.change([DELETE.record()])
    lake.change([INSERT.record()])
    assert lake.newest() == {}, "an older change brings no deleted key back"
    assert lake.history() == {("c1", "basic", 1, at(1), at(3))}
    lake.change([AGAIN.record()])
    lake.change([UPDATE.record()])
    assert lake.history() == {
        ("c1", "basic", 1, at(1), at(2)),
        ("c1", "gold", 2, at(2), at(3)),
        ("c1", "basic", 4, at(4), None),
    }
    before = lake.rows("customer_dimension")
    lake.change([record.record() for record in (AGAIN, DELETE, INSERT, UPDATE)])
    assert lake.rows("customer_dimension") == before, "what is known already changes nothing"


def test_a_batch_again_is_verified(lake: DimensionLake) -> None:
    records = [INSERT.record(), UPDATE.record(), "{"]
    lake.change(records)
    lake.change([DELETE.record()])
    commits = len(lake.ledgers("customer_dimension"))
    lake.records = 0
    lake.change(records, batch=0)
    assert len(lake.ledgers("customer_dimension")) == commits
    lake.records = 0
    with pytest.raises(LedgerError, match="batch 0 was written before with other rows"):
        lake.change([INSERT.record(), AGAIN.record(), "{"], batch=0)
    assert lake.newest() == {}


@pytest.mark.parametrize(
    ("point", "quarantined", "merged"),
    [
        ("dimension.judged", 0, 0),
        ("dimension.quarantine_written", 1, 0),
        ("dimension.merged", 1, 1),
    ],
)
def test_a_batch_that_dies_and_comes_again(
    lake: DimensionLake, monkeypatch: pytest.MonkeyPatch, point: str, quarantined: int, merged: int
) -> None:
    records = [INSERT.record(), UPDATE.record(), "{"]
    failpoints._reached.clear()
    with monkeypatch.context() as dying:
        dying.setenv(failpoints.VARIABLE, point)
        with pytest.raises(failpoints.Injected):
            lake.change(records)
    assert lake.table("customer_quarantine").count() == quarantined
    assert len(lake.ledgers("customer_dimension")) == merged
    lake.records = 0
    lake.change(records, batch=0)
    assert lake.history() == {
        ("c1", "basic", 1, at(1), at(2)),
        ("c1", "gold", 2, at(2), None),
    }
    assert lake.table("customer_quarantine").count() == 1
    assert len(lake.ledgers("customer_dimension")) == 1


def test_what_is_no_change_is_refused_with_every_reason(lake: DimensionLake) -> None:
    good = json.loads(INSERT.record())
    delete = json.loads(DELETE.record())

    def spoiled(of: dict, **words: object) -> str:
        return json.dumps({**of, **words})

    cases = [
        ('{"op"', ["malformed"]),
        ("[1]", ["not_an_object"]),
        (spoiled(good, op=None), ["missing:op"]),
        (spoiled(good, op="t"), ["unknown_value:op"]),
        (spoiled(delete, before=None), ["missing:before"]),
        (spoiled(delete, before={"segment": "x"}), ["missing:customer_id"]),
        (spoiled(good, after=None), ["missing:after"]),
        (spoiled(good, after={**C1, "credit": None}), ["missing:credit"]),
        (spoiled(good, after={**C1, "credit": "much"}), ["wrong_type:credit"]),
        (spoiled(good, after={**C1, "credit": 1, "segment": 5}), ["wrong_type:segment"]),
        (spoiled(good, source={"ts_ms": 1}), ["missing:source.lsn"]),
        (spoiled(good, source={"lsn": "10", "ts_ms": 1}), ["missing:source.lsn"]),
        (spoiled(good, source={"lsn": 10}, ts_ms=None), ["missing:source.ts_ms"]),
    ]
    lake.change([record for record, _ in cases] + [UPDATE.record()])
    assert lake.refused() == [reasons for _, reasons in cases]
    assert lake.newest() == {"c1": {"segment": "gold", "credit": 2}}, "the others went on"
    (told,) = lake.ledgers("customer_dimension")
    assert (told["events"], told["accepted"], told["quarantined"]) == (14, 1, 13)
    assert told["refused"]["missing:source.lsn"] == 2


def feed(kind: str, version: int, row: dict) -> str:
    at_ = f"2026-11-20T08:{version:02d}:00Z"
    said = {"_change_type": kind, "_commit_version": version, "_commit_timestamp": at_}
    return json.dumps({**row, **said})


@pytest.mark.parametrize("kind", ["type1", "type2"])
def test_a_delta_change_data_feed(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """An update is a row before and one after, of one version; one that changes the key too."""
    words = {**WORDS["dimensions"][0], "format": "delta_feed", "history": kind}
    lake = DimensionLake.new(spark, tmp_path / "lake", declared(dimensions=[words]))
    first, second, moved = (customer(1, "basic", n) for n in (1, 2, 3))
    moved = {**moved, "customer_id": "c2"}
    records = [
        feed("insert", 1, first),
        feed("update_preimage", 2, first),
        feed("update_postimage", 2, second),
        feed("update_preimage", 3, second),
        feed("update_postimage", 3, moved),
    ]
    random.Random(4).shuffle(records)
    lake.change(records[:2])
    lake.change(records[2:])
    assert lake.newest() == {"c2": {"segment": "basic", "credit": 3}}
    if kind == "type2":
        assert lake.history() == {
            ("c1", "basic", 1, at(1), at(2)),
            ("c1", "basic", 2, at(2), at(3)),
            ("c2", "basic", 3, at(3), None),
        }
        assert lake.table("customer_dimension").count() == 4, "no row of an update's first half"


@pytest.mark.parametrize(
    ("order", "older", "newer"),
    [
        ("binlog", {"file": "bin.9", "pos": 9}, {"file": "bin.10", "pos": 1}),
        ("binlog", {"file": "bin.9", "pos": 9, "row": 0}, {"file": "bin.9", "pos": 9, "row": 1}),
        ("time", {"ts_ms": 900}, {"ts_ms": 1000}),
        ("time", {"ts_ms": 900, "txId": 7}, {"ts_ms": 900, "txId": 10}),
    ],
)
def test_other_orders(
    spark: SparkSession, tmp_path: Path, order: str, older: dict, newer: dict
) -> None:
    words = {**WORDS["dimensions"][0], "order": order, "history": "type1"}
    lake = DimensionLake.new(spark, tmp_path / "lake", declared(dimensions=[words]))
    records = []
    for credit, source in ((1, older), (2, newer)):
        envelope = json.loads(INSERT.record())
        envelope["after"]["credit"] = credit
        records.append(json.dumps({**envelope, "source": {"ts_ms": 1, **source}}))
    lake.change(records[::-1])
    assert lake.newest()["c1"]["credit"] == 2
