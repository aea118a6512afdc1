"""The rules that an event must meet, each a reason and a condition; all are checked in one pass.

A record is parsed once, as a variant, so that a number where a string is declared is seen as a
number. Reasons are `malformed`, `not_an_object`, `missing:<field>` (absent or null),
`empty:<field>`, `wrong_type:<field>`, `too_long:<field>`, `control_character:<field>`,
`unknown_value:<field>`, `bad_time:<field>`, `in_future` and `too_old`. No rule reads a clock: ages
count from `ingested_at`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

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
}


@dataclass(frozen=True)
class Field:
    """A field of the event as its record has it: the variant value and its type's name."""

    name: str
    type: str
    required: bool = True

    @property
    def value(self) -> Column:
        """The field as a variant; null when absent."""
        return F.col(f"_{self.name}")

    @property
    def found(self) -> Column:
        """The name of the value's JSON type: STRING, BIGINT, DECIMAL(p,s), OBJECT<...>, VOID ..."""
        return F.col(f"_{self.name}_type")

    @property
    def text(self) -> Column:
        """The value as a string; null when it is none."""
        return F.col(f"_{self.name}_text")

    @property
    def has_its_type(self) -> Column:
        """Whether the value's JSON type is one that the declared type takes."""
        return F.regexp_extract(self.found, "^[A-Z]+", 0).isin(*_VARIANT_TYPES[self.type])

    @property
    def is_missing(self) -> Column:
        """Whether the field is absent or null."""
        return F.coalesce(self.found, F.lit("VOID")) == "VOID"


def fields(pipeline: PipelineDefinition) -> list[Field]:
    """Yield the declared fields and the event's id; the event time is a matter of its own."""
    declared = [Field(name, type_) for name, type_ in pipeline.events.event_schema.items()]
    return [Field(EVENT_ID, "string", required=False), *declared]


def judge(bronze: DataFrame, pipeline: PipelineDefinition) -> DataFrame:
    """Yield bronze's columns, the parsed fields (null where refused) and `reasons`, sorted."""
    time = Field(pipeline.events.event_time, "timestamp")
    every = [*fields(pipeline), time]
    parsed = _parse(bronze, every).withColumn("_time", _event_time(time))
    rules = [
        *_of_record(),
        *(rule for field in fields(pipeline) for rule in _of_field(field, pipeline)),
        *_of_time(time, pipeline),
    ]
    found = F.array(*(F.when(broken, F.lit(reason)) for reason, broken in sorted(rules, key=_name)))
    # array_compact and array_sort take a lambda, which Spark interprets, with all that is below it.
    broken = F.array_except(found, F.array(F.lit(None).cast("string")))
    none = F.array().cast("array<string>")
    reasons = F.when(_is_plain(pipeline), none).otherwise(broken)
    values = [_value(field).alias(field.name) for field in fields(pipeline)]
    return parsed.withColumn("reasons", reasons).select(
        *bronze.columns, *values, F.col("_time").alias(time.name), "reasons"
    )


def _is_plain(pipeline: PipelineDefinition) -> Column:
    """Tell, in few comparisons, that no rule can be broken; null or false says nothing.

    Nearly every row is plain, and CASE leaves the rules of such a row unread: half of the time.
    """
    since = F.col("ingested_at") - F.lit(pipeline.kept)
    until = F.col("ingested_at") + F.lit(AHEAD)
    plain = [_is_plain_field(field, pipeline) for field in fields(pipeline)]
    return reduce(and_, plain, F.col("_time").between(since, until))


def _is_plain_field(field: Field, pipeline: PipelineDefinition) -> Column:
    if field.type != "string":
        return ~field.is_missing & field.has_its_type
    plain = field.text.rlike(rf"\A[^\p{{Cntrl}}]{{1,{LONGEST_STRING}}}\z")
    known = pipeline.known_values().get(field.name)
    if known:
        plain &= field.text.isin(*known)
    return plain if field.required else field.is_missing | plain


def _name(rule: tuple[str, Column]) -> str:
    return rule[0]


def _parse(bronze: DataFrame, every: list[Field]) -> DataFrame:
    """Yield each field's variant and type beside the record.

    Spark's JSON functions take the first value of a text and ignore what follows. Only a text that
    is one single value is still JSON both as `{"r":text}` and as `[text]`, so both are tried.
    """
    text = F.regexp_replace("raw_payload", "^\ufeff", "")
    whole = F.try_parse_json(F.concat(F.lit('{"r":'), text, F.lit("}")))
    single = F.json_array_length(F.concat(F.lit("["), text, F.lit("]"))) == 1
    record = bronze.withColumn("_record", F.when(single, whole))
    record = record.withColumn(
        "_kind", F.schema_of_variant(F.variant_get("_record", "$.r", "variant"))
    )
    found = {f"_{f.name}": F.try_variant_get("_record", f"$.r.{f.name}", "variant") for f in every}
    types = {f"_{f.name}_type": F.schema_of_variant(F.col(f"_{f.name}")) for f in every}
    texts = {f"_{f.name}_text": _text(f) for f in every}
    return record.withColumns(found).withColumns(types).withColumns(texts)


def _text(field: Field) -> Column:
    return F.when(field.found == "STRING", F.variant_get(field.value, "$", "string"))


def _of_record() -> Iterator[tuple[str, Column]]:
    yield "malformed", F.col("_record").isNull()
    yield "not_an_object", ~F.col("_kind").startswith("OBJECT<")


def _is_object() -> Column:
    return F.coalesce(F.col("_kind").startswith("OBJECT<"), F.lit(False))


def _of_field(field: Field, pipeline: PipelineDefinition) -> Iterator[tuple[str, Column]]:
    if field.required:
        yield f"missing:{field.name}", _is_object() & field.is_missing
    yield f"wrong_type:{field.name}", ~field.is_missing & ~field.has_its_type
    if field.type == "string":
        yield from _of_text(field, pipeline)


def _of_text(field: Field, pipeline: PipelineDefinition) -> Iterator[tuple[str, Column]]:
    yield f"empty:{field.name}", field.text == ""
    yield f"too_long:{field.name}", F.char_length(field.text) > LONGEST_STRING
    yield f"control_character:{field.name}", field.text.rlike(r"\p{Cntrl}")
    known = pipeline.known_values().get(field.name)
    if known:
        yield f"unknown_value:{field.name}", (field.text != "") & ~field.text.isin(*known)


def _of_time(time: Field, pipeline: PipelineDefinition) -> Iterator[tuple[str, Column]]:
    yield f"missing:{time.name}", _is_object() & time.is_missing
    number = time.found.startswith("DECIMAL") | time.found.isin("BIGINT", "DOUBLE", "FLOAT")
    is_time = number | (time.found == "STRING")
    yield f"wrong_type:{time.name}", ~time.is_missing & ~is_time
    yield f"bad_time:{time.name}", ~time.is_missing & is_time & F.col("_time").isNull()
    yield "in_future", F.col("_time") > F.col("ingested_at") + F.lit(AHEAD)
    yield "too_old", F.col("_time") < F.col("ingested_at") - F.lit(pipeline.kept)


def _event_time(time: Field) -> Column:
    """Yield the point in time, null where it is none: strict ISO 8601 text or epoch
    milliseconds."""
    zoned = F.when(time.text.rlike(r"(Z|[+-]\d{2}:\d{2})\z"), time.text).otherwise(
        F.concat(time.text, F.lit("Z"))
    )
    seconds = F.regexp_replace(zoned, r"^(.{16})(Z|[+-]\d{2}:\d{2})\z", "$1:00$2")
    microseconds = F.regexp_replace(seconds, r"(\.\d{6})\d+", "$1")
    written = F.when(time.text.rlike(_TIME), microseconds.try_cast("timestamp"))
    number = F.when(time.found == "BIGINT", F.variant_get(time.value, "$", "bigint"))
    counted = F.when(number > 0, F.timestamp_millis(F.least(number, F.lit(_LAST_MILLISECOND))))
    return F.coalesce(written, counted)


def _value(field: Field) -> Column:
    """Yield the field in its declared type, null where it has another."""
    if field.type == "string":
        return field.text
    return F.try_variant_get(field.value, "$", field.type)
