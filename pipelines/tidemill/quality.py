"""The rules that an event must meet, each a reason and a condition; all are checked in one pass.

A record is parsed once, as a variant, so that a number where a string is declared is seen as a
number. Reasons are `malformed`, `not_an_object`, `missing:<field>` (absent or null),
`empty:<field>`, `wrong_type:<field>`, `too_long:<field>`, `control_character:<field>`,
`unknown_value:<field>`, `out_of_range:<field>`, `bad_time:<field>`, `in_future` and `too_old`. No
rule reads a clock: ages count from `ingested_at`.

Rules are SQL text: a call of Spark's from Python costs as much as judging some fifty records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import DataFrame

from tidemill.features.definition import PipelineDefinition

LONGEST_STRING = 1024
AHEAD = timedelta(minutes=5)
EVENT_ID = "event_id"
_TIME = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?\z"
_LAST_MILLISECOND = 253_402_300_799_999  # of the year 9999
_VARIANT_TYPES = {
    "string": ("STRING",),
    "boolean": ("BOOLEAN",),
    "bigint": ("BIGINT",),
    "double": ("BIGINT", "DOUBLE", "DECIMAL"),
    "decimal": ("BIGINT", "DOUBLE", "DECIMAL"),
}
DIGITS = 15  # that a double keeps


@dataclass(frozen=True)
class Field:
    """A field of the event as its record has it; each property is a SQL expression."""

    name: str
    type: str
    required: bool = True

    @property
    def value(self) -> str:
        """The field as a variant; null when absent."""
        return f"__value_{self.name}"

    @property
    def found(self) -> str:
        """The name of the value's JSON type: STRING, BIGINT, DECIMAL(p,s), OBJECT<...>, VOID ..."""
        return f"__type_{self.name}"

    @property
    def text(self) -> str:
        """The value as a string; null when it is none."""
        return f"__text_{self.name}"

    @property
    def has_its_type(self) -> str:
        """Whether the value's JSON type is one that the declared type takes."""
        types = ", ".join(f"'{name}'" for name in _VARIANT_TYPES[self.type.split("(")[0]])
        return f"(regexp_extract({self.found}, '^[A-Z]+', 0) IN ({types}))"

    @property
    def is_missing(self) -> str:
        """Whether the field is absent or null."""
        return f"(coalesce({self.found}, 'VOID') = 'VOID')"


def fields(pipeline: PipelineDefinition) -> list[Field]:
    """Yield the declared fields and the event's id; the event time is a matter of its own."""
    declared = [
        Field(name, type_.rstrip("?"), required=not type_.endswith("?"))
        for name, type_ in pipeline.events.event_schema.items()
    ]
    return [Field(EVENT_ID, "string", required=False), *declared]


def judge(bronze: DataFrame, pipeline: PipelineDefinition) -> DataFrame:
    """Yield bronze's columns, the parsed fields (null where refused) and `reasons`, sorted."""
    time = Field(pipeline.events.event_time, "timestamp")
    parsed = _parse(bronze, [*fields(pipeline), time]).selectExpr(
        "*", f"{_event_time(time)} AS __time"
    )
    rules = [
        *_of_record(),
        *(rule for field in fields(pipeline) for rule in _of_field(field, pipeline)),
        *_of_time(time, pipeline),
    ]
    found = ", ".join(f"CASE WHEN {broken} THEN '{reason}' END" for reason, broken in sorted(rules))
    # array_compact and array_sort take a lambda, which Spark interprets, with all that is below it.
    broken = f"array_except(array({found}), array(CAST(NULL AS STRING)))"
    none = "CAST(array() AS ARRAY<STRING>)"
    return parsed.selectExpr(
        *bronze.columns,
        *(f"{_value(field)} AS {field.name}" for field in fields(pipeline)),
        f"__time AS {time.name}",
        f"CASE WHEN {_is_plain(pipeline)} THEN {none} ELSE {broken} END AS reasons",
    )


def _is_plain(pipeline: PipelineDefinition) -> str:
    """Tell, in few comparisons, that no rule can be broken; null or false says nothing.

    Nearly every row is plain, and CASE leaves the rules of such a row unread: half of the time.
    """
    in_time = f"__time BETWEEN {_oldest(pipeline)} AND {_newest()}"
    return " AND ".join([in_time, *(_is_plain_field(f, pipeline) for f in fields(pipeline))])


def _is_plain_field(field: Field, pipeline: PipelineDefinition) -> str:
    if field.type != "string":
        outside = _out_of_range(field, pipeline)
        fits = f"{field.has_its_type} AND NOT {outside}" if outside else field.has_its_type
        present = f"(NOT {field.is_missing} AND {fits})"
        return present if field.required else f"({field.is_missing} OR {present})"
    plain = rf"{field.text} RLIKE r'\A[^\p{{Cntrl}}]{{1,{LONGEST_STRING}}}\z'"
    if known := pipeline.known_values().get(field.name):
        plain = f"{plain} AND {field.text} IN ({_listed(known)})"
    return f"({plain})" if field.required else f"({field.is_missing} OR {plain})"


def _oldest(pipeline: PipelineDefinition) -> str:
    return f"ingested_at - INTERVAL '{int(pipeline.kept.total_seconds())}' SECOND"


def _newest() -> str:
    return f"ingested_at + INTERVAL '{int(AHEAD.total_seconds())}' SECOND"


def _listed(values: Iterable[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)


def _parse(bronze: DataFrame, every: list[Field]) -> DataFrame:
    """Yield each field's variant and type beside the record.

    Spark's JSON functions take the first value of a text and ignore what follows. Only a text that
    is one single value is still JSON both as `{"r":text}` and as `[text]`, so both are tried.
    """
    text = "regexp_replace(raw_payload, '^\ufeff', '')"
    whole = f"""try_parse_json(concat('{{"r":', {text}, '}}'))"""
    single = f"json_array_length(concat('[', {text}, ']')) = 1"
    record = bronze.selectExpr("*", f"CASE WHEN {single} THEN {whole} END AS __record")
    kind = "schema_of_variant(variant_get(__record, '$.r', 'variant')) AS __kind"
    values = (f"try_variant_get(__record, '$.r.{f.name}', 'variant') AS {f.value}" for f in every)
    types = (f"schema_of_variant({f.value}) AS {f.found}" for f in every)
    texts = (f"{_text(f)} AS {f.text}" for f in every)
    return record.selectExpr("*", kind, *values).selectExpr("*", *types).selectExpr("*", *texts)


def _text(field: Field) -> str:
    return f"CASE WHEN {field.found} = 'STRING' THEN variant_get({field.value}, '$', 'string') END"


def _of_record() -> Iterator[tuple[str, str]]:
    yield "malformed", "__record IS NULL"
    yield "not_an_object", "NOT startswith(__kind, 'OBJECT<')"


_IS_OBJECT = "coalesce(startswith(__kind, 'OBJECT<'), FALSE)"


def _of_field(field: Field, pipeline: PipelineDefinition) -> Iterator[tuple[str, str]]:
    if field.required:
        yield f"missing:{field.name}", f"{_IS_OBJECT} AND {field.is_missing}"
    yield f"wrong_type:{field.name}", f"NOT {field.is_missing} AND NOT {field.has_its_type}"
    if field.type == "string":
        yield from _of_text(field, pipeline)
    elif outside := _out_of_range(field, pipeline):
        is_number = f"NOT {field.is_missing} AND {field.has_its_type}"
        yield f"out_of_range:{field.name}", f"{is_number} AND {outside}"


def _out_of_range(field: Field, pipeline: PipelineDefinition) -> str | None:
    """Yield the condition of a number that the declared type cannot hold, or of a double that
    cannot be added up with the digits that the views keep; None for types without bounds."""
    if field.type.startswith("decimal"):
        return f"{_value(field)} IS NULL"
    if field.type == "bigint":
        return f"{_value(field)} IS NULL"
    if field.type != "double":
        return None
    limit = f"1e{DIGITS - pipeline.scales().get(field.name, -308 + DIGITS)}D"
    return f"NOT coalesce(abs({_value(field)}) < {limit}, FALSE)"


def _of_text(field: Field, pipeline: PipelineDefinition) -> Iterator[tuple[str, str]]:
    text = field.text
    yield f"empty:{field.name}", f"{text} = ''"
    yield f"too_long:{field.name}", f"char_length({text}) > {LONGEST_STRING}"
    yield f"control_character:{field.name}", rf"{text} RLIKE r'\p{{Cntrl}}'"
    if known := pipeline.known_values().get(field.name):
        yield f"unknown_value:{field.name}", f"{text} != '' AND {text} NOT IN ({_listed(known)})"


def _of_time(time: Field, pipeline: PipelineDefinition) -> Iterator[tuple[str, str]]:
    yield f"missing:{time.name}", f"{_IS_OBJECT} AND {time.is_missing}"
    number = f"startswith({time.found}, 'DECIMAL') OR {time.found} IN ('BIGINT', 'DOUBLE', 'FLOAT')"
    is_time = f"({number} OR {time.found} = 'STRING')"
    yield f"wrong_type:{time.name}", f"NOT {time.is_missing} AND NOT {is_time}"
    yield f"bad_time:{time.name}", f"NOT {time.is_missing} AND {is_time} AND __time IS NULL"
    yield "in_future", f"__time > {_newest()}"
    yield "too_old", f"__time < {_oldest(pipeline)}"


def _event_time(time: Field) -> str:
    """Yield the point in time, null where it is none: strict ISO 8601 text or epoch
    milliseconds."""
    zone = r"(Z|[+-]\d{2}:\d{2})\z"
    zoned = f"CASE WHEN {time.text} RLIKE r'{zone}' THEN {time.text} ELSE {time.text} || 'Z' END"
    seconds = f"regexp_replace({zoned}, r'^(.{{16}}){zone}', '$1:00$2')"
    microseconds = rf"regexp_replace({seconds}, r'(\.\d{{6}})\d+', '$1')"
    is_written = f"{time.text} RLIKE r'{_TIME}'"
    written = f"CASE WHEN {is_written} THEN try_cast({microseconds} AS TIMESTAMP) END"
    number = f"CASE WHEN {time.found} = 'BIGINT' THEN variant_get({time.value}, '$', 'bigint') END"
    millis = f"timestamp_millis(least({number}, {_LAST_MILLISECOND}))"
    return f"coalesce({written}, CASE WHEN {number} > 0 THEN {millis} END)"


def _value(field: Field) -> str:
    """Yield the field in its declared type, null where it has another."""
    if field.type == "string":
        return field.text
    return f"try_variant_get({field.value}, '$', '{field.type}')"
