"""The rules of a pipeline's events and the limits of its gate, as its quality file declares them.

    longest: 1024                     characters of any string
    ahead: 5m                         how far an event may be ahead of its arrival
    fields:
      profile_id: {pattern: "[a-z0-9-]+", longest: 64}
      amount: {between: [0, 10000]}
    gate: {freshness: 1h, drift: 0.5}

Without a file the defaults hold: what follows from the pipeline's schema and views alone.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import yaml
from pydantic import Field, ValidationError, WithJsonSchema

from tidemill.config import yaml_loader
from tidemill.config.yaml_loader import Declared, Words, explained, misplaced
from tidemill.errors import DefinitionError
from tidemill.features.checks import Misdeclared
from tidemill.features.columns import NUMBERS
from tidemill.features.suggestions import did_you_mean
from tidemill.features.types import Duration, Identifier

if TYPE_CHECKING:
    from tidemill.features.view import FeatureView

EVENT_ID = "event_id"
ENDS = (".quality.yml", ".quality.yaml")
LARGEST = 10**18  # that a bound may be
Bound = int | float | None
Bounds = Annotated[
    tuple[Bound, Bound],
    WithJsonSchema(
        {
            "type": "array",
            "description": "the smallest and the largest value; null for no bound",
            "items": {"type": ["number", "null"]},
            "minItems": 2,
            "maxItems": 2,
        }
    ),
]


class FieldRules(Declared):
    """What a field of the event must be, beside its declared type.

    `required` has it there although its type ends with ?; `allowed` takes the place of the values
    that views split by; a `pattern` is of the whole value; `between` has both ends in it.
    """

    required: bool = False
    not_empty: bool = True
    longest: int | None = Field(default=None, ge=1, le=1_000_000)
    allowed: tuple[str, ...] | None = Field(default=None, min_length=1)
    pattern: str | None = None
    between: Bounds | None = None


class Gate(Declared):
    """The limits of `tidemill quality`; null leaves a check out.

    `recent` is how far back rows are read; `freshness` how far gold may be behind the newest event
    (the event clock) or now (the wall clock); `drift` by which part the events an hour may differ
    from the median of earlier runs.
    """

    recent: Duration = "1d"
    freshness: Duration | None = "1h"
    drift: float | None = Field(default=0.5, gt=0)
    nested_windows: bool = True
    reconcile: bool = True


class Rules(Declared):
    """The rules of one pipeline."""

    longest: int = Field(default=1024, ge=1, le=1_000_000)
    ahead: Duration = "5m"
    fields: dict[Identifier, FieldRules] = Field(default_factory=dict)
    gate: Gate = Gate()

    def of(self, field: str) -> FieldRules:
        """Return what is declared of a field, the defaults where nothing is."""
        return self.fields.get(field, FieldRules())

    def longest_of(self, field: str) -> int:
        """Return how many characters a string field may have."""
        return self.of(field).longest or self.longest


_WORDS: Words = {"": Rules, "gate": Gate, "fields.*": FieldRules}


def check(rules: Rules, view: FeatureView) -> None:
    """Refuse a rule of a field that the events do not have, or that its type cannot have."""
    types = {EVENT_ID: "string", **view.event_schema}
    for name, said in rules.fields.items():
        if name not in types:
            hint = did_you_mean(name, types)
            raise Misdeclared(f"unknown field {name!r}{hint}", "fields", name)
        for word in said.model_fields_set:
            _check_word(word, said, types[name].upper().rstrip("?"), name)


def _check_word(word: str, said: FieldRules, type_: str, field: str) -> None:
    path = ("fields", field, word)
    if word in ("not_empty", "longest", "allowed", "pattern") and type_ != "STRING":
        raise Misdeclared(f"{word} takes a string, {field} is {type_.lower()}", *path)
    if word == "between" and not type_.startswith(NUMBERS):
        raise Misdeclared(f"between takes a number, {field} is {type_.lower()}", *path)
    if word == "between" and said.between is not None:
        low, high = said.between
        if low is None and high is None:
            raise Misdeclared("between has no bound", *path)
        if any(bound is not None and not abs(bound) < LARGEST for bound in (low, high)):
            raise Misdeclared(f"between takes numbers below {LARGEST:g}", *path)
        if low is not None and high is not None and low > high:
            raise Misdeclared(f"between ends before it begins: {low} > {high}", *path)
    if word == "pattern" and said.pattern is not None:
        _check_text(said.pattern, path)
        try:
            re.compile(said.pattern)
        except re.error as error:
            raise Misdeclared(f"no pattern: {error}", *path) from error
    for value in said.allowed or () if word == "allowed" else ():
        _check_text(value, path)


def _check_text(text: str, path: tuple[str, ...]) -> None:
    if not text.isprintable() or "${" in text:
        raise Misdeclared(f"{text!r} holds a control character or ${{", *path)


def beside(pipeline: Path, named: str | None) -> Path | None:
    """Return the quality file of a pipeline's file: the one named, else the one beside it, if
    any."""
    if named is not None:
        path = pipeline.parent / named
        if not path.is_file():
            raise DefinitionError(
                "there is no such file", where=str(path), expected="quality: FILE"
            )
        return path
    return next((path for end in ENDS if (path := pipeline.with_suffix(end)).is_file()), None)


def read(path: Path, view: FeatureView) -> Rules:
    """Return the rules that the file at `path` declares for the events of `view`; errors name file,
    line and field."""
    words, tree = yaml_loader.read(path, "quality", "fields: ... or gate: ...")
    try:
        rules = Rules.model_validate(words)
        check(rules, view)
    except ValidationError as error:
        raise explained(path, tree, error, _WORDS) from error
    except Misdeclared as error:
        raise misplaced(path, tree, error.path, str(error)) from error
    return rules


def name_of(said: Any, path: Path, tree: yaml.Node) -> str | None:
    """Return the name of a quality file as a pipeline's file says it, None where it says none."""
    if said is None or (isinstance(said, str) and said.endswith((".yml", ".yaml"))):
        return said
    message = f"takes the name of a file such as shop.quality.yml, found {said!r}"
    raise misplaced(path, tree, ("quality",), message)
