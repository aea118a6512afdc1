"""Joins of the events with themselves: every kind, what comes late, a silent side, another try."""

from __future__ import annotations

import random
import shutil
import time
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakes import NOW, at
from stream_lakes import StreamLake, declared, drawn, expected, join
from tidemill.config.settings import Clock
from tidemill.errors import CheckpointError, LakeError, LedgerError, QueryError
from tidemill.lake import discovery
from tidemill.monitoring import status
from tidemill.monitoring.prometheus import Exporter
from tidemill.monitoring.status import Watched
from tidemill.operations.rebuild.from_bronze import renew
from tidemill.pipeline import batch_log
from tidemill.pipeline.steps import stream_step

pytestmark = pytest.mark.stream

KINDS = ("inner", "left", "right", "full")
ASK = [("ask", "a", at("09:00")), ("ask", "b", at("09:00")), ("ask", "c", at("09:00"))]


def test_every_kind_is_what_duckdb_says(spark: SparkSession, tmp_path: Path) -> None:
    """Events of three hours in batches of any order; the first run finds several batches, out of
    which nothing is late, as they are taken at once."""
    streams = [{"name": f"{kind}_pairs", "join": join(kind=kind)} for kind in KINDS]
    lake = StreamLake.new(spark, tmp_path / "lake", declared(streams))
    events = drawn(5, at("08:00"), 180)
    early, rest = events[:60], events[60:]
    random.Random(5).shuffle(early)
    for first in range(0, 60, 20):
        lake.feed(*early[first : first + 20])
    lake.run()
    for first in range(0, 60, 20):
        lake.feed(*rest[first : first + 20])  # never more than six minutes behind
        lake.run()
    watermark = max(time for _, _, time in events) - timedelta(minutes=10)
    fed = [*early, *rest]
    for kind in KINDS:
        assert lake.pairs(f"{kind}_pairs") == expected(fed, kind, watermark), kind
    alone = {kind: len(expected(fed, kind, watermark)) for kind in KINDS}
    assert alone["inner"] < alone["left"] < alone["full"] > alone["right"] > alone["inner"]

    row = next(row for row in lake.rows("full_pairs") if row["matched"])
    assert row["seconds_between"] == (row["buy_at"] - row["ask_at"]).total_seconds()
    assert row["at"] == row["buy_at"] and row["item"] in "abcdef"
    assert row["event_id"] == f"{row['ask_record_id']}/{row['buy_record_id']}"


def test_a_silent_side_holds_nobody_up(spark: SparkSession, tmp_path: Path) -> None:
    """No buy ever comes, and asks are known to be alone as other events go on."""
    streams = [{"name": "answered", "join": join(kind="left")}]
    lake = StreamLake.new(spark, tmp_path / "lake", declared(streams))
    lake.feed(*ASK)
    lake.run()
    assert lake.pairs("answered") == set()
    lake.feed(("look", "z", at("10:10")))  # the watermark is 10:00: one could come at 10:00 still
    lake.run()
    assert lake.pairs("answered") == set()
    lake.feed(("look", "z", at("10:11")))
    lake.run()
    assert lake.pairs("answered") == {(1, None), (2, None), (3, None)}


@pytest.mark.connect
def test_what_comes_too_late_is_dropped_and_counted(spark: SparkSession, tmp_path: Path) -> None:
    streams = [{"name": "answered", "join": join(kind="inner"), "max_state_rows": 1000}]
    lake = StreamLake.new(spark, tmp_path / "lake", declared(streams))
    lake.feed(*ASK)
    lake.run()
    lake.feed(("buy", "a", at("09:30")))
    lake.run()  # the watermark is 09:20
    lake.feed(("buy", "b", at("09:20:01")), ("buy", "c", at("09:20")), ("ask", "a", at("09:19")))
    exporter = Exporter("shop", Clock(NOW), port=1)
    with exporter.following(lake.pipeline):
        lake.run()
        wait_for(exporter, "tidemill_late_rows_dropped_total", query="stream_answered")
    assert lake.pairs("answered") == {(1, 4), (2, 5)}

    def value(name: str, **labels: str) -> float | None:
        return exporter.registry.get_sample_value(name, {"pipeline": "shop", **labels})

    query = {"query": "stream_answered"}
    assert value("tidemill_late_rows_dropped_total", **query) == 2
    assert value("tidemill_stream_input_rows_total", input="ask", **query) == 1
    assert value("tidemill_stream_input_rows_total", input="buy", **query) == 2
    assert value("tidemill_stream_hit_ratio", **query) == 1
    for side in ("ask", "buy"):
        watermark = value("tidemill_watermark_timestamp_seconds", input=side, **query)
        assert watermark == at("09:10:01").timestamp()  # by what this process has seen
    assert value("tidemill_state_rows", **query) == 5
    assert value("tidemill_state_limit_ratio", **query) == 5 / 1000
    assert (value("tidemill_state_bytes", **query) or 0) > 0


def wait_for(exporter: Exporter, name: str, **labels: str) -> None:
    """Spark tells of a batch in a thread of its own, some time after it."""
    deadline = time.monotonic() + 30
    while (
        exporter.registry.get_sample_value(name, {"pipeline": exporter.pipeline, **labels}) is None
    ):
        assert time.monotonic() < deadline, name
        time.sleep(0.05)


def test_a_batch_again_is_the_same_batch(spark: SparkSession, tmp_path: Path) -> None:
    streams = [{"name": "answered", "join": join()}]
    lake = StreamLake.new(spark, tmp_path / "lake", declared(streams))
    lake.feed(*ASK, ("buy", "a", at("09:30")))
    lake.run()
    rows = spark.table("answered").drop("batch")
    before = lake.lake.commits("answered")[0].version
    stream_step.stream_batch(rows, 0, lake=lake.lake, name="answered")
    stream_step.stream_batch(rows.limit(0), 1, lake=lake.lake, name="answered")
    assert lake.lake.commits("answered")[0].version == before
    with pytest.raises(LedgerError, match="batch 0 was written before with other rows"):
        other = rows.withColumn("seconds_between", rows["seconds_between"] + 1)
        stream_step.stream_batch(other, 0, lake=lake.lake, name="answered")

    (told,) = batch_log.of_pipeline(lake.lake).where("query = 'stream'").collect()
    assert (told["view"], told["batch"], told["accepted"], told["backlog"]) == ("answered", 0, 1, 0)


def test_a_state_that_is_full_stops_the_pipeline(spark: SparkSession, tmp_path: Path) -> None:
    def stream(most: int) -> dict[str, object]:
        return {"name": "answered", "join": join(), "max_state_rows": most}

    lake = StreamLake.new(spark, tmp_path / "lake", declared([stream(2)]))
    lake.feed(*ASK)
    with pytest.raises(QueryError, match="its state holds 3 rows, more than max_state_rows: 2"):
        lake.run()
    lake = lake.reopened(declared([stream(100)]))
    lake.feed(("buy", "a", at("09:30")))
    lake.run()
    assert lake.pairs("answered") == {(1, 4)}


def test_a_stream_of_another_declaration_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    streams = [{"name": "answered", "join": join()}]
    lake = StreamLake.new(spark, tmp_path / "lake", declared(streams))
    lake.feed(*ASK, ("buy", "a", at("09:30")))
    lake.run()
    longer = lake.reopened(declared([{"name": "answered", "join": join(within="2h")}]))
    with pytest.raises(LakeError, match="its rows were made by another declaration"):
        longer.run()

    # a rebuild begins it again; here without bronze, from events that are fed once more
    renew(spark, longer.lake.place, longer.lake.pipeline)
    again = StreamLake.new(spark, tmp_path / "lake", longer.lake.pipeline)
    assert again.pairs("answered") == set()
    again.feed(*ASK, ("buy", "a", at("10:30")))
    again.run()
    assert again.pairs("answered") == {(1, 4)}


def test_a_lost_checkpoint_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    streams = [{"name": "answered", "join": join()}]
    lake = StreamLake.new(spark, tmp_path / "lake", declared(streams))
    lake.feed(*ASK, ("buy", "a", at("09:30")))
    lake.run()
    root = lake.lake.place.folder
    assert root is not None

    # `top` finds it without the pipeline's file
    flows = discovery.flows(discovery.Folder(root), lake.lake.place)
    frame = status.frame(lake.lake.place, [Watched(flow) for flow in flows], Clock(NOW))
    (shown,) = frame["pipelines"]
    assert ("stream", "answered") in [(one["query"], one["view"]) for one in shown["queries"]]

    shutil.rmtree(lake.lake.checkpoint("stream_answered").folder / "offsets")
    with pytest.raises(CheckpointError, match="the checkpoint of stream_answered is lost"):
        lake.run()
