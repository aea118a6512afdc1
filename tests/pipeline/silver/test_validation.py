"""The rules of clean: what is refused, for which reasons, and what passes."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakes import NOW, Lakes, at
from tidemill.config.pipeline_file import load
from tidemill.lake.session.temporary_conf import temporary_conf
from tidemill.pipeline.silver import validation

GOOD = {
    "event_id": "e",
    "profile_id": "p",
    "gti": "g",
    "event_type": "view",
    "event_timestamp": "2026-11-21T10:00:00Z",
}
TIME = "event_timestamp"


def record(**words: object) -> str:
    return json.dumps({**GOOD, **words})


def without(*names: str) -> str:
    return json.dumps({name: value for name, value in GOOD.items() if name not in names})


def timed(text: object) -> str:
    return record(event_timestamp=text)


def nested(depth: int) -> str:
    return record()[:-1] + ', "x": ' + "[" * depth + "]" * depth + "}"


REFUSED: list[tuple[str | None, list[str]]] = [
    (None, ["malformed"]),
    ("", ["malformed"]),
    ("{bad", ["malformed"]),
    ('{"a": 1} x', ["malformed"]),
    ('{"a": 1}{"b": 2}', ["malformed"]),
    (record() + "]", ["malformed"]),
    (record() + "] {}", ["malformed"]),
    (record() + "}, {", ["malformed"]),
    (record() + ", " + record(), ["malformed"]),
    ('{"gti": "a", "gti": "b"}', ["malformed"]),
    ('{"gti": "a\x00b"}', ["malformed"]),
    (nested(2000), ["malformed"]),
    ("[1]", ["not_an_object"]),
    ("3", ["not_an_object"]),
    ('"text"', ["not_an_object"]),
    ("null", ["not_an_object"]),
    (without("gti"), ["missing:gti"]),
    (record(gti=None), ["missing:gti"]),
    ("{}", [f"missing:{TIME}", "missing:event_type", "missing:gti", "missing:profile_id"]),
    (record(gti=""), ["empty:gti"]),
    (record(event_type=""), ["empty:event_type"]),
    (record(profile_id=5), ["wrong_type:profile_id"]),
    (record(profile_id={"a": 1}), ["wrong_type:profile_id"]),
    (record(profile_id=["a"]), ["wrong_type:profile_id"]),
    (record(profile_id=True), ["wrong_type:profile_id"]),
    (record(event_id=5), ["wrong_type:event_id"]),
    (record(event_timestamp=True), [f"wrong_type:{TIME}"]),
    (record(event_timestamp={}), [f"wrong_type:{TIME}"]),
    (record(gti="x" * 1025), ["too_long:gti"]),
    (record(gti="x" * 1_000_000), ["too_long:gti"]),
    (record(gti="a\x00b"), ["control_character:gti"]),
    (record(gti="a\nb"), ["control_character:gti"]),
    (record(event_type="Select"), ["unknown_value:event_type"]),
    (record(event_type="click"), ["unknown_value:event_type"]),
    (without(TIME), [f"missing:{TIME}"]),
    (timed("text"), [f"bad_time:{TIME}"]),
    (timed(""), [f"bad_time:{TIME}"]),
    (timed("12:30"), [f"bad_time:{TIME}"]),
    (timed("2026"), [f"bad_time:{TIME}"]),
    (timed("2026-11-21"), [f"bad_time:{TIME}"]),
    (timed("2026-13-21T10:00:00Z"), [f"bad_time:{TIME}"]),
    (timed("2026-02-30T10:00:00Z"), [f"bad_time:{TIME}"]),
    (timed("2026-11-21T25:00:00Z"), [f"bad_time:{TIME}"]),
    (timed("2026-11-21T10:00:00+19:00"), [f"bad_time:{TIME}"]),
    (timed("2026-11-21T10:00:00Z\n"), [f"bad_time:{TIME}"]),
    (timed("2026-11-21t10:00:00z"), [f"bad_time:{TIME}"]),
    (timed("1763719200123"), [f"bad_time:{TIME}"]),
    (timed(0), [f"bad_time:{TIME}"]),
    (timed(-5), [f"bad_time:{TIME}"]),
    (timed(1.5), [f"bad_time:{TIME}"]),
    (timed(1763719200123.0), [f"bad_time:{TIME}"]),
    (timed(10**25), [f"bad_time:{TIME}"]),
    (record()[:-1] + ', "x": 1e400}', []),
    (timed(10**17), ["in_future"]),
    (timed("9999-01-01T00:00:00Z"), ["in_future"]),
    (timed("2026-11-21T12:05:00.001Z"), ["in_future"]),
    (timed("2026-11-21T12:05:00Z"), []),
    (timed(1763719200), ["too_old"]),  # seconds, so 1970
    (timed("2025-10-17T11:59:59Z"), ["too_old"]),  # 400 days before NOW are 2025-10-17 12:00
    (timed("2025-10-17T12:00:00Z"), []),
    (
        json.dumps({"profile_id": 5, "gti": "", "event_type": "x", TIME: "x", "event_id": ""}),
        [
            f"bad_time:{TIME}",
            "empty:event_id",
            "empty:gti",
            "unknown_value:event_type",
            "wrong_type:profile_id",
        ],
    ),
]

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
