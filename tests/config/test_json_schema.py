"""The JSON Schema of a pipeline file: it takes what is declared and refuses a misspelt word."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
import yaml

from command_line import call
from tidemill.config.json_schema import pipeline_schema, quality_schema
from tidemill.config.pipeline_file import SHIPPED, shipped
from tidemill.features.declaration import Selected
from tidemill.features.feature import Feature
from tidemill.features.view import FeatureView

VALIDATOR = jsonschema.Draft202012Validator(pipeline_schema())
DECLARED = """
pipeline: shop
source: {kind: files, input: events}
engine: buckets
triggers: {land: 30s}
views:
  - name: shop
    keys: [customer]
    event_time: at
    schema: {customer: string, kind: string, amount: "decimal(10, 2)?"}
    select: {large: {boolean: amount > 50}}
    bucket: 5m
    features:
      - {count: , over: [1h], where: large, name: large}
      - {sum: amount, over: [1h, 1d], offset: 7d}
      - {quantiles: {of: amount, at: [0.5], by: {kind: [a, b]}}, over: [1h]}
      - {ratio: {of: large_count, to: amount_sum}, over: [1h], name: share, empty: 0}
"""


def errors(text: str) -> list[str]:
    # as JSON has it: an editor reads a time as text
    data = json.loads(json.dumps(yaml.safe_load(text), default=str))
    return [error.message for error in VALIDATOR.iter_errors(data)]


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(pipeline_schema())


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_definition_is_valid(name: str) -> None:
    assert errors((SHIPPED / f"{name}.yaml").read_text(encoding="utf-8")) == []


def test_every_kind_of_word_is_valid() -> None:
    assert errors(DECLARED) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("pipeline: shop", "pipline: shop"),
        ("pipeline: shop", "pipeline: my-shop"),
        ("kind: files", "kind: fiels"),
        ("input: events", "inptu: events"),
        ("engine: buckets", "engine: bucket"),
        ("land: 30s", "land: soon"),
        ("land: 30s", "lnad: 30s"),
        ("event_time: at", "event_tiem: at"),
        ("kind: string", "kind: text"),
        ("kind: string", "my-kind: string"),
        ("{boolean: amount > 50}", "amount > 50"),
        ("{boolean: amount > 50}", "{bool: amount > 50}"),
        ("bucket: 5m", "bucket: 5 minutes"),
        ("sum: amount", "smu: amount"),
        ("sum: amount", "sum: {off: amount}"),
        ("sum: amount", "sum: {of: amount, scale: 20}"),
        ("over: [1h, 1d]", "over: 1h"),
        ("over: [1h, 1d]", "over: [an hour]"),
        ("at: [0.5]", "at: 0.5"),
        ("at: [0.5]", "at: [50]"),
        ("offset: 7d", "ofset: 7d"),
        ("where: large", "when: large"),
    ],
)
def test_a_misspelt_word_is_not(old: str, new: str) -> None:
    assert old in DECLARED
    assert errors(DECLARED.replace(old, new, 1))


def _words(part: Any) -> set[str]:
    """Every name of a property in a schema."""
    found: set[str] = set()
    if isinstance(part, dict):
        found |= set(part.get("properties", ()))
        found = found.union(*map(_words, part.values()))
    elif isinstance(part, list):
        found = found.union(*map(_words, part))
    return found


@pytest.mark.parametrize("model", [Feature, FeatureView, Selected], ids=lambda m: m.__name__)
def test_fields_that_are_no_words_of_a_file_do_not_leak(model: Any) -> None:
    inner: dict[Any, Callable[[str], bool]] = {
        Feature: lambda name: name not in {"aggregate"},
        FeatureView: lambda name: name == "event_schema",
        Selected: lambda name: name == "sql",
    }
    hidden = {name for name in model.model_fields if inner[model](name)}
    assert hidden
    assert not hidden & _words(pipeline_schema())


def test_the_command_prints_it() -> None:
    answer = call("schema")
    assert answer.code == 0
    assert json.loads(answer.out) == json.loads(json.dumps(pipeline_schema()))
    assert call("schema", "--json").json == json.loads(answer.out)
    assert json.loads(call("schema", "--quality").out) == json.loads(json.dumps(quality_schema()))


QUALITY = """
longest: 64
fields:
  kind: {allowed: [a, b], not_empty: false}
  amount: {between: [0, null]}
gate: {freshness: null, drift: 0.2}
"""


def test_a_quality_file_has_a_schema_too() -> None:
    validator = jsonschema.Draft202012Validator(quality_schema())
    shipped = (SHIPPED / "engagement.quality.yml").read_text(encoding="utf-8")
    for text in (shipped, QUALITY):
        assert list(validator.iter_errors(yaml.safe_load(text))) == []
    for old, new in (
        ("longest: 64", "longst: 64"),
        ("allowed:", "alowed:"),
        ("[0, null]", "[0]"),
        ("drift: 0.2", "drift: some"),
        ("kind:", "my-kind:"),
    ):
        assert old in QUALITY
        assert list(validator.iter_errors(yaml.safe_load(QUALITY.replace(old, new, 1)))), new
    assert "quality" in pipeline_schema()["properties"]
