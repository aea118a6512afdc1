"""The record as the rules see it: each field's variant, JSON type and text, parsed once.

    raw_payload ──► __record ──► __value_<field>, __type_<field>, __text_<field> ... and __time

A record is parsed as a variant, so that a number where a string is declared is seen as a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.quality_file import EVENT_ID

_TIME = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?\z"
# What nearly every event time looks like: Spark casts it as it is.
_PLAIN_TIME = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z\z"
_MARK, _BEHIND_MARK = "\ufeff", "substring(raw_payload, 2)"  # of a byte order
_LAST_MILLISECOND = 253_402_300_799_999  # of the year 9999
VARIANT_TYPES = {
    "string": ("STRING",),
    "boolean": ("BOOLEAN",),
    "bigint": ("BIGINT",),
    "double": ("BIGINT", "DOUBLE", "DECIMAL"),
    "decimal": ("BIGINT", "DOUBLE", "DECIMAL"),
}


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
    def types(self) -> tuple[str, ...]:
        """The JSON types that the declared type takes."""
        return VARIANT_TYPES[self.type.split("(")[0]]

    @property
    def has_its_type(self) -> str:
        """Whether the value's JSON type is one that the declared type takes."""
        types = ", ".join(f"'{name}'" for name in self.types)
        return f"(regexp_extract({self.found}, '^[A-Z]+', 0) IN ({types}))"

    @property
    def is_missing(self) -> str:
        """Whether the field is absent or null."""
        return f"(coalesce({self.found}, 'VOID') = 'VOID')"


def fields(pipeline: PipelineDefinition) -> list[Field]:
    """Return the fields of a record: the declared ones that are not looked up, and the event's id;
    the event time is a matter of its own."""
    declared = [
        Field(
            name, type_.rstrip("?"), not type_.endswith("?") or pipeline.quality.of(name).required
        )
        for name, type_ in pipeline.events.event_schema.items()
        if name not in pipeline.enriched
    ]
    return [Field(EVENT_ID, "string", pipeline.quality.of(EVENT_ID).required), *declared]


def enriched(pipeline: PipelineDefinition) -> list[str]:
    """Return the columns that no record has, as nulls of their types: what clean looks up in
    dimensions, when the record is judged."""
    types = pipeline.events.types
    return [f"CAST(NULL AS {types[name]}) AS {name}" for name in pipeline.enriched]


def event_time(pipeline: PipelineDefinition) -> Field:
    """Return the field of the event time."""
    return Field(pipeline.events.event_time, "timestamp")


def parsed(bronze: DataFrame, pipeline: PipelineDefinition) -> DataFrame:
    """Return each field's variant, type and text beside the record, and the event time as
    `__time`."""
    every = [*fields(pipeline), event_time(pipeline)]
    record = bronze.selectExpr("*", f"{whole_record()} AS __record")
    kind = "schema_of_variant(variant_get(__record, '$.r', 'variant')) AS __kind"
    rows = with_fields(record.selectExpr("*", kind), every, "__record", "$.r")
    return rows.selectExpr("*", f"{_event_time(event_time(pipeline))} AS __time")


def whole_record() -> str:
    """Return the payload as a variant, `{"r": <payload>}`; null where it is no JSON.

    Spark's JSON functions take the first value of a text and ignore what follows. Only a text that
    is one single value is still JSON both as `{"r":text}` and as `[text]`, so both are tried.
    """
    text = f"CASE WHEN startswith(raw_payload, '{_MARK}') THEN {_BEHIND_MARK} ELSE raw_payload END"
    whole = f"""try_parse_json(concat('{{"r":', {text}, '}}'))"""
    single = f"json_array_length(concat('[', {text}, ']')) = 1"
    return f"CASE WHEN {single} THEN {whole} END"


def with_fields(rows: DataFrame, every: Sequence[Field], variant: str, path: str) -> DataFrame:
    """Return each field's variant, type and text beside the rows, of an object in a variant."""
    values = (
        f"try_variant_get({variant}, '{path}.{f.name}', 'variant') AS {f.value}" for f in every
    )
    types = (f"schema_of_variant({f.value}) AS {f.found}" for f in every)
    texts = (f"{_text(f)} AS {f.text}" for f in every)
    return rows.selectExpr("*", *values).selectExpr("*", *types).selectExpr("*", *texts)


def _text(field: Field) -> str:
    return f"CASE WHEN {field.found} = 'STRING' THEN variant_get({field.value}, '$', 'string') END"


def _event_time(time: Field) -> str:
    """Return the point in time, null where it is none: strict ISO 8601 text or epoch
    milliseconds."""
    zone = r"(Z|[+-]\d{2}:\d{2})\z"
    zoned = f"CASE WHEN {time.text} RLIKE r'{zone}' THEN {time.text} ELSE {time.text} || 'Z' END"
    seconds = f"regexp_replace({zoned}, r'^(.{{16}}){zone}', '$1:00$2')"
    microseconds = rf"regexp_replace({seconds}, r'(\.\d{{6}})\d+', '$1')"
    is_written = f"{time.text} RLIKE r'{_TIME}'"
    written = (
        f"CASE WHEN {time.text} RLIKE r'{_PLAIN_TIME}' THEN try_cast({time.text} AS TIMESTAMP) "
        f"WHEN {is_written} THEN try_cast({microseconds} AS TIMESTAMP) END"
    )
    number = f"CASE WHEN {time.found} = 'BIGINT' THEN variant_get({time.value}, '$', 'bigint') END"
    millis = f"timestamp_millis(least({number}, {_LAST_MILLISECOND}))"
    return f"coalesce({written}, CASE WHEN {number} > 0 THEN {millis} END)"


def value(field: Field) -> str:
    """Return the field in its declared type, null where it has another."""
    if field.type == "string":
        return field.text
    return f"try_variant_get({field.value}, '$', '{field.type}')"
