"""The two readings of the rules: clean's one pass, and Great Expectations' suite."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from lakes import NOW
from tidemill.config.pipeline_file import PipelineDefinition, read
from tidemill.pipeline.silver import validation
from tidemill.pipeline.silver.validation import rules
from tidemill.quality import expectations, validation_run

ROWS = 10_000
PIPELINE = """
pipeline: shop
source: {kind: files, input: events}
views:
  - name: shop
    keys: [customer]
    event_time: at
    schema:
      customer: string
      kind: string
      note: string?
      amount: double
      units: bigint
      price: decimal(6,2)?
      gift: boolean
    features:
      - count: {by: {kind: [a, b]}}
        over: [1h, 1d]
      - sum: {of: amount, scale: 2}
        over: [1h]
"""
QUALITY = r"""
longest: 40
ahead: 10m
fields:
  event_id: {required: true, pattern: "e\\d+'?"}
  customer: {pattern: "[a-z0-9-]+", longest: 12}
  kind: {allowed: [a, b, "c'\\d"]}
  note: {not_empty: false, allowed: ["", ok, "0"], longest: 10}
  amount: {between: [0, 500.5]}
  units: {between: [-5, null]}
  price: {between: [0.01, 99]}
"""
FIELDS: dict[str, tuple[list[object], list[object]]] = {  # what passes, and what does not
    "event_id": (["e1", "e22", "e3'"], [None, "", 5, "x", "e1\n", "e" + "1" * 41]),
    "customer": (["anna", "b-2"], [None, "", 7, True, {"a": 1}, "ANNA", "a b", "a" * 13, "a\x00"]),
    "kind": (["a", "b", "c'\\d"], [None, "", 3, "A", "d", "a" * 41, "a\tb"]),
    "note": (["", "ok", None, "0"], [4, "no", "ok" * 6, "\x7f"]),
    "amount": (
        [0, 1, 500.5, 0.01, 12.34],
        [None, "1", True, -0.001, 500.51, 1e15, -1e15, 1e300, 10**40],
    ),
    "units": ([0, -5, 2**62], [None, "1", 1.5, -6, 2**64, 10**30, False]),
    "price": ([None, 0.01, 99, 12.34], ["1", 0, 99.01, 123456.78, 1e300, [1]]),
    "gift": ([True, False], [None, 0, "true", {}]),
    "at": (
        ["2026-11-21T10:00:00Z", "2026-11-21 12:10", 1795255200123],
        [None, "", "noon", True, [], 1.5, 0, "2026-11-21T12:10:00.001Z", "2024-01-01T00:00:00Z"],
    ),
}
NO_RECORDS = (None, "", "{bad", "[1]", "3", "null", '"text"', "{}", '{"a": 1} x', '{"a":1,"a":2}')


def payloads() -> Iterator[str | None]:
    chance = random.Random(7)
    yield from NO_RECORDS
    for name, (_, bad) in FIELDS.items():
        for value in bad:
            yield json.dumps({**record(chance, 0), name: value})
    for row in range(ROWS):
        yield chance.choice(NO_RECORDS) if row % 50 == 0 else json.dumps(record(chance, 0.05))


def record(chance: random.Random, wrong: float) -> dict[str, object]:
    found = {
        name: chance.choice(bad if chance.random() < wrong else good)
        for name, (good, bad) in FIELDS.items()
    }
    return {name: value for name, value in found.items() if chance.random() >= wrong / 5}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> PipelineDefinition:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.yaml").write_text(PIPELINE)
    (folder / "shop.quality.yml").write_text(QUALITY)
    return read(folder / "shop.yaml")


def test_both_refuse_the_same_records_for_the_same_reasons(
    spark: SparkSession, shop: PipelineDefinition
) -> None:
    rows = [(f"r{n:05}", text, NOW) for n, text in enumerate(payloads())][:ROWS]
    assert len(rows) == ROWS
    schema = "record_id STRING, raw_payload STRING, ingested_at TIMESTAMP"
    bronze = spark.createDataFrame(rows, schema).coalesce(1).cache()
    judged = validation.judge(bronze, shop).where("size(reasons) > 0").collect()
    one_pass = {row["record_id"]: row["reasons"] for row in judged}

    frame = expectations.probe(bronze, shop).cache()
    results = validation_run.validated(frame, expectations.record_suite(shop), ["record_id"])
    bronze.unpersist(), frame.unpersist()
    assert expectations.reasons(results) == one_pass
    found = {reason for reasons in one_pass.values() for reason in reasons}
    assert found == {rule.reason for rule in rules.rules(shop)}
    assert 0.3 * ROWS < len(one_pass) < 0.7 * ROWS


def test_a_quality_file_says_what_passes(spark: SparkSession, shop: PipelineDefinition) -> None:
    passing = [{name: value for name, (good, _) in FIELDS.items() for value in good[:1]}]
    passing += [{**passing[0], name: value} for name, (good, _) in FIELDS.items() for value in good]
    rows = [(json.dumps(one), NOW) for one in passing]
    frame = spark.createDataFrame(rows, "raw_payload STRING, ingested_at TIMESTAMP").coalesce(1)
    judged = validation.judge(frame, shop).collect()
    assert [row for row in judged if row["reasons"]] == []


def test_the_shipped_file_says_what_holds_without_it(shop: PipelineDefinition) -> None:
    from tidemill.config.pipeline_file import load
    from tidemill.config.quality_file import Rules

    shipped = load("engagement")
    without = shipped.overridden({"quality": Rules()})
    assert shipped.quality != without.quality
    assert rules.rules(shipped) == rules.rules(without)


def test_expectations_say_what_rules_say(shop: PipelineDefinition) -> None:
    """Every reason has its expectation, and events have those that a typed row can break."""
    told = {one.meta["reason"] for one in expectations.record_suite(shop)}
    assert told == {rule.reason for rule in rules.rules(shop)}
    of_events = {one.meta["reason"].split(":")[0] for one in expectations.event_suite(shop)}
    assert of_events == {rule.word for rule in rules.rules(shop)} - {*expectations.OF_RECORDS}
    assert yaml.safe_load(QUALITY)["longest"] == shop.quality.longest


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("ahead: 10m", "ahaed: 10m", 3, "unknown word 'ahaed'; did you mean 'ahead'?"),
        ("ahead: 10m", "ahead: soon", 3, "'soon' is no length of time"),
        ("longest: 40", "longest: 0", 2, "greater than or equal to 1"),
        ("customer: {pattern", "custmer: {pattern", 6, "unknown field 'custmer'; did you mean"),
        ("{not_empty", "{not_emty", 8, "unknown word 'not_emty'; did you mean 'not_empty'?"),
        ('"[a-z0-9-]+"', '"[a-z"', 6, "no pattern: unterminated character set"),
        ("amount: {between: [0, 500.5]}", "amount: {longest: 3}", 9, "longest takes a string"),
        ("between: [0, 500.5]", "between: [9, 1]", 9, "ends before it begins: 9"),
        ("between: [0, 500.5]", "between: [0, .inf]", 9, "between takes numbers below 1e+18"),
        ("between: [-5, null]", "between: [null, null]", 10, "between has no bound"),
        ("kind: {allowed", "units: {allowed", 7, "allowed takes a string, units is bigint"),
        ("ahead: 10m", "gate: {drfit: 1}", 3, "unknown word 'drfit'; did you mean 'drift'?"),
    ],
)
def test_a_wrong_word(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    from tidemill.errors import DefinitionError

    assert old in QUALITY
    (tmp_path / "shop.yaml").write_text(PIPELINE)
    text = QUALITY.replace(old, new, 1)
    if new.startswith("units"):
        text = text.replace("  units: {between: [-5, null]}\n", "")
    (tmp_path / "shop.quality.yml").write_text(text)
    with pytest.raises(DefinitionError) as caught:
        read(tmp_path / "shop.yaml")
    assert message in str(caught.value)
    assert str(caught.value.where).startswith(f"{tmp_path / 'shop.quality.yml'}:{line}")


def test_a_pipeline_names_its_file(tmp_path: Path) -> None:
    from tidemill.errors import DefinitionError

    path = tmp_path / "shop.yaml"
    path.write_text("quality: strict.yml\n" + PIPELINE)
    with pytest.raises(DefinitionError, match=r"strict\.yml: there is no such file"):
        read(path)
    (tmp_path / "strict.yml").write_text("longest: 7\n")
    (tmp_path / "shop.quality.yml").write_text("longest: 8\n")
    assert read(path).quality.longest == 7
    path.write_text("quality: {longest: 7}\n" + PIPELINE)
    with pytest.raises(DefinitionError, match="takes the name of a file") as caught:
        read(path)
    assert caught.value.where == f"{path}:1: quality"
