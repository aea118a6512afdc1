"""The rules of a pipeline as data: a word, a field, and what the word needs.

    schema, views, quality file ──► rules ──► predicates      what clean splits records by
                                         └──► expectations    what Great Expectations validates

Reasons are `malformed`, `not_an_object`, `missing:<field>` (absent or null), `empty:<field>`,
`wrong_type:<field>`, `too_long:<field>`, `control_character:<field>`, `unknown_value:<field>`,
`bad_format:<field>`, `out_of_range:<field>`, `bad_time:<field>`, `in_future` and `too_old`. No rule
reads a clock: ages count from `ingested_at`. A record that breaks none is refused for
`expression_failed:<view>.<name>` when what a view computes of it fails (see `attempts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.quality_file import Bound
from tidemill.features.windows import duration
from tidemill.lake.catalog import LongerHistory
from tidemill.pipeline.silver.validation.record import Field, event_time, fields

EXPRESSION_FAILED = "expression_failed"
DIGITS = 15  # that a double keeps
TIME_TYPES = ("STRING", "BIGINT", "DECIMAL", "DOUBLE", "FLOAT")


@dataclass(frozen=True)
class Range:
    """The numbers that a field may be: from `low` to `high`, and nearer to 0 than `limit`."""

    low: Bound = None
    high: Bound = None
    limit: float | None = None


@dataclass(frozen=True)
class Rule:
    """One rule. Of what it needs, only what its word takes is there.

    `types` are the JSON types that a field may have, `values` its texts, `pattern` what a text
    looks like, `longest` how many characters it may have, `range` what a number may be, `age` how
    far an event may be from its arrival, and `longer` of which records farther. `skips_empty`:
    another rule tells of an empty text.
    """

    word: str
    field: Field | None = None
    types: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    pattern: str = ""
    longest: int = 0
    range: Range = Range()
    age: timedelta = timedelta()
    longer: tuple[LongerHistory, ...] = ()
    skips_empty: bool = True

    @property
    def reason(self) -> str:
        """What a record that breaks the rule is refused for."""
        return f"{self.word}:{self.field.name}" if self.field else self.word

    @property
    def of(self) -> Field:
        """The field, of a rule that has one."""
        assert self.field is not None
        return self.field


def rules(pipeline: PipelineDefinition, longer: Sequence[LongerHistory] = ()) -> list[Rule]:
    """Return the pipeline's rules, in the order of their reasons; `longer` as the lake has it."""
    all_rules = [Rule("malformed"), Rule("not_an_object")]
    for field in fields(pipeline):
        all_rules += _of_field(field, pipeline)
    of_time = _of_time(event_time(pipeline), pipeline, longer)
    return sorted([*all_rules, *of_time], key=lambda rule: rule.reason)


def _of_field(field: Field, pipeline: PipelineDefinition) -> Iterator[Rule]:
    if field.required:
        yield Rule("missing", field)
    yield Rule("wrong_type", field, types=field.types)
    if field.type == "string":
        yield from _of_text(field, pipeline)
    elif field.type != "boolean":
        yield Rule("out_of_range", field, types=field.types, range=_range(field, pipeline))


def _of_text(field: Field, pipeline: PipelineDefinition) -> Iterator[Rule]:
    declared = pipeline.quality.of(field.name)
    if declared.not_empty:
        yield Rule("empty", field)
    yield Rule("too_long", field, longest=pipeline.quality.longest_of(field.name))
    yield Rule("control_character", field)
    if values := pipeline.allowed_values().get(field.name):
        yield Rule("unknown_value", field, values=values, skips_empty=declared.not_empty)
    if declared.pattern is not None:
        pattern = rf"\A(?:{declared.pattern})\z"
        yield Rule("bad_format", field, pattern=pattern, skips_empty=declared.not_empty)


def _range(field: Field, pipeline: PipelineDefinition) -> Range:
    """Return the numbers that the declared type can hold; of a double, those that can be added up
    with the digits that the views keep."""
    low, high = pipeline.quality.of(field.name).between or (None, None)
    if field.type != "double":
        return Range(low, high)
    scale = pipeline.scales().get(field.name, -308 + DIGITS)
    return Range(low, high, float(f"1e{DIGITS - scale}"))


def _of_time(
    time: Field, pipeline: PipelineDefinition, longer: Sequence[LongerHistory]
) -> Iterator[Rule]:
    yield Rule("missing", time)
    yield Rule("wrong_type", time, types=TIME_TYPES)
    yield Rule("bad_time", time, types=TIME_TYPES)
    yield Rule("in_future", age=duration(pipeline.quality.ahead))
    yield Rule("too_old", age=pipeline.kept, longer=tuple(longer))
