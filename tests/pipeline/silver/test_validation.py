"""The rules of clean: what is refused, for which reasons, and what passes."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakes import NOW, Lakes, at
from refused import REFUSED, TIME, record, timed
from tidemill.config.pipeline_file import load
from tidemill.lake.session.temporary_conf import temporary_conf
from tidemill.pipeline.silver import validation

TIMES = {
    "2026-11-21T10:00:00Z": at("10:00"),
    "2026-11-21T10:00": at("10:00"),
    "2026-11-21 10:00": at("10:00"),
    "2026-11-21T10:00Z": at("10:00"),
    "2026-11-21T10:00+02:00": at("08:00"),
    "2026-11-21 10:00:30.5": at("10:00:30.5"),
    "2026-11-21T10:00:00-02:00": at("12:00"),
    "2026-11-21T10:00:00.123456789+05:30": at("04:30:00.123456"),
    1795255200123: at("10:00:00.123"),
}


@pytest.fixture(scope="module")
def judged(spark: SparkSession) -> list[list[str]]:
    """The reasons of each of REFUSED, found in one pass."""
    rows = [(index, text, NOW) for index, (text, _) in enumerate(REFUSED)]
    frame = spark.createDataFrame(rows, "n INT, raw_payload STRING, ingested_at TIMESTAMP")
    found = validation.judge(frame, load("engagement")).orderBy("n").select("reasons").collect()
    return [row["reasons"] for row in found]


@pytest.mark.parametrize("index", range(len(REFUSED)), ids=lambda i: (REFUSED[i][0] or "null")[:60])
def test_reasons(judged: list[list[str]], index: int) -> None:
    assert judged[index] == REFUSED[index][1]


def test_times_that_parse(spark: SparkSession) -> None:
    rows = [(index, timed(text), NOW) for index, text in enumerate(TIMES)]
    frame = spark.createDataFrame(rows, "n INT, raw_payload STRING, ingested_at TIMESTAMP")
    micros = F.unix_micros(TIME).alias("t")
    found = validation.judge(frame, load("engagement")).orderBy("n").select(micros).collect()
    expected = [round(time.timestamp() * 1_000_000) for time in TIMES.values()]
    assert [row["t"] for row in found] == expected


def test_a_session_elsewhere_reads_the_same_times(spark: SparkSession) -> None:
    """Times without a zone are UTC whatever the session's zone."""
    with temporary_conf(spark, {"spark.sql.session.timeZone": "Asia/Kolkata"}):
        test_times_that_parse(spark)


def test_a_byte_order_mark_and_extra_fields_pass(lakes: Lakes) -> None:
    lake = lakes.new()
    lake.clean(["\ufeff" + record(extra={"a": [1]}, event_id="bom"), record(event_id=None)])
    assert [row["event_id"] for row in lake.events().orderBy("event_id").collect()] == [None, "bom"]
