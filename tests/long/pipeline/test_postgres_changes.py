"""What PostgreSQL says at the end is what the dimension says: real changes of random transactions.

Four sessions write at once, ten thousand transactions are committed, Debezium's connector in Kafka
Connect tells of their changes. They come to the dimension in any order, some twice.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import change_server
from change_log import Change, history, moment, split
from dimension_lakes import DimensionLake, with_history

SESSIONS, EACH, KEYS = 4, 3_500, 200
MARK = "the-end"

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str | None], dict[str, dict]]:
    """The records of the topic, and the rows of the table at the end."""
    if lacking := change_server.missing():
        pytest.skip(lacking)
    with change_server.running(tmp_path_factory.mktemp("changes")) as server:
        texts = [change_server.transactions(seed, EACH, KEYS) for seed in range(SESSIONS)]
        sessions = [server.psql(text) for text in texts]
        assert [session.wait() for session in sessions] == [0] * SESSIONS
        ((committed,),) = server.rows(
            "SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'"
        )
        assert int(committed) >= 10_000
        server.psql(f"INSERT INTO customers VALUES ('{MARK}', NULL, 0);\n").wait()
        records = server.records(MARK)
        rows = server.rows("SELECT customer_id, coalesce(segment, '-'), credit FROM customers")
    newest = {
        key: {"segment": None if segment == "-" else segment, "credit": int(credit)}
        for key, segment, credit in rows
    }
    return records, newest


@pytest.mark.parametrize("kind", ["type1", "type2"])
def test_the_dimension_is_the_table(
    spark: SparkSession, tmp_path: Path, told: tuple[list[str | None], dict[str, dict]], kind: str
) -> None:
    records, newest = told
    draw = random.Random(11)
    shuffled = [*records, *draw.sample(records, 500)]
    draw.shuffle(shuffled)
    lake = DimensionLake.new(spark, tmp_path / "lake", with_history(kind))
    for part in split(shuffled, 4, seed=3):
        lake.change(part)
    assert lake.newest() == newest
    batches = lake.ledgers("customer_dimension")
    assert sum(batch["events"] for batch in batches) == len(shuffled)
    assert sum(batch["quarantined"] for batch in batches) == 0
    if kind == "type2":
        assert lake.history() == versions(records)


def versions(records: list[str | None]) -> set[tuple]:
    """Every version that held in some time, by the lsn alone."""
    changes = []
    for record in filter(None, records):
        said = json.loads(record)
        at = moment(said["source"]["ts_ms"])
        place = said["source"]["lsn"]
        changes.append(Change(place, at, said["before"], said["after"], said["op"]))
    return history(changes)
