"""A plain record is one that the rules accept, with the same values: told from its text alone.

Records are made, then broken at random: characters put in, taken out, doubled and changed, parts of
one put into another. Whatever is called plain must be what the parsed record is.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakes import NOW
from refused import GOOD, REFUSED, record, timed
from tidemill.config.pipeline_file import PipelineDefinition, load
from tidemill.pipeline.silver import validation
from tidemill.pipeline.silver.validation.record import event_time, fields

SHOP = """
pipeline: shop
source: {kind: generator}
clock: event
quality: shop.quality.yml
views:
  - name: shop
    keys: [user]
    event_time: at
    schema: {user: string, note: "string?", amount: double, price: "decimal(6,2)", n: "bigint?",
             ok: "boolean?"}
    features:
      - count: {}
        over: [1h]
"""
QUALITY = """
fields:
  user: {pattern: "[a-zA-Z0-9 é😀]+", longest: 5}
  note: {not_empty: false}
  amount: {between: [0, 100]}
"""
WORDS = (
    *('"', "\\", "{", "}", "[", "]", ",", ":", " ", ", ", ": ", "\n", "\t", "\x00", "\x7f", "\x85"),
    *(
        "null",
        "true",
        "false",
        "0",
        "-0",
        "-0.0",
        "1.5",
        "007",
        "1e3",
        "1e400",
        "99999999999999999",
    ),
    *("\ufeff", "\u2028", "é", "😀", "\\u0041", '\\"', "\\ud800", "'", "NaN", '"gti"', "event_id"),
    *('"gti": "a", ', '"x": 1, ', '"x": {"a": 1}, ', '"x": "gti", ', '"user":"u",', '"n": null, '),
)
TEXTS = (
    "",
    "a",
    "gti",
    "user",
    "event_id",
    ":",
    ", ",
    "{",
    "😀",
    "é" * 5,
    "x" * 1025,
    "view",
    "\t",
)
TIMES = (
    *("2026-11-21T10:00:00Z", "2026-11-21 10:00:00.123456+02:00", "2026-11-21T10:00:00-19:00"),
    *("2026-11-21T10:00", "2026-02-30T10:00:00Z", "2026-11-21T24:00:00Z", "2026-11-21T10:00:60Z"),
    *(
        "2026-11-21T10:00:00.1234567Z",
        "0000-01-01T00:00:00Z",
        "2026-11-21T12:05:01Z",
        "12:30",
        "now",
    ),
    *(1795255200123, 1795255200123.0, 0, -5, 10**14, 10**17, True, "1795255200123"),
)
NUMBERS = (0, -0.0, 1, -1, 1.5, 12.345, 99.995, 9999.99, 10**15, 2**53 + 1, 0.1, -0.5, True, "1")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> PipelineDefinition:
    folder: Path = tmp_path_factory.mktemp("shop")
    (folder / "shop.yaml").write_text(SHOP)
    (folder / "shop.quality.yml").write_text(QUALITY)
    return load(str(folder / "shop.yaml"))


def made(draw: random.Random, pipeline: PipelineDefinition) -> str:
    """A record of the pipeline, most of its fields valid, in any order, some absent or null."""
    found: dict[str, Any] = {}
    for field in [*fields(pipeline), event_time(pipeline)]:
        good = {"string": "ab", "boolean": True, "timestamp": TIMES[0]}.get(field.type, 7)
        any_ = {"string": TEXTS, "timestamp": TIMES, "boolean": (True, False, 1)}
        value = draw.choice(any_.get(field.type, NUMBERS)) if draw.random() < 0.15 else good
        if field.name == "event_type" and value == "ab":
            value = "view"
        found[field.name] = None if draw.random() < 0.03 else value
    if draw.random() < 0.2:
        found[draw.choice(["x", "gtis", "Gti", "a b"])] = draw.choice([*TEXTS, *NUMBERS, None])
    names = [name for name in found if draw.random() > 0.03]
    draw.shuffle(names)
    separators = draw.choice([(", ", ": "), (",", ":"), (" ,", " : ")])
    is_ascii = draw.random() < 0.1
    return json.dumps(
        {name: found[name] for name in names}, separators=separators, ensure_ascii=is_ascii
    )


def broken(draw: random.Random, text: str, other: str) -> str:
    """The text with one to three changes."""
    for _ in range(draw.choice([1, 1, 2, 3])):
        at, end = sorted(draw.choices(range(len(text) + 1), k=2))
        end = min(end, at + draw.choice([0, 1, 12]))
        piece = draw.choice([*WORDS, text[at:end] * 2, other[at:end], ""])
        text = text[:at] + piece + text[end:]
    return text


def records(pipeline: PipelineDefinition, seed: int, count: int) -> Iterator[str]:
    draw = random.Random(seed)
    for _ in range(count):
        text, other = made(draw, pipeline), made(draw, pipeline)
        yield text if draw.random() < 0.4 else broken(draw, text, other)


def both(spark: SparkSession, pipeline: PipelineDefinition, texts: list[str | None]) -> DataFrame:
    """What each record is: plain or not, its reasons, and whether the values are the same."""
    rows = [(text, NOW) for text in texts]
    bronze = spark.createDataFrame(rows, "raw_payload STRING, ingested_at TIMESTAMP")
    bronze = bronze.withColumn("row", F.monotonically_increasing_id()).coalesce(1)
    names = [*(field.name for field in fields(pipeline)), event_time(pipeline).name]
    exact = validation.judge(bronze, pipeline).select("row", "reasons", F.struct(*names).alias("e"))
    plain = validation.plain(bronze, pipeline)
    plain = plain.select("row", "raw_payload", validation.PLAIN, F.struct(*names).alias("p"))
    e, p = F.to_json("e"), F.to_json("p")
    same = (e.eqNullSafe(p) & F.xxhash64("e").eqNullSafe(F.xxhash64("p"))).alias("same")
    return plain.join(exact, "row").select("raw_payload", validation.PLAIN, "reasons", e, p, same)


@pytest.mark.parametrize("name", ["engagement", "shop"])
def test_what_is_plain_is_valid_and_has_the_same_values(
    spark: SparkSession, shop: PipelineDefinition, name: str
) -> None:
    pipeline = shop if name == "shop" else load(name)
    texts: list[str | None] = list(records(pipeline, 7, 6_000))
    if name == "engagement":
        texts += [text for text, _ in REFUSED] + [timed(time) for time in TIMES]
        texts += [json.dumps({**GOOD, "x" * n: "y" * n}) for n in (1, 256, 257, 1024, 1025)]
        texts.append("{" + ", ".join(f'"x{n}": 1' for n in range(5_000)) + ", " + record()[1:])
    rows = both(spark, pipeline, texts).collect()
    assert len(rows) == len(texts)
    plain = [row for row in rows if row[validation.PLAIN]]
    wrong = [row for row in plain if row["reasons"] or not row["same"]]
    assert not wrong, wrong[:3]
    valid = sum(not row["reasons"] for row in rows)
    assert len(texts) - valid > 1_000 and len(plain) > 0.5 * valid, (len(plain), valid, len(texts))


def test_records_of_each_usual_form_are_plain(spark: SparkSession) -> None:
    texts = [
        record(),
        json.dumps(GOOD, separators=(",", ":")),
        json.dumps(dict(reversed(GOOD.items()))),
        record(event_id=None),
        record(session="s", page=3, ratio=-1.5, ok=True, none=None),
        timed("2026-11-21T10:00:00.123456+01:00"),
        timed(1795255200123),
        json.dumps({**GOOD, "profile_id": "event_id", "gti": "é 😀 ' {[:,]}"}, ensure_ascii=False),
        json.dumps({name: GOOD[name] for name in GOOD if name != "event_id"}),
    ]
    rows = both(spark, load("engagement"), list(texts)).collect()
    assert [row["raw_payload"] for row in rows if not row[validation.PLAIN]] == []


def test_bytes_that_are_no_text_are_read_alike(spark: SparkSession) -> None:
    payload = record(gti="a?b").encode().replace(b"?", b"\xff\xc3")
    frame = spark.createDataFrame([(payload, NOW)], "b BINARY, ingested_at TIMESTAMP")
    frame = frame.selectExpr("CAST(b AS STRING) AS raw_payload", "ingested_at")
    gti = "hex(gti) AS gti"
    (parsed,) = validation.judge(frame, load("engagement")).selectExpr("reasons", gti).collect()
    (plain,) = validation.plain(frame, load("engagement")).selectExpr("__plain", gti).collect()
    assert plain["__plain"]
    assert (parsed["reasons"], parsed["gti"]) == ([], plain["gti"])
