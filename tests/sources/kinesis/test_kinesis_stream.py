"""Whole streams: the format on its own, and a pipeline that is killed and goes on."""

from __future__ import annotations

import json
import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from children import Children
from kinesis import FakeKinesis, name_of
from lakes import NOW, Event, payload
from runs import of_files, reading, run_once, write_file
from tidemill import register_kinesis
from tidemill.sources.kinesis.source import Kinesis

pytestmark = pytest.mark.stream


def test_the_format_on_its_own(spark: SparkSession, kinesis: FakeKinesis, tmp_path: Path) -> None:
    stream = kinesis.stream("own", 2)
    stream.put(map(str, range(30)))
    register_kinesis(spark)
    rows = spark.readStream.format("kinesis_py").options(
        streamName="own",
        region="eu-central-1",
        endpointUrl=kinesis.endpoint,
        maxRecordsPerTrigger=20,
    )
    query = (
        rows.load()
        .selectExpr("CAST(data AS STRING) AS text", "shardId")
        .writeStream.format("memory")
        .queryName("own_rows")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(int(row.text) for row in spark.table("own_rows").collect()) == list(range(30))
    reports = [json.loads(one["sources"][0]["latestOffset"]) for one in query.recentProgress]
    assert reports[0]["millisBehindLatest"] > 0
    assert reports[-1]["millisBehindLatest"] == 0
    assert [one.numInputRows for one in query.recentProgress][:2] == [20, 10]


def events(first: int, end: int) -> list[Event]:
    """Events of nine keys over the last day, every tenth of them once more."""
    kinds = ("select", "highlight", "view")
    return [
        (str(n), f"p{n % 5}", f"g{n % 2}", kinds[n % 3], NOW - timedelta(minutes=2 * n))
        for n in (number - number % 10 // 9 for number in range(first, end))
    ]


def test_killed_and_resumed_it_gives_the_gold_of_the_same_files(
    spark: SparkSession, kinesis: FakeKinesis, children: Children, tmp_path: Path
) -> None:
    stream = kinesis.stream("clicks", 2)
    records = [payload(event) for event in events(0, 600)] + ['{"torn', ""]
    root = tmp_path / "lake"
    source = ("--source", "kinesis", "--stream", "clicks", "--endpoint-url", kinesis.endpoint)
    run = ("run", "engagement", *source, "--clock", "event", "--root", root)

    stream.put(records[:300])
    child = children.tidemill(*run, "--trigger", "1s")
    child.until(lambda: any((root / "engagement_bronze").glob("*/*.parquet")))
    stream.put(records[300:400])
    os.killpg(child.process.pid, signal.SIGKILL)
    child.ended()

    stream.split(0)
    stream.put(records[400:])
    again = children.tidemill(*run, "--once", "--json")
    assert again.ended() == 0, again.err.read_text()

    write_file(tmp_path / "files", "all.jsonl", [text for text in records if text])
    run_once(tmp_path / "of_files", of_files(tmp_path / "files"))
    expected = reading(spark, tmp_path / "of_files").gold()
    found = reading(spark, root)
    assert found.gold() == expected and len(expected) == 9
    bronze = found.table("bronze").collect()
    assert sorted(row.raw_payload for row in bronze) == sorted(records)
    assert len({row.record_id for row in bronze}) == len(records)
    assert {row.partition for row in bronze} == {0, 1, 2, 3}
    assert {(row.topic, row.offset) for row in bronze} == {("clicks", None)}
    row = bronze[0]
    assert row.record_id.startswith(f"clicks/{name_of(row.partition)}/")
    refused = found.table("quarantine").collect()
    assert {row.record_id.split("/")[0] for row in refused} == {"clicks"}


def test_bytes_and_place_of_a_record(spark: SparkSession, kinesis: FakeKinesis) -> None:
    """The schema that land takes; identity keeps what may not change."""
    stream = kinesis.stream("columns")
    source = Kinesis(stream.options())
    names = ["record_id", "raw_payload", "topic", "partition", "offset", "source_ts"]
    assert source.stream(spark).columns == names
    identity = {"kind": "kinesis", "stream": "columns", "region": "eu-central-1"}
    assert source.identity() == identity
    source.check(once=True)
    assert source.ready()
