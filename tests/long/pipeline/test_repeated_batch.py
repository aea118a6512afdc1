"""A batch that comes twice: nothing is written twice, and other rows are never taken for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakes import Event, Lakes, TestLake, at, events_frame, payload
from runs import versions
from tidemill.errors import LedgerError
from tidemill.lake.commits import ledger
from tidemill.pipeline.steps import clean_step, feature_step

pytestmark = pytest.mark.connect

A: Event = ("a", "p", "g", "view", at("10:00"))
B: Event = ("b", "p", "g", "select", at("10:00"))
C: Event = ("c", "q", "g", "view", at("10:01"))
BAD, WORSE = '{"event_id', "{}"


def records(lake: TestLake, *payloads: Event | str) -> DataFrame:
    """Bronze rows whose record_id goes by the record, as a stream would read them again."""
    lake.records = 0
    return lake.bronze(p if isinstance(p, str) else payload(p) for p in payloads)


def clean(lake: TestLake, rows: DataFrame, batch: int = 0) -> None:
    clean_step.clean_batch(rows, batch, lake=lake.lake)


def feature(lake: TestLake, rows: DataFrame, batch: int = 0) -> None:
    feature_step.feature_batch(rows, batch, lake=lake.lake, clock=lake.clock, follows="event")


def stand(lake: TestLake) -> dict[str, int]:
    assert lake.lake.place.root
    return versions(lake.lake.place.root)


@pytest.fixture
def lake(lakes: Lakes) -> TestLake:
    return lakes.new()


def test_the_same_rows_again_make_no_commit(lake: TestLake) -> None:
    rows = records(lake, A, B, A, C, BAD)
    clean(lake, rows)
    feature(lake, lake.events())
    before = stand(lake)
    clean(lake, rows.orderBy("record_id", ascending=False))
    feature(lake, lake.events().orderBy("event_id", ascending=False))
    assert stand(lake) == before
    assert [(told["accepted"], told["duplicates"]) for told in lake.ledgers("events")] == [(3, 1)]
    assert lake.different() == 0


def test_an_earlier_batch_again_makes_no_commit(lake: TestLake) -> None:
    """Newer batches stand after it: gold's batch is not lowered, its values do not move."""
    lake.step([payload(A), BAD])
    lake.step([payload(B), payload(C)])
    before, gold = stand(lake), lake.gold()
    clean(lake, records(lake, A, BAD), 0)
    feature(lake, events_frame(lake.spark, [A]), 0)
    assert stand(lake) == before
    assert lake.gold() == gold


def test_other_records_under_the_same_id(lake: TestLake) -> None:
    clean(lake, records(lake, A, C, BAD))
    before = stand(lake)
    for other in (
        (A, B, BAD),
        (A, BAD),
        (A, C, WORSE),  # another refused
        (A, C),  # none refused
        (A, C, C, BAD),  # a duplicate more
        (A, C, BAD, WORSE),
    ):
        with pytest.raises(LedgerError, match="batch 0 was written before with other rows"):
            clean(lake, records(lake, *other))
    assert stand(lake) == before


def test_refused_records_under_the_id_of_a_batch_without_any(lake: TestLake) -> None:
    clean(lake, records(lake, A))
    with pytest.raises(LedgerError, match="batch 0 was written before with other rows"):
        clean(lake, records(lake, A, BAD))


def test_other_events_under_the_same_id(lake: TestLake) -> None:
    feature(lake, events_frame(lake.spark, [A, C]))
    before = stand(lake)
    for other in ([A], [A, B, C], [A, C, C], [A, B]):
        with pytest.raises(LedgerError, match="engagement_buckets: batch 0 was written before"):
            feature(lake, events_frame(lake.spark, other))
    assert stand(lake) == before


def without_log(lake: TestLake, table: str) -> None:
    """Take the table's log away up to now, as log cleaning does: a checkpoint stands for it."""
    name = f"engagement_{table}"
    lake.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    newest = ledger.commits(lake.spark, name, 1)[0].version
    log = Path(lake.lake.place.root or "", name, "_delta_log")
    assert (log / "_last_checkpoint").exists()
    for version in range(newest):
        (log / f"{version:020}.json").unlink(missing_ok=True)
        (log / f".{version:020}.json.crc").unlink(missing_ok=True)


# commits:   create   batch 0   batch 1 | property       the log before the bar is cleaned away
# batch 0 comes again: only its rows can tell that it stands
def test_a_batch_whose_commit_is_gone_is_known_by_its_rows(lake: TestLake) -> None:
    frames = [records(lake, A, BAD), records(lake, B, C, WORSE)]
    for batch, rows in enumerate(frames):
        clean(lake, rows, batch)
        feature(lake, lake.events().where(f"batch = {batch}"), batch)
    for table in ("quarantine", "events", "buckets"):
        without_log(lake, table)
        assert lake.ledgers(table) == []
    before = stand(lake)
    for batch, rows in enumerate(frames):
        clean(lake, rows, batch)
        feature(lake, lake.events().where(f"batch = {batch}"), batch)
    with pytest.raises(LedgerError, match="batch 1 was written before with other rows"):
        clean(lake, frames[0], 1)
    with pytest.raises(LedgerError, match="batch 1 was written before with other rows"):
        feature(lake, lake.events(), 1)
    assert stand(lake) == before


# commits:   create   batch 0 | property   batch 1       batch 0 is gone, a newer ledger is not
def test_a_batch_whose_commit_is_gone_behind_a_newer_one(lake: TestLake) -> None:
    clean(lake, records(lake, A), 0)
    without_log(lake, "events")
    clean(lake, records(lake, B, C), 1)
    before = stand(lake)
    clean(lake, records(lake, A), 0)
    assert stand(lake) == before
    with pytest.raises(LedgerError, match="batch 0 was written before with other rows"):
        clean(lake, records(lake, C), 0)


def test_the_next_batch_after_a_cleaned_log_is_written(lake: TestLake) -> None:
    for batch, event in enumerate((A, C)):
        clean(lake, records(lake, event), batch)
        feature(lake, lake.events().where(f"batch = {batch}"), batch)
        without_log(lake, "events")
        without_log(lake, "buckets")
    assert [row.batch for row in lake.table("buckets").orderBy("batch").collect()] == [0, 1]
    assert lake.different() == 0


def test_delta_skips_a_version_that_our_application_used(lake: TestLake) -> None:
    """Why every skip must be verified: Delta writes nothing and says nothing."""
    clean(lake, records(lake, A), 0)
    clean(lake, records(lake, B), 1)
    table, before = lake.lake.tables.events, stand(lake)
    rows = lake.events().withColumn("record_id", F.lit("other"))
    for version in (0, 1):
        append_plainly(rows, table.name, lake.lake.app_id(table), version)
    assert stand(lake) == before
    append_plainly(rows, table.name, lake.lake.app_id(table), 2)
    append_plainly(rows, table.name, "somebody else", 1)
    assert stand(lake)["events"] == before["events"] + 2


def append_plainly(rows: DataFrame, table: str, application: str, version: int) -> None:
    txn = {"txnAppId": application, "txnVersion": version}
    rows.write.format("delta").mode("append").options(**txn).saveAsTable(table)
